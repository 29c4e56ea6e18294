"use strict";

// What the pages with interactive plots share: lists of choices, and the frame of a plot.
// The buttons are named here, as a new version of plotly may add one that uploads the plot.
const BUTTONS = ["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d", "resetScale2d"];
const SETTINGS = { responsive: true, displaylogo: false, modeBarButtons: [BUTTONS] };

// Fill a list with [value, text]; what was chosen stays chosen.
const fill = (list, options) => {
  const before = list.value;
  list.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  if (options.some(([value]) => value === before)) list.value = before;
};

// Black cannot be seen on the dark theme.
const visible = (colour) =>
  colour === "#000000" && matchMedia("(prefers-color-scheme: dark)").matches ? "#e6eaee" : colour;

// The frame of a plot of one group of runs; each axis is [title, whether it is logarithmic].
const layout = (plot, group, x, y) => {
  const ink = getComputedStyle(document.body).color;
  const [faint, link] = ["--line", "--link"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name));
  const axis = ([title, log]) => ({
    title: { text: title }, type: log ? "log" : "linear", gridcolor: faint, zeroline: false,
    exponentformat: "power", automargin: "left+bottom", // with all sides a phone's frame grows and shrinks in turn
  });
  const surrogate = group.status === "surrogate" ? " (surrogate data)" : "";
  const narrow = plot.clientWidth < 600;
  return {
    title: { text: `${group.label}${surrogate}`, font: { size: 15 }, ...(narrow ? { x: 0, y: 1, yanchor: "top", pad: { t: 30 } } : {}) },
    xaxis: axis(x), yaxis: axis(y),
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", font: { color: ink },
    height: narrow ? 400 + 22 * group.runs.length : 560, // a legend of all runs stands below
    margin: { t: 60, r: 10 },
    modebar: { bgcolor: "transparent", color: ink, activecolor: link, orientation: "h" },
    legend: narrow ? { orientation: "h", yref: "container", y: 0, yanchor: "bottom" } : {},
  };
};
