// What needs an operator, the most urgent first: where, why, and the command that fixes it.

import { badge, command, el, name, setText } from "./dom.js";
import { ago, clock, count, plural } from "./format.js";

const MOST = 200;

export const kindOfProblem = (row) => (row.level === "error" ? "bad" : "warning");

// `isBrief` leaves out what fixes it: the Problems view has that.
export function problem(row, isBrief = false) {
  const kind = kindOfProblem(row);
  return el(
    "article",
    { class: `problem ${kind}${isBrief ? " brief" : ""}`, "data-kind": row.kind },
    el(
      "header",
      {},
      badge(kind, row.kind),
      el("b", {}, name(row.title)),
      row.flow && row.flow !== row.title ? el("span", { class: "quiet" }, name(row.flow)) : null,
    ),
    row.text === row.title ? null : el("p", {}, name(row.text, { class: "wrap" })),
    isBrief ? null : row.fixes.map((fix) => el("div", { class: "fix" }, el("span", {}, fix.text), fix.command ? command(fix.command) : null)),
    isBrief ? null : el("p", { class: "manual quiet" }, "Manual: ", el("code", {}, row.manual)),
  );
}

// What is not known now, so that no problem can be seen in it.
export function unknowns(store) {
  const lines = [];
  for (const one of store.clusters) if (one.state === "connecting") lines.push(`cluster ${one.alias} is not connected yet`);
  for (const one of store.flows) {
    if (one.error) lines.push(`flow ${one.name} cannot be read${one.read_ms === null ? "" : `, last read ${ago(one.read_ms)}`}`);
    else if (one.read_ms === null) lines.push(`flow ${one.name} is not read yet`);
  }
  for (const one of store.readings) if (one.read_ms === null) lines.push(`${one.flow ? `${one.table} of ${one.flow}` : one.table} not read yet`);
  return lines;
}

export class Problems {
  constructor({ store }) {
    this.store = store;
    this.list = el("div", { class: "stack" });
    this.line = el("p", { class: "quiet", role: "status" });
    this.unknown = el("p", { class: "notice idle", hidden: true });
    this.element = el("div", { class: "view" }, el("h1", {}, "Problems"), this.line, this.unknown, this.list);
  }

  draw() {
    const rows = this.store.problems();
    const unknown = unknowns(this.store);
    const errors = rows.filter((one) => one.level === "error").length;
    const more = rows.length > MOST ? ` The first ${MOST} are shown.` : "";
    const found = `${plural(errors, "error")} and ${plural(rows.length - errors, "warning")}, the most urgent first.${more}`;
    const nothing = `Nothing needs an operator: ${plural(this.store.clusters.length, "cluster")} and ${plural(this.store.flows.length, "flow")} were read, as of ${clock(this.store.at_ms)}.`;
    setText(this.line, rows.length ? found : unknown.length ? "No problem is known; not everything is." : nothing);
    this.unknown.hidden = !unknown.length;
    setText(this.unknown, `Unknown, and may have problems: ${unknown.slice(0, 6).join("; ")}${unknown.length > 6 ? ` and ${count(unknown.length - 6)} more` : ""}.`);
    const drawn = JSON.stringify(rows.slice(0, MOST));
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.list.replaceChildren(...rows.slice(0, MOST).map((row) => problem(row)));
  }
}
