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
const records = JSON.parse(document.getElementById("records").textContent);
const dialog = document.querySelector("dialog");
for (const button of document.querySelectorAll("td button")) {
  button.addEventListener("click", () => {
    dialog.querySelector("pre").textContent = button.dataset.records.split(" ").map(i => JSON.stringify(records[i], null, 1)).join("\n\n");
    dialog.showModal();
  });
}
