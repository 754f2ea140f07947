"use strict";
// Tables sort by the column whose head is pressed; the box above a table leaves the lines that match.
for (const table of document.querySelectorAll("table.sortable")) {
  for (const [at, head] of [...table.tHead.rows[0].cells].entries()) {
    const button = head.querySelector("button");
    if (button) button.addEventListener("click", () => sort(table, head, at));
  }
}

function sort(table, head, at) {
  const numeric = head.classList.contains("n");
  const now = head.getAttribute("aria-sort");
  const down = now === null ? numeric : now === "ascending";
  const value = (row) => {
    const cell = row.cells[at];
    const told = cell.dataset.value ?? cell.textContent.trim();
    return numeric ? Number(told) : told.toLowerCase();
  };
  const body = table.tBodies[0];
  const sorted = [...body.rows].map((row) => [value(row), row]);
  sorted.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...sorted.map(([, row]) => row));
}

for (const box of document.querySelectorAll("input[data-filters]")) {
  const part = document.getElementById(box.dataset.filters);
  const told = part.querySelector("[data-found]");
  box.addEventListener("input", () => {
    const wanted = box.value.trim().toLowerCase();
    let found = 0;
    for (const row of part.querySelectorAll("tbody tr")) {
      const away = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
      row.classList.toggle("away", away);
      if (!away) found += 1;
    }
    part.classList.toggle("found", wanted !== "");
    told.textContent = wanted === "" ? "" : `${found.toLocaleString("en")} found`;
  });
}
