// Halted partitions: where, why, and the command that fixes it.

import { badge, command, el, name, setText } from "./dom.js";
import { count } from "./format.js";

const MOST = 200;

export function problem(row) {
  return el(
    "article",
    { class: "problem" },
    el(
      "header",
      {},
      badge("bad", row.gap ? `gap: ${row.gap}` : "halted"),
      el("b", {}, name(`${row.topic}-${row.partition}`)),
      el("span", { class: "quiet" }, name(row.flow), ` at offset ${count(row.offset)}`, row.records ? `, ${count(row.records)} records missing` : ""),
    ),
    el("p", {}, name(row.reason, { class: "wrap" })),
    row.fixes.map((fix) => el("div", { class: "fix" }, el("span", {}, fix.text), fix.command ? command(fix.command) : null)),
  );
}

export class Problems {
  constructor({ store }) {
    this.store = store;
    this.list = el("div", { class: "stack" });
    this.line = el("p", { class: "quiet" });
    this.element = el("div", { class: "view" }, el("h1", {}, "Gaps and halted partitions"), this.line, this.list);
  }

  draw() {
    const rows = this.store.rows("halted");
    setText(this.line, rows.length ? `${count(rows.length)} halted; all other partitions continue.${rows.length > MOST ? ` The first ${MOST} are shown.` : ""}` : "No partition is halted.");
    const drawn = JSON.stringify(rows.slice(0, MOST));
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.list.replaceChildren(...rows.slice(0, MOST).map(problem));
  }
}
