// Switchovers, failovers and failbacks with their steps, and reports of drills.

import { badge, command, el, name, stateBadge } from "./dom.js";
import { clock, duration, plural } from "./format.js";

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
    report("report", { operation: row.id }),
  );
}

function report(path, query) {
  return el("a", { href: `api/${path}?${new URLSearchParams({ ...query, form: "html" })}`, target: "_blank", rel: "noopener" }, "Report");
}

const DRILLED = { ok: "good", warning: "warning", failed: "bad", "not checked": "idle" };

function drill(row) {
  const records = row.rpo_records === null ? "unknown" : `${row.rpo_exact ? "" : "up to "}${plural(row.rpo_records, "record")}`;
  const failed = row.problems.filter((one) => one.status === "failed").length;
  return el(
    "article",
    { class: "panel operation" },
    el(
      "header",
      {},
      el("h3", {}, name(row.flow), ` ${clock(row.began_ms)}`),
      badge(DRILLED[row.status] || "idle", failed ? `${plural(failed, "check")} failed` : row.status),
    ),
    el(
      "p",
      { class: "quiet" },
      `RPO ${records}${row.rpo_seconds === null ? "" : `, ${duration(row.rpo_seconds)}`}; RTO at least ${duration(row.rto_seconds)}; `,
      `took ${duration((row.ended_ms - row.began_ms) / 1000)}`,
    ),
    row.problems.length
      ? el(
          "ul",
          { class: "checks" },
          row.problems.map((one) =>
            el("li", {}, badge(DRILLED[one.status] || "idle", one.status), el("b", {}, name(one.check, { class: "wrap" })), el("span", {}, name(one.text, { class: "wrap" }))),
          ),
        )
      : null,
    report("drill", { flow: row.flow, began_ms: row.began_ms }),
  );
}

export class Operations {
  constructor({ store }) {
    this.store = store;
    this.operations = new List("There was no operation yet.", operation);
    this.drills = new List("No report of a drill is stored.", drill);
    this.element = el(
      "div",
      { class: "view" },
      el("h1", {}, "Operations"),
      el("p", { class: "quiet" }, "Switchovers, failovers and failbacks of these clusters."),
      this.operations.element,
      el("h2", {}, "Drills"),
      el("p", { class: "quiet" }, el("code", {}, "mirrorless drill FILE --to TARGET"), " rehearses a failover. Its reports are listed here if ", el("code", {}, "mirrorless.drill.reports"), " says where they are stored."),
      this.drills.element,
    );
  }

  draw() {
    for (const one of ["operations", "drills"]) this[one].draw(this.store.rows(one));
  }
}

// Rows as panels, the newest first; drawn again only if they changed.
class List {
  constructor(none, panel) {
    this.none = none;
    this.panel = panel;
    this.element = el("div", { class: "stack" });
  }

  draw(rows) {
    rows.sort((one, other) => other.began_ms - one.began_ms);
    const drawn = JSON.stringify(rows);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.element.replaceChildren(...(rows.length ? rows.map(this.panel) : [el("p", { class: "empty" }, this.none)]));
  }
}
