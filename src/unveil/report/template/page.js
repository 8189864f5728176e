"use strict";
(() => {
  const PAGE = 100;
  const byId = (id) => document.getElementById(id);

  // Light or dark: the system decides until the reader does.
  const root = document.documentElement, theme = byId("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => { theme.textContent = isDark() ? "Light colours" : "Dark colours"; };
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  system.addEventListener("change", label);
  label();
  theme.hidden = false;

  // The table: all rows are kept in memory, only those shown are in the page.
  const table = byId("records");
  if (!table) return;
  const body = table.tBodies[0], find = byId("find"), outcome = byId("outcome"), more = byId("more");
  const rest = byId("rest");
  const rows = [...body.rows, ...(rest ? rest.content.querySelectorAll("tr") : [])].map((row) => ({ row, text: row.textContent.toLowerCase(), outcome: row.dataset.outcome }));
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  let limit = PAGE;

  const show = () => {
    const text = find.value.trim().toLowerCase();
    const chosen = rows.filter((r) => (!outcome.value || r.outcome === outcome.value) && r.text.includes(text));
    const count = Math.min(limit, chosen.length);
    body.replaceChildren(...chosen.slice(0, count).map((r) => r.row));
    const all = chosen.length === rows.length ? "" : ` of ${rows.length.toLocaleString("en")}`;
    const part = count < chosen.length ? `, the first ${count.toLocaleString("en")} shown` : "";
    byId("shown").textContent = `${chosen.length.toLocaleString("en")}${all} records${part}`;
    more.hidden = count === chosen.length;
  };

  const key = (cell, kind) => (kind === "t" ? cell.textContent.trim() : cell.dataset.v === undefined ? NaN : Number(cell.dataset.v));
  const sort = (head) => {
    const column = head.cellIndex, kind = head.dataset.kind;
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    for (const r of rows) r.key = key(r.row.cells[column], kind);
    rows.sort((a, b) => {
      if (kind === "t") return sign * collator.compare(a.key, b.key);
      // What is not known comes last either way.
      return Number.isNaN(a.key) - Number.isNaN(b.key) || sign * (a.key - b.key) || 0;
    });
    limit = PAGE;
    show();
  };

  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head));
    head.replaceChildren(button);
  }
  const filter = () => { limit = PAGE; show(); };
  find.addEventListener("input", filter);
  outcome.addEventListener("change", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  more.firstElementChild.addEventListener("click", () => { limit *= 10; show(); });
  byId("filters").hidden = false;
  show();
})();
