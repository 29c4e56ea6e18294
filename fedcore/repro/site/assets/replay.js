"use strict";

// Draws the replay of one run of window.CURVES, its first repeat; see fedcore/reports/replay.py.
const form = document.getElementById("replay");
const plot = document.getElementById("plot");
const groups = window.CURVES.map((group) => ({ ...group, runs: group.runs.filter((run) => run.replay) }))
  .filter((group) => group.runs.length);

const draw = (event) => {
  const group = groups[form.group.value];
  fill(form.run, group.runs.map((run) => [run.cell, run.name]));
  const run = group.runs.find(({ cell }) => cell === form.run.value) ?? group.runs[0];
  const { measure, iterations, recomputed, recorded, difference, curve } = run.replay;
  form.value.max = String(iterations.length - 1);
  if (event?.target !== form.value) form.value.value = form.value.max;
  const at = Number(form.value.value);
  const colour = visible(run.colour);
  const drawn = [
    { x: curve[0], y: curve[1], mode: "lines", line: { color: colour, width: 2 }, name: "recorded" },
    { x: iterations, y: recomputed, mode: "markers", marker: { color: colour, size: 9, symbol: "circle-open", line: { width: 2 } }, name: "from the iterates" },
    { x: [iterations[at]], y: [recomputed[at]], mode: "markers", marker: { color: colour, size: 14 }, name: "chosen" },
  ];
  const values = [...curve[1], ...recomputed].filter((v) => v > 0);
  const steep = values.length > 0 && Math.max(...values) > 30 * Math.min(...values);
  const shown = { ...group, runs: [run] };
  Plotly.react(plot, drawn, layout(plot, shown, ["iterations", false], [measure, steep]), SETTINGS);
  document.getElementById("said").textContent =
    `Iterate ${iterations[at]}: ${recomputed[at].toPrecision(4)} from the iterate, ${recorded[at].toPrecision(4)} recorded. Over all iterates they differ by at most ${difference.toPrecision(2)}.`;
  form.value.setAttribute("aria-valuetext", `iteration ${iterations[at]}`);
};

fill(form.group, groups.map((group, i) => [String(i), `${group.experiment}: ${group.label}`]));
// It opens on a run with some points, where there is one.
const long = ({ replay }) => replay.iterations.length >= 5;
const first = Math.max(groups.findIndex((group) => group.runs.some(long)), 0);
form.group.value = String(first);
fill(form.run, groups[first].runs.map((run) => [run.cell, run.name]));
form.run.value = (groups[first].runs.find(long) ?? groups[first].runs[0]).cell;
form.addEventListener("change", draw);
form.value.addEventListener("input", draw);
form.addEventListener("submit", (event) => event.preventDefault());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
draw();
