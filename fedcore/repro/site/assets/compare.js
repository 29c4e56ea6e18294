"use strict";

// Ranks the runs of window.CURVES within limits that the reader sets; see site/curves.py.
const budget = document.getElementById("budget");
const ranking = document.getElementById("ranking");
const plot = document.getElementById("plot");
const cost = document.getElementById("cost");
const AXES = JSON.parse(plot.dataset.axes);
const ALL = "all problems";
const groups = window.CURVES.filter((group) => group.experiment === window.CURVES[0].experiment);

const digits = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(3))));
const number = (name) => (budget[name].value === "" ? Infinity : Number(budget[name].value));

// What a run has spent at a record, by the names of the limits.
const spent = (run, i) => ({
  rounds: run.x.rounds[i],
  megabytes: run.x.up[i] / 1e6,
  steps: run.x.steps?.[i] ?? null,
  seconds: run.x.seconds?.[i] ?? null,
  time: run.x.seconds ? run.x.seconds[i] + (number("wait") || 0) * run.x.rounds[i] : null,
});
const LIMITS = ["rounds", "megabytes", "steps", "seconds", "time"];
// What is not known of a run keeps no limit.
const within = (used) => LIMITS.every((name) => number(name) === Infinity || (used[name] ?? Infinity) <= number(name));

// Records of a run that are results and keep all limits. The start is no result; and of a private run
// the last record is the only one, for which its noise was calibrated.
const allowed = (run) => {
  const sent = run.x.rounds.map((_, i) => i).filter((i) => run.x.rounds[i] > 0);
  const results = run.privacy === "none" ? sent : sent.slice(-1);
  return results.filter((i) => within(spent(run, i)));
};
// Values are compared to three digits, and what is below 1e-10 is rounding.
const rounded = (value) => Number(Math.max(value, 1e-10).toPrecision(3));

// The last result counts: which one is best, nobody knows while a method runs.
const latest = (run, measure) => {
  const y = run.y[measure];
  const at = y && allowed(run).filter((i) => y.median[i] !== null).at(-1);
  if (at === undefined) return null;
  return { value: y.median[at], low: y.low?.[at], high: y.high?.[at], ...spent(run, at) };
};

const chosen = (run) =>
  (budget.privacy.value === "" || run.privacy === budget.privacy.value) &&
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
      run.name, found?.value, range, found?.rounds, found?.megabytes, found?.steps, found?.seconds,
      found?.time, run.privacy,
    ];
  });

// Over all problems: how often a method is first, its mean rank among those with a result, medians.
// A problem without a result counts as the worst value.
const rowsOfAll = (measure) => {
  const methods = new Map();
  for (const group of groups) {
    const runs = group.runs.filter(chosen).map((run) => [run, latest(run, measure)]);
    const values = runs.filter(([, found]) => found).map(([, found]) => rounded(found.value));
    for (const [run, found] of runs) {
      const entry = methods.get(run.name) ?? { run, ranks: [], found: [], problems: 0 };
      entry.problems += 1;
      if (found) {
        entry.ranks.push(1 + values.filter((value) => value < rounded(found.value)).length);
        entry.found.push(found);
      }
      methods.set(run.name, entry);
    }
  }
  return [...methods.values()].map(({ run, ranks, found, problems }) => {
    const worst = Array(problems - found.length).fill(Infinity);
    const middle = median([...found.map((f) => f.value), ...worst]);
    const mean = ranks.reduce((a, b) => a + b, 0) / ranks.length;
    return [
      run.name, Number.isFinite(middle) ? middle : undefined,
      ranks.length
        ? `results on ${ranks.length} of ${problems}: first on ${ranks.filter((rank) => rank === 1).length}, mean rank ${digits(mean)}`
        : `results on 0 of ${problems}`,
      ...LIMITS.map((name) => median(found.map((f) => f[name]).filter((v) => v !== null))),
      run.privacy,
    ];
  });
};

// Columns: the value is beside the method, where a phone shows it; words are no numbers.
const VALUE = 1;
const WORDS = [0, 2, 8];

const table = (rows, one, measure) => {
  const heads = [
    "method", `${measure.replaceAll("_", "_\u200b")}, median`, // names break behind an underscore
    one ? "range of the repeats" : "against the others",
    "rounds", "MB up", "products", "CPU s", "time, s", "what is protected",
  ];
  const head = ranking.tHead.rows[0];
  if (!head.cells.length) {
    head.append(...heads.map(() => Object.assign(document.createElement("th"), { scope: "col" })));
    window.makeSortable(ranking);
  }
  heads.forEach((text, i) => { head.cells[i].firstChild.textContent = text; });
  for (const cell of head.cells) cell.removeAttribute("aria-sort");
  const place = (row) => row[VALUE] ?? Infinity;
  rows.sort((a, b) => place(a) - place(b));
  ranking.tBodies[0].replaceChildren(
    ...rows.map((row) => {
      const line = document.createElement("tr");
      line.append(
        ...row.map((value, i) => {
          const cell = document.createElement("td");
          cell.textContent = WORDS.includes(i) ? value : digits(value);
          if (!WORDS.includes(i)) cell.className = "n";
          return cell;
        }),
      );
      return line;
    }),
  );
  const without = rows.filter((row) => (row[VALUE] ?? null) === null).length;
  document.getElementById("count").textContent =
    `${rows.length} methods${without ? `, ${without} of them without a result within these limits` : ""}.`;
};

const front = (points) => {
  const sorted = points.filter(([x, y]) => x > 0 && y !== null).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const kept = [];
  for (const [x, y] of sorted) if (!kept.length || y < kept.at(-1)[1]) kept.push([x, y]);
  return kept;
};

const draw = (group, measure) => {
  const axis = cost.value;
  const runs = group.runs.filter((run) => chosen(run) && run.y[measure] && run.x[axis]);
  const traces = runs.map((run) => {
    const at = allowed(run);
    return {
      x: at.map((i) => run.x[axis][i]), y: at.map((i) => run.y[measure].median[i]), name: run.name,
      mode: "lines+markers", marker: { size: 4 }, line: { color: visible(run.colour), dash: run.dash, width: 1.5 },
    };
  });
  const points = traces.flatMap((trace) => trace.x.map((x, i) => [x, trace.y[i]]));
  const kept = front(points);
  traces.unshift({
    x: kept.map(([x]) => x), y: kept.map(([, y]) => y), name: "front", mode: "lines",
    line: { shape: "hv", width: 9, color: "rgba(128,128,128,0.4)" }, hoverinfo: "skip",
  });
  Plotly.react(plot, traces, layout(plot, group, [AXES[axis], true], [measure, true]), SETTINGS);
};

const show = () => {
  const measure = budget.measure.value;
  const one = budget.problem.value !== "";
  const group = groups[one ? Number(budget.problem.value) : 0];
  table(one ? rowsOfOne(group, measure) : rowsOfAll(measure), one, measure);
  draw(group, measure);
  document.getElementById("which").textContent = one ? "" : `Of ${ALL}, the plot shows ${group.label}.`;
};

fill(budget.problem, [["", ALL], ...groups.map((group, i) => [String(i), group.label])]);
// Measures without units, of which less is better: their values can be compared between problems.
const measures = Object.entries(groups[0].measures).filter(([, text]) => text.endsWith("(1)"));
fill(budget.measure, measures);
const levels = [...new Set(groups.flatMap((group) => group.runs.map((run) => run.privacy)))];
fill(budget.privacy, [["", "any"], ...levels.map((name) => [name, name])]);
if (levels.includes("none")) budget.privacy.value = "none"; // like is compared with like
fill(cost, Object.entries(AXES).filter(([axis]) => axis !== "epsilon" && groups[0].runs.some((run) => run.x[axis])));
budget.addEventListener("input", show);
budget.addEventListener("submit", (event) => event.preventDefault());
cost.addEventListener("change", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
show();
