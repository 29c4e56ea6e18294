"use strict";

// Tables of the class `sortable` are sorted by the button in a column's head.
const value = (row, column) => {
  const text = row.cells[column].textContent.trim();
  const number = Number.parseFloat(text.replace("−", "-"));
  return Number.isNaN(number) ? text.toLowerCase() : number;
};

const compare = (a, b) =>
  typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;

const makeSortable = (table) => {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => compare(value(a, column), value(b, column)) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
};
window.makeSortable = makeSortable; // for tables whose columns a script makes
document.querySelectorAll("table.sortable").forEach(makeSortable);

// A list of verdicts hides the rows of all others, and headings without rows.
for (const list of document.querySelectorAll("select[data-filter]")) {
  list.addEventListener("change", () => {
    for (const table of document.querySelectorAll(`table.${list.dataset.filter}`)) {
      let left = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = Boolean(list.value) && row.dataset.verdict !== list.value;
        left += !row.hidden;
      }
      const part = table.closest(".wide");
      part.hidden = !left;
      if (part.previousElementSibling?.tagName === "H3") part.previousElementSibling.hidden = !left;
    }
  });
}

// The address of a table or a cell opens it.
const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const details = target instanceof HTMLDetailsElement ? target : target && target.querySelector("details");
  if (details) details.open = true;
};
addEventListener("hashchange", open);
open();
