"use strict";

// Ranks the runs of window.CURVES within limits that the reader sets; see site/curves.py.
const budget = document.getElementById("budget");
const ranking = document.getElementById("ranking");
const plot = document.getElementById("plot");
const cost = document.getElementById("cost");
const ALL = "all problems";
const groups = window.CURVES.filter((group) => group.experiment === window.CURVES[0].experiment);

const fill = (list, options) =>
  list.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
const digits = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(3))));
const level = (run) => (run.epsilon === null ? "none" : `ε = ${run.epsilon}`);
const number = (name) => (budget[name].value === "" ? Infinity : Number(budget[name].value));

// What a run has spent at a record, by the names of the limits.
const spent = (run, i) => ({
  rounds: run.x.rounds[i],
  megabytes: run.x.up[i] / 1e6,
  steps: run.x.steps?.[i] ?? null,
  seconds: run.x.seconds?.[i] ?? null,
  time: (run.x.seconds?.[i] ?? 0) + number("wait") * run.x.rounds[i],
});
const LIMITS = ["rounds", "megabytes", "steps", "seconds", "time"];
const within = (used) => LIMITS.every((name) => used[name] === null || used[name] <= number(name));

// Records of a run that have sent something and keep all limits; a share is better when it is large.
const allowed = (run) => run.x.rounds.map((_, i) => i).filter((i) => run.x.rounds[i] > 0 && within(spent(run, i)));
const larger = (measure) => measure === "captured";
// The last result counts: which one is best, nobody knows while a method runs.
const latest = (run, measure) => {
  const y = run.y[measure];
  const at = y && allowed(run).filter((i) => y.median[i] !== null).at(-1);
  if (at === undefined) return null;
  return { value: y.median[at], low: y.low?.[at], high: y.high?.[at], ...spent(run, at) };
};

const chosen = (run) =>
  (budget.privacy.value === "" || level(run) === budget.privacy.value) &&
  run.name.toLowerCase().includes(budget.name.value.toLowerCase());

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2 : null;
};

const rowsOfOne = (group, measure) =>
  group.runs.filter(chosen).map((run) => {
    const found = latest(run, measure);
    const range = found && found.low !== undefined ? `${digits(found.low)} to ${digits(found.high)}` : "–";
    return [
      run.name, level(run), found?.value, range, found?.rounds, found?.megabytes, found?.steps,
      found?.seconds, found?.time,
    ];
  });

// Over all problems: how often a method is best, its mean rank, and medians.
const rowsOfAll = (measure) => {
  const methods = new Map();
  for (const group of groups) {
    const runs = group.runs.filter(chosen).map((run) => [run, latest(run, measure)]);
    const sign = larger(measure) ? -1 : 1;
    const values = runs.map(([, found]) => (found ? sign * found.value : Infinity));
    for (const [i, [run, found]] of runs.entries()) {
      const entry = methods.get(run.name) ?? { run, ranks: [], found: [] };
      entry.ranks.push(1 + values.filter((value) => value < values[i]).length);
      if (found) entry.found.push(found);
      methods.set(run.name, entry);
    }
  }
  return [...methods.values()].map(({ run, ranks, found }) => [
    run.name, level(run), found.length ? median(found.map((f) => f.value)) : undefined,
    `first on ${ranks.filter((rank, i) => rank === 1).length} of ${ranks.length}, mean rank ${digits(ranks.reduce((a, b) => a + b) / ranks.length)}`,
    ...["rounds", "megabytes", "steps", "seconds", "time"].map((name) =>
      found.length ? median(found.map((f) => f[name]).filter((v) => v !== null)) : undefined),
  ]);
};

const table = (rows, one, measure) => {
  const heads = [
    "method", "privacy of a row", `${measure}, median`, one ? "range of the repeats" : "against the others",
    "rounds", "MB up", "products", "CPU s", "time, s",
  ];
  const head = ranking.tHead.rows[0];
  if (!head.cells.length) {
    head.append(...heads.map(() => Object.assign(document.createElement("th"), { scope: "col" })));
    window.makeSortable(ranking);
  }
  heads.forEach((text, i) => { head.cells[i].textContent = text; });
  for (const cell of head.cells) cell.removeAttribute("aria-sort");
  const sign = larger(measure) ? -1 : 1;
  const place = (row) => (row[2] === undefined || row[2] === null ? Infinity : sign * row[2]);
  rows.sort((a, b) => place(a) - place(b));
  ranking.tBodies[0].replaceChildren(
    ...rows.map((row) => {
      const line = document.createElement("tr");
      line.append(
        ...row.map((value, i) => {
          const cell = document.createElement("td");
          cell.textContent = i < 2 || i === 3 ? value : digits(value);
          if (i !== 0 && i !== 1 && i !== 3) cell.className = "n";
          return cell;
        }),
      );
      return line;
    }),
  );
  const without = rows.filter((row) => row[2] === undefined || row[2] === null).length;
  document.getElementById("count").textContent =
    `${rows.length} methods${without ? `, ${without} of them without a result within these limits` : ""}.`;
};

const front = (points, sign) => {
  const sorted = points.filter(([x, y]) => x > 0 && y !== null).sort((a, b) => a[0] - b[0] || sign * (a[1] - b[1]));
  const kept = [];
  for (const [x, y] of sorted) if (!kept.length || sign * y < sign * kept.at(-1)[1]) kept.push([x, y]);
  return kept;
};

const draw = (group, measure) => {
  const axis = cost.value;
  const runs = group.runs.filter((run) => chosen(run) && run.y[measure] && run.x[axis]);
  const traces = runs.map((run) => {
    const at = allowed(run);
    return {
      x: at.map((i) => run.x[axis][i]), y: at.map((i) => run.y[measure].median[i]), name: run.name,
      mode: "lines+markers", marker: { size: 4 }, line: { color: run.colour, dash: run.dash, width: 1.5 },
    };
  });
  const points = traces.flatMap((trace) => trace.x.map((x, i) => [x, trace.y[i]]));
  const kept = front(points, larger(measure) ? -1 : 1);
  traces.unshift({
    x: kept.map(([x]) => x), y: kept.map(([, y]) => y), name: "front", mode: "lines",
    line: { shape: "hv", width: 9, color: "rgba(128,128,128,0.4)" }, hoverinfo: "skip",
  });
  const ink = getComputedStyle(document.body).color;
  const faint = getComputedStyle(document.documentElement).getPropertyValue("--line");
  const shape = (title, log) => ({
    title: { text: title }, type: log ? "log" : "linear", gridcolor: faint, zeroline: false,
    exponentformat: "power", automargin: true,
  });
  const narrow = plot.clientWidth < 600;
  const surrogate = group.status === "surrogate" ? " (surrogate data)" : "";
  Plotly.react(plot, traces, {
    title: { text: `${group.label}${surrogate}`, font: { size: 15 } },
    xaxis: shape(window.AXES[axis], true), yaxis: shape(measure, !larger(measure)),
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", font: { color: ink },
    height: narrow ? 560 : 520, margin: { t: 50, r: 10 },
    legend: narrow ? { orientation: "h", y: -0.25 } : {},
  }, { responsive: true, displaylogo: false });
};

const show = () => {
  const measure = budget.measure.value;
  const one = budget.problem.value !== "";
  const group = groups[one ? Number(budget.problem.value) : 0];
  table(one ? rowsOfOne(group, measure) : rowsOfAll(measure), one, measure);
  draw(group, measure);
};

fill(budget.problem, [["", ALL], ...groups.map((group, i) => [String(i), group.label])]);
fill(budget.measure, Object.entries(groups[0].measures));
const levels = [...new Set(groups.flatMap((group) => group.runs.map(level)))];
fill(budget.privacy, [["", "any"], ...levels.map((name) => [name, name === "none" ? "none" : `${name} for a row`])]);
if (levels.includes("none")) budget.privacy.value = "none"; // like is compared with like
fill(cost, Object.entries(window.AXES).filter(([axis]) => axis !== "epsilon" && groups[0].runs.some((run) => run.x[axis])));
budget.addEventListener("input", show);
budget.addEventListener("submit", (event) => event.preventDefault());
cost.addEventListener("change", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
show();
