"""A site of static pages as tests see it: its links, and what a browser says of it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

LONGEST = 900  # seconds of a browser on one site
VOID = {"meta", "link", "img", "br", "hr", "input", "col"}
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
in_a_browser = pytest.mark.skipif(
    BROWSER is None, reason="there is no Chromium; Debian's package chromium has it"
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Page(HTMLParser):
    """Links, ids, images and tags of a page; a tag that is not closed is an error."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.images: list[dict[str, Any]] = []
        self.scripts = 0
        self._open: list[str] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)
        assert not self._open, f"{path} leaves {self._open} open"

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in VOID:
            self._open.append(tag)
        if "id" in found:
            assert found["id"] not in self.ids, f"two elements have the id {found['id']}"
            self.ids.add(found["id"])
        self.links += [found[name] for name in ("href", "src") if name in found]
        self.scripts += tag == "script"
        if tag == "img":
            self.images.append(found)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()


def dead_links(folder: Path) -> list[str]:
    """Links of all pages that lead to no file, or to no id in it."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    folder, dead = folder.resolve(), []
    for path, page in pages.items():
        for link in set(page.links):
            name, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", link):  # pictures that stand in the page themselves
                assert not link.startswith(("http:", "https:")), f"{path} needs a network: {link}"
                continue
            target = Path(os.path.normpath(path.parent / name)) if name else path
            known = pages.get(target)
            if not (known or target.is_file()) or (anchor and known and anchor not in known.ids):
                dead.append(f"{path.relative_to(folder)}: {link}")
    return sorted(dead)


# The console has a line with a page's name before what the page says.
SAYS = re.compile(r'CONSOLE\S*\] "(.*)\n?", source: ')
# The log of the network names who asks; what the browser asks for by itself has no origin.
ASKS = re.compile(r'"initiator":"(?!not an origin")[^"]*".*"url":"([^"]*)"')
VISIT = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body><script>
const found = {}, pages = PAGES, width = WIDTH;
const frame = document.createElement("iframe");
frame.style.width = width + "px"; frame.style.height = "800px"; frame.style.border = "0";
document.body.append(frame);
const visit = (page) => new Promise((done) => {
  frame.onload = async () => {
    const inner = frame.contentDocument, errors = [];
    for (const image of inner.images) {
      image.loading = "eager";
      try { await image.decode(); } catch (error) { errors.push(image.src); }
    }
    const drawn = [];
    let points = null; // of the longest curve, as the page opens
    const choices = inner.getElementById("choices");
    if (choices) {
      const traces = inner.getElementById("plot").data.filter((trace) => trace.meta);
      points = Math.max(...traces.map((trace) => new Set(trace.x).size));
      for (const axis of [...choices.axis.options].map((option) => option.value)) {
        choices.axis.value = axis;
        choices.dispatchEvent(new Event("change"));
        drawn.push([axis, inner.querySelectorAll("#plot .scatterlayer .trace").length]);
      }
    }
    const slid = [];
    if (choices) {
      for (const [i, option] of [...choices.group.options].entries()) {
        choices.group.value = option.value;
        choices.dispatchEvent(new Event("change"));
        const names = [...choices.parameter.options].map((one) => one.value).filter(Boolean);
        if (!names.length) continue;
        const count = () => inner.querySelectorAll("#plot .scatterlayer .trace").length;
        const all = count();
        choices.parameter.value = names[0];
        choices.dispatchEvent(new Event("change"));
        slid.push([names[0], all, count(), choices.shown.value]);
        choices.parameter.value = "";
      }
    }
    const replayed = []; // of each run: largest relative distance of a point to the line
    const replay = inner.getElementById("replay");
    const opened = replay && inner.getElementById("plot").data[1].x.length; // points of the first
    for (const option of replay ? [...replay.group.options] : []) {
      replay.group.value = option.value;
      replay.dispatchEvent(new Event("change"));
      for (const cell of [...replay.run.options].map((one) => one.value)) {
        replay.run.value = cell;
        replay.dispatchEvent(new Event("change"));
        const [line, points] = inner.getElementById("plot").data;
        const there = new Map(line.x.map((x, i) => [x, line.y[i]]));
        const apart = points.x.map((x, i) => [points.y[i], there.get(x)])
          .filter(([, recorded]) => recorded !== null)
          .map(([y, recorded]) => Math.abs(y - recorded) / Math.max(recorded, 1e-12));
        replayed.push([cell, points.x.length, apart.length, Math.max(0, ...apart)]);
      }
    }
    let origin = null;
    if (choices) {
      const curve = inner.getElementById("plot").data.find((trace) => trace.meta);
      inner.getElementById("plot").emit("plotly_click", { points: [{ data: curve }] });
      const said = inner.getElementById("origin");
      const clicked = [said.textContent, said.querySelector("a").getAttribute("href")];
      const list = inner.getElementById("run"); // which a keyboard reaches
      if (list.value !== curve.meta.cell) errors.push("a click does not choose its curve");
      if (list.tabIndex !== 0) errors.push("no key says where a curve comes from");
      list.value = ""; list.dispatchEvent(new Event("change"));
      if (said.textContent) errors.push("no curve is chosen, and one is told");
      list.value = curve.meta.cell; list.dispatchEvent(new Event("change"));
      origin = [said.textContent, said.querySelector("a").getAttribute("href")];
      if (String(origin) !== String(clicked)) errors.push("a key tells what no click tells");
    }
    const plot = inner.getElementById("plot");
    if (plot) { // every button, and what it opens
      const buttons = [...plot.querySelectorAll(".modebar-btn")];
      if (!buttons.length) errors.push("a plot without buttons");
      frame.contentWindow.open = (address) => errors.push("opens " + address);
      for (const button of buttons) {
        button.click();
        const links = [...plot.querySelectorAll("a[href^=http]")];
        errors.push(...links.map((link) => "links to " + link.href));
        const opened = [...plot.querySelectorAll("button:not(.modebar-btn)")];
        for (const one of opened.reverse()) one.click();
      }
      const picture = await frame.contentWindow.Plotly.toImage(plot, { format: "png" });
      if (!picture.startsWith("data:image/png")) errors.push("no picture of a plot");
    }
    const wide = inner.documentElement.scrollWidth;
    found[page] = { points, replayed, opened, origin, slid, drawn, wide, errors };
    done();
  };
  console.log("VISIT " + page);
  frame.src = page;
});
addEventListener("unhandledrejection", (event) => { // in a frame's onload, which nobody awaits
  found.failed = String(event.reason.stack);
  fetch("/found", { method: "POST", body: JSON.stringify(found) });
});
(async () => { for (const page of pages) await visit(page); })()
  .catch((error) => { found.failed = String(error.stack); })
  .then(() => new Promise((done) => setTimeout(done, 500))) // the console is written later
  .then(() => fetch("/found", { method: "POST", body: JSON.stringify(found) }));
</script>"""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[str, queue.Queue[str]]]:
    """Serve a folder on this machine; yields the address, and what a page sends back."""
    sent: queue.Queue[str] = queue.Queue()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            sent.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()


def opened(file: Path) -> tuple[str, list[str]]:
    """What a browser makes of a page that is opened as a file, and what it says and asks for."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        log = Path(profile, "net.json")
        done = subprocess.run(
            [BROWSER, *FLAGS, "--enable-logging=stderr", f"--user-data-dir={profile}",
             f"--log-net-log={log}", "--virtual-time-budget=5000", "--dump-dom", file.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        asked = ASKS.findall(log.read_text(encoding="utf-8"))
    return done.stdout, SAYS.findall(done.stderr) + [f"asks for {url}" for url in asked]


def visited(folder: Path, pages: list[str], width: int) -> dict[str, Any]:
    """What a browser finds on pages at a width: their own widths, errors, and what tables do."""
    script = VISIT.replace("PAGES", json.dumps(pages)).replace("WIDTH", str(width))
    visitor = folder / "visit.html"
    visitor.write_text(script, encoding="utf-8")
    try:
        with (
            served(folder) as (address, sent),
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
            tempfile.TemporaryFile("w+") as console,
        ):
            browser = subprocess.Popen(
                [BROWSER, *FLAGS, "--enable-logging=stderr", f"--user-data-dir={profile}",
                 f"--log-net-log={profile}/net.json", f"{address}/visit.html"],
                stdout=subprocess.DEVNULL, stderr=console,
                env=os.environ | {"HOME": profile},  # where it puts what a button downloads
            )  # fmt: skip
            try:
                found = json.loads(sent.get(timeout=LONGEST))
            finally:
                browser.terminate()
                browser.wait()
                time.sleep(0.5)  # its own processes still write to the profile
            console.seek(0)
            said = SAYS.findall(console.read())
            asked = ASKS.findall(Path(profile, "net.json").read_text(encoding="utf-8"))
    finally:
        visitor.unlink()
    assert "failed" not in found, found["failed"]
    page = ""
    for line in said:
        if line.startswith("VISIT "):
            page = line.removeprefix("VISIT ")
        else:
            found[page]["errors"].append(line)
    page = pages[0]
    for url in asked:
        here = unquote(url).removeprefix(f"{address}/")
        if here in found:
            page = here
        elif not url.startswith(address):
            found[page]["errors"].append(f"asks for {url}")
    return found
