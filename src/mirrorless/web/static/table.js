// A table of any length: only visible rows are in the document. Sorts, and is operated by keyboard.

import { badge, el, name, setText } from "./dom.js";

const SPARE = 6;
// In a narrow window a row has two lines, as its first cell does.
const NARROW = matchMedia("(max-width: 560px)");
const TALL = 56;
let tables = 0;

// A column has `label`, `draw(cell, row)`, and for sorting `value(row)`; `class` sets its width and when it is hidden.
export class Table {
  constructor({ label, columns, sort, descending = false, open = null, empty = "Nothing to show", rowHeight = 36 }) {
    this.columns = columns;
    this.sort = sort;
    this.descending = descending;
    this.open = open;
    this.usual = rowHeight;
    this.isTall = columns.some((column) => column.draw.hasTwoLines);
    this.rows = [];
    this.pool = [];
    this.active = -1;
    this.id = `table-${(tables += 1)}`;
    this.heads = columns.map((column) => this.head(column));
    this.body = el("div", { class: "body", role: "rowgroup" });
    this.empty = el("p", { class: "empty" }, empty);
    this.element = el(
      "div",
      { class: "grid", role: "grid", tabindex: "0", "aria-label": label, "aria-colcount": columns.length, onscroll: () => this.draw(), onkeydown: (event) => this.key(event) },
      el("div", { class: "head", role: "rowgroup" }, el("div", { class: "row", role: "row", "aria-rowindex": 1 }, this.heads)),
      this.body,
    );
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(this.element);
    this.frame = el("div", { class: "table" }, this.element, this.empty);
  }

  get rowHeight() {
    return this.isTall && NARROW.matches ? TALL : this.usual;
  }

  head(column) {
    const content = column.value
      ? el("button", { type: "button", onclick: () => this.sortBy(column) }, column.label)
      : el("span", {}, column.label);
    return el("div", { class: `cell ${column.class || ""}`, role: "columnheader" }, content);
  }

  sortBy(column) {
    this.descending = this.sort === column.key ? !this.descending : Boolean(column.descending);
    this.sort = column.key;
    this.show(this.given);
    this.element.scrollTop = 0;
    this.draw();
  }

  show(rows) {
    const activeRow = this.rows[this.active];
    this.given = rows;
    const column = this.columns.find((one) => one.key === this.sort);
    this.rows = [...rows];
    if (column) {
      const sign = this.descending ? -1 : 1;
      const value = column.value;
      this.rows.sort((one, other) => {
        const [first, second] = [value(one), value(other)];
        return sign * (first < second ? -1 : first > second ? 1 : 0);
      });
    }
    this.columns.forEach((one, index) => {
      const direction = this.descending ? "descending" : "ascending";
      this.heads[index].setAttribute("aria-sort", one.key === this.sort ? direction : "none");
      if (!one.value) this.heads[index].removeAttribute("aria-sort");
    });
    if (activeRow) this.active = this.rows.findIndex((row) => this.same(row, activeRow));
    this.element.setAttribute("aria-rowcount", this.rows.length + 1);
    this.empty.hidden = this.rows.length > 0;
    this.draw();
  }

  same(one, other) {
    return one === other || ["flow", "topic", "group", "partition", "id", "number"].every((field) => one[field] === other[field]);
  }

  // Show why there are no rows.
  explain(...lines) {
    const drawn = JSON.stringify(lines);
    if (drawn === this.explained) return;
    this.explained = drawn;
    this.empty.replaceChildren(...lines.map((line) => el("span", {}, name(line, { class: "wrap" }))));
  }

  draw() {
    this.body.style.height = `${this.rows.length * this.rowHeight}px`;
    const headHeight = this.element.firstChild.offsetHeight;
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.rowHeight) - SPARE);
    const fits = Math.ceil((this.element.clientHeight - headHeight) / this.rowHeight) + 2 * SPARE;
    const last = Math.min(this.rows.length, first + fits);
    while (this.pool.length < last - first) this.pool.push(this.row());
    this.pool.forEach((element, slot) => {
      const index = first + slot;
      element.hidden = index >= last;
      if (element.hidden) return;
      element.index = index;
      element.id = `${this.id}-${index}`;
      element.style.height = `${this.rowHeight}px`;
      element.style.transform = `translateY(${index * this.rowHeight}px)`;
      element.setAttribute("aria-rowindex", index + 2);
      element.classList.toggle("active", index === this.active);
      element.classList.toggle("odd", index % 2 === 1);
      element.setAttribute("aria-selected", index === this.active ? "true" : "false");
      this.columns.forEach((column, number) => column.draw(element.children[number], this.rows[index]));
    });
    if (this.active >= first && this.active < last) {
      this.element.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    } else {
      this.element.removeAttribute("aria-activedescendant");
    }
  }

  row() {
    const cells = this.columns.map((column) => el("div", { class: `cell ${column.class || ""}`, role: "gridcell" }));
    const row = el("div", { class: this.open ? "row opens" : "row", role: "row" }, cells);
    row.addEventListener("click", () => {
      this.active = row.index;
      this.draw();
      if (this.open) this.open(this.rows[row.index]);
    });
    this.body.append(row);
    return row;
  }

  key(event) {
    if (event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 2);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      event.preventDefault();
      this.move(this.active + moves[event.key]);
    } else if (event.key === "Enter" && this.open && this.rows[this.active]) {
      event.preventDefault();
      this.open(this.rows[this.active]);
    }
  }

  move(index) {
    this.active = Math.min(this.rows.length - 1, Math.max(0, index));
    const top = this.active * this.rowHeight;
    const headHeight = this.element.firstChild.offsetHeight;
    const room = this.element.clientHeight - headHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + this.rowHeight > this.element.scrollTop + room) this.element.scrollTop = top + this.rowHeight - room;
    this.draw();
  }
}

// A cell that shows text only.
export function text(read) {
  return (cell, row) => setText(cell, read(row));
}

// A cell whose content is built again only if `read` returns something else.
export function built(read, make) {
  return (cell, row) => {
    const value = read(row);
    if (cell.value === value) return;
    cell.value = value;
    cell.replaceChildren(make(value, row));
  };
}

// A name, and in a narrow window a second line: `below` returns pairs of a kind, null for a plain name, and a text.
export function titled(read, below) {
  const draw = built(
    (row) => JSON.stringify([read(row), below(row)]),
    (_, row) => el("div", {}, name(read(row)), el("div", { class: "sub" }, below(row).map(([kind, text]) => (kind ? badge(kind, text) : name(text))))),
  );
  draw.hasTwoLines = true;
  return draw;
}
