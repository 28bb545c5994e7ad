// Switchovers, failovers and failbacks with their steps.

import { command, el, name, stateBadge } from "./dom.js";
import { clock, duration } from "./format.js";

function operation(row) {
  const taken = (step) => (step.ended_ms === null ? "" : duration((step.ended_ms - step.began_ms) / 1000));
  return el(
    "article",
    { class: "panel operation" },
    el(
      "header",
      {},
      el("h2", {}, `${row.kind[0].toUpperCase()}${row.kind.slice(1)} `, name(row.source), " → ", name(row.target)),
      stateBadge(row.outcome),
    ),
    el(
      "p",
      { class: "quiet" },
      `Began ${clock(row.began_ms)}`,
      row.ended_ms ? `, took ${duration((row.ended_ms - row.began_ms) / 1000)}` : "",
      row.blocked_s === null ? "" : `, writers were blocked for ${duration(row.blocked_s)}`,
      row.owner ? [", run by ", name(row.owner)] : "",
    ),
    row.reason ? el("p", { class: "bad" }, name(row.reason, { class: "wrap" })) : null,
    el(
      "ol",
      { class: "steps" },
      row.steps.map((step) =>
        el(
          "li",
          {},
          stateBadge(step.state),
          el("b", {}, step.step),
          el("span", { class: "quiet taken" }, taken(step)),
          el("span", { class: "result" }, name(step.result, { class: "wrap" })),
        ),
      ),
    ),
    row.next_command ? command(row.next_command) : null,
    el("a", { href: `api/report?${new URLSearchParams({ operation: row.id, form: "html" })}`, target: "_blank", rel: "noopener" }, "Report"),
  );
}

export class Operations {
  constructor({ store }) {
    this.store = store;
    this.list = el("div", { class: "stack" });
    this.element = el(
      "div",
      { class: "view" },
      el("h1", {}, "Operations"),
      el("p", { class: "quiet" }, "Switchovers, failovers and failbacks of these clusters. ", el("code", {}, "mirrorless drill FILE --to TARGET"), " rehearses a failover; its reports are files."),
      this.list,
    );
  }

  draw() {
    const rows = this.store.rows("operations").sort((one, other) => other.began_ms - one.began_ms);
    const drawn = JSON.stringify(rows);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.list.replaceChildren(...(rows.length ? rows.map(operation) : [el("p", { class: "empty" }, "There was no operation yet.")]));
  }
}
