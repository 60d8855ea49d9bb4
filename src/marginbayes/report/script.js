// Tables sort by a click on a heading; a number opens the records behind it.
const number = cell => { const found = parseFloat(cell.dataset.value ?? cell.textContent); return Number.isNaN(found) ? null : found; };
for (const heading of document.querySelectorAll("thead th")) {
  heading.tabIndex = 0;
  const sort = () => {
    const table = heading.closest("table"), column = heading.cellIndex, down = heading.getAttribute("aria-sort") !== "descending";
    for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0], rows = [...body.rows].filter(row => !row.classList.contains("mean"));
    rows.sort((a, b) => {
      const [x, y] = [number(a.cells[column]), number(b.cells[column])];
      if (x === null && y === null) return a.cells[column].textContent.localeCompare(b.cells[column].textContent) * (down ? 1 : -1);
      if (x === null || y === null) return x === null ? 1 : -1;
      return down ? y - x : x - y;
    });
    body.prepend(...rows);
  };
  heading.addEventListener("click", sort);
  heading.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
}
const { records, groups } = JSON.parse(document.getElementById("records").textContent);
const dialog = document.querySelector("dialog");
const element = (name, text, ...inside) => { const made = document.createElement(name); made.append(text, ...inside); return made; };
// Lists of numbers on one line: a thousand orders would be a thousand lines.
const text = record => JSON.stringify(record, null, 1).replace(/\[[^\[\]{}]*\]/g, list => list.replace(/\s+/g, " "));
const shown = (record, alone) => {
  const { accuracy } = record.result, rate = accuracy === undefined ? record.status : `${(100 * accuracy).toFixed(2)} %`;
  const heading = element("summary", `${record.dataset}, ${record.method}, ${record.split}: ${rate}, ${record.seconds.toPrecision(3)} s`);
  const details = element("details", heading);
  const fill = () => { if (details.open && details.children.length === 1) details.append(element("pre", text(record))); };
  details.addEventListener("toggle", fill);
  details.open = alone;
  fill();
  return details;
};
for (const button of document.querySelectorAll("button[data-groups]")) {
  button.addEventListener("click", () => {
    const found = [...new Set(button.dataset.groups.split(" ").flatMap(i => groups[i]))];
    const count = element("p", found.length === 1 ? "One record" : `${found.length} records`);
    dialog.querySelector("div").replaceChildren(count, ...found.map(i => shown(records[i], found.length === 1)));
    dialog.showModal();
  });
}
