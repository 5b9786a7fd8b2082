// A table of which only the rows in sight exist.
//
// Invariant: the document holds at most as many rows as fit the window twice, however many there are.
// A column's title sorts by it; the order that the rows came in is back after the third press.

import {h, plain, setText, show} from "./dom.js";

const ROW = 30; // pixels, as in style.css
const SPARE = 10; // rows above and below the window

export class VirtualTable {
  #given = []; // {key, cells, link}
  #rows = []; // the same, as they are sorted
  #sorted = null; // [column, 1 or -1]
  #columns = [];
  #body = h("tbody");
  #head = h("tr");
  #above = h("tr", {"aria-hidden": "true"}, h("td"));
  #below = h("tr", {"aria-hidden": "true"}, h("td"));
  #box;
  #table;
  #frame = 0;
  #shown = new Map(); // index → element

  constructor(place, scope, {caption, columns, height = 480}) {
    this.#table = h("table", {"aria-label": caption}, h("thead", {}, this.#head), this.#body);
    this.#box = h("div", {class: "rows", tabindex: "0", role: "region", "aria-label": `${caption}, scrollable`}, this.#table);
    this.#box.style.maxHeight = `${height}px`;
    this.#box.addEventListener("scroll", () => this.#soon());
    show(place, this.#box);
    scope.add(() => cancelAnimationFrame(this.#frame));
    this.setColumns(columns);
  }

  // Columns may be added at the end later; what is there stays as it is.
  setColumns(columns) {
    this.#columns = columns;
    for (let at = this.#head.childElementCount; at < columns.length; at++) {
      this.#head.append(h("th", {scope: "col"},
        h("button", {type: "button", class: "sort", onclick: () => this.#sortBy(at)}, plain(columns[at]))));
    }
    this.#soon();
  }

  #sortBy(at) {
    const [column, direction] = this.#sorted ?? [];
    this.#sorted = column !== at ? [at, 1] : direction > 0 ? [at, -1] : null;
    [...this.#head.children].forEach((title, index) => {
      if (this.#sorted?.[0] !== index) title.removeAttribute("aria-sort");
      else title.setAttribute("aria-sort", this.#sorted[1] > 0 ? "ascending" : "descending");
    });
    this.setRows(this.#given);
  }

  setRows(rows) {
    this.#given = rows;
    const [at, direction] = this.#sorted ?? [];
    this.#rows = this.#sorted ? [...rows].sort((a, b) => direction * compared(a.cells[at], b.cells[at])) : rows;
    this.#table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.#soon();
  }

  #soon() {
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = 0;
    const inSight = Math.ceil(this.#box.clientHeight / ROW);
    const first = Math.max(0, Math.floor(this.#box.scrollTop / ROW) - SPARE);
    const last = Math.min(this.#rows.length, first + inSight + 2 * SPARE);
    const elements = [];
    for (let at = first; at < last; at++) elements.push(this.#row(at - first, at));
    for (const at of [...this.#shown.keys()]) if (at >= last - first) this.#shown.delete(at);
    this.#above.firstChild.style.height = `${first * ROW}px`;
    this.#below.firstChild.style.height = `${(this.#rows.length - last) * ROW}px`;
    const wanted = [first && this.#above, ...elements, last < this.#rows.length && this.#below].filter(Boolean);
    if (wanted.length !== this.#body.childElementCount || wanted.some((item, at) => item !== this.#body.children[at])) {
      show(this.#body, wanted);
    }
  }

  // Elements are used again for other rows: only texts change.
  #row(place, index) {
    let element = this.#shown.get(place);
    if (!element) {
      element = h("tr", {}, h("th", {scope: "row"}));
      this.#shown.set(place, element);
    }
    while (element.childElementCount < this.#columns.length) element.append(h("td"));
    const row = this.#rows[index];
    element.setAttribute("aria-rowindex", String(index + 2));
    this.#columns.forEach((_, at) => {
      const cell = element.children[at];
      const text = plain(row.cells[at] ?? "");
      if (at || !row.link) setText(cell, text);
      else if (cell.firstChild?.getAttribute?.("href") !== row.link || cell.textContent !== text) {
        show(cell, h("a", {href: row.link}, text));
      }
    });
    element.className = row.look ?? "";
    return element;
  }
}

const AGE = /^(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
const UNITS = [31536000, 86400, 3600, 60, 1];
const byName = new Intl.Collator("en", {numeric: true}).compare;

// Ages by their length, everything else as people count.
function compared(one, other) {
  const [a, b] = [one, other].map((cell) => secondsOf(String(cell ?? "")));
  return a != null && b != null ? a - b : byName(String(one ?? ""), String(other ?? ""));
}

function secondsOf(text) {
  const found = text && AGE.exec(text);
  return found ? UNITS.reduce((sum, unit, at) => sum + unit * Number(found[at + 1] ?? 0), 0) : null;
}
