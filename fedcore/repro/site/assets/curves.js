"use strict";

// Draws window.CURVES, the runs of one paper; see fedcore/repro/site/curves.py.
const form = document.getElementById("choices");
const plot = document.getElementById("plot");
const list = document.getElementById("run");
const AXES = JSON.parse(plot.dataset.axes);
const groups = window.CURVES;

const rgba = (hex, alpha) =>
  `rgba(${[1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16)).join(",")},${alpha})`;

// A slider shows the runs with one value of a parameter, and those of methods without it.
const slide = (group) => {
  fill(form.parameter, [["", "any parameters"], ...Object.keys(group.varied).map((name) => [name, name])]);
  const values = group.varied[form.parameter.value];
  form.value.parentElement.hidden = !values;
  form.parameter.parentElement.hidden = !Object.keys(group.varied).length;
  if (!values) return () => true;
  form.value.max = String(values.length - 1);
  const value = values[Math.min(Number(form.value.value), values.length - 1)];
  form.shown.value = `${form.parameter.value} = ${value}`;
  form.value.setAttribute("aria-valuetext", form.shown.value);
  return (run) => (run.params[form.parameter.value] ?? value) === value;
};

const traces = (group, measure, axis, shown) =>
  group.runs.filter(shown).flatMap((run) => {
    const x = run.x[axis];
    const y = run.y[measure];
    if (!x || !y) return [];
    const colour = visible(run.colour);
    const line = { color: colour, width: 2, dash: run.dash };
    const shared = { legendgroup: run.cell, connectgaps: true, x };
    const band = y.low && [
      { ...shared, y: y.low, mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" },
      {
        ...shared, y: y.high, mode: "lines", line: { width: 0 }, showlegend: false,
        hoverinfo: "skip", fill: "tonexty", fillcolor: rgba(colour, 0.15),
      },
    ];
    const mode = y.median.filter((v) => v !== null).length > 1 ? "lines" : "markers";
    const curve = {
      ...shared, y: y.median, mode, line, marker: { color: colour }, name: run.name,
      meta: { cell: run.cell, row: run.row },
    };
    return [...(band || []), curve];
  });

// A measure that falls by orders of magnitude is shown on a logarithmic axis.
const steep = (group, measure) => {
  const values = group.runs.flatMap((run) => run.y[measure]?.median ?? []).filter((v) => v > 0);
  return Math.max(...values) > 30 * Math.min(...values);
};

// Of methods with one or two rounds, curves against rounds are vertical lines.
const spread = (group, axis) => group.runs.some((run) => new Set(run.x[axis]).size > 3);

const draw = (event) => {
  const group = groups[form.group.value];
  fill(form.measure, Object.entries(group.measures));
  const shown = slide(group);
  if (!["axis", "logx", "logy", "parameter", "value"].includes(event?.target.name)) {
    form.logy.checked = steep(group, form.measure.value);
  }
  const there = Object.keys(AXES).filter((axis) => group.runs.some((run) => run.x[axis]));
  fill(form.axis, there.map((axis) => [axis, AXES[axis]]));
  if (!event || event.target === form.group) form.axis.value = there.find((axis) => spread(group, axis)) ?? there[0];
  const drawn = traces(group, form.measure.value, form.axis.value, shown);
  Plotly.react(
    plot,
    drawn,
    layout(plot, group, [AXES[form.axis.value], form.logx.checked], [form.measure.value, form.logy.checked]),
    SETTINGS,
  );
  const curves = drawn.filter((trace) => trace.meta).map((trace) => [trace.meta.cell, trace.name]);
  fill(list, [["", "choose one here, or click it"], ...curves]);
  tell();
};

// Where the chosen run comes from: its file, the command that makes it alone, and its parameters.
const tell = () => {
  const said = document.getElementById("origin");
  const run = groups[form.group.value].runs.find(({ cell }) => cell === list.value);
  if (!run) {
    said.replaceChildren();
    return;
  }
  const { cell, row } = run;
  const link = document.createElement("a");
  link.href = `runs.html#${row}`;
  link.textContent = cell;
  const code = document.createElement("code");
  code.textContent = `${plot.dataset.command} -- ${plot.dataset.histories}/${cell}.h5`;
  said.replaceChildren(link, ": parameters and provenance. It is made alone by ", code);
};

fill(form.group, groups.map((group, i) => [String(i), `${group.experiment}: ${group.label}`]));
// The page opens with the first experiment that has curves: some have single points alone.
const curved = groups.findIndex((group) => Object.keys(AXES).some((axis) => spread(group, axis)));
form.group.value = String(Math.max(curved, 0));
// The address may name an experiment, as links of claims do.
const ask = () => {
  const asked = groups.findIndex((group) => location.hash === `#of-${group.experiment}`);
  if (asked >= 0) form.group.value = String(asked);
};
ask();
addEventListener("hashchange", () => { ask(); draw(); });
form.addEventListener("change", draw);
form.value.addEventListener("input", draw);
form.addEventListener("submit", (event) => event.preventDefault());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
draw();
list.addEventListener("change", tell);
plot.on("plotly_click", (event) => {
  const { meta } = event.points[0].data;
  if (!meta) return;
  list.value = meta.cell;
  tell();
});
