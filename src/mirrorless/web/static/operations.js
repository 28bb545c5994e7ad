// Switchovers, failovers and failbacks with their steps, and reports of drills.

import { badge, command, el, name, stateBadge } from "./dom.js";
import { duration, moment, plural } from "./format.js";
import { notices } from "./notices.js";

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
      `Began ${moment(row.began_ms)}`,
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
    row.notes.length ? el("ul", { class: "checks" }, row.notes.map((line) => el("li", {}, badge("warning", "warning"), el("span", {}, name(line, { class: "wrap" }))))) : null,
    row.next_step ? el("div", { class: "fix" }, el("span", {}, el("b", {}, "Next: "), name(row.next_step.replaceAll("`", ""), { class: "wrap" })), row.next_command ? command(row.next_command) : null) : null,
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
      el("h3", {}, name(row.flow), ` ${moment(row.began_ms)}`),
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
    this.operations = new List("No operation has moved applications between these clusters.", operation);
    this.drills = new List("No drill has stored a report yet.", drill);
    this.notices = notices();
    this.element = el(
      "div",
      { class: "view" },
      el("h1", {}, "Operations"),
      el("p", { class: "quiet" }, "Switchovers, failovers and failbacks of these clusters."),
      this.notices.element,
      this.operations.element,
      el("h2", {}, "Drills"),
      el("p", { class: "quiet" }, el("code", {}, "mirrorless drill FILE --to TARGET"), " rehearses a failover. Its reports are listed here if ", el("code", {}, "mirrorless.drill.reports"), " says where they are stored."),
      this.drills.element,
    );
  }

  draw() {
    const reasons = { operations: this.store.reasons("operations"), drills: this.store.reasons("drills") };
    this.notices.show([...reasons.operations, ...reasons.drills].filter(([kind]) => kind === "bad"));
    for (const one of ["operations", "drills"]) {
      const notes = this.store.readings.filter((row) => row.table === one && row.note).map((row) => row.note);
      this[one].draw(this.store.rows(one), [...reasons[one].map(([, line]) => line), ...notes]);
    }
  }
}

// Rows as panels, the newest first; drawn again only if they changed.
class List {
  constructor(none, panel) {
    this.none = none;
    this.panel = panel;
    this.element = el("div", { class: "stack" });
  }

  // `reasons` are why there are no rows, if that is not because there was nothing.
  draw(rows, reasons) {
    rows.sort((one, other) => other.began_ms - one.began_ms);
    const drawn = JSON.stringify([rows, rows.length ? [] : reasons]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.element.replaceChildren(...(rows.length ? rows.map(this.panel) : (reasons.length ? reasons : [this.none]).map((line) => el("p", { class: "empty" }, name(line, { class: "wrap" })))));
  }
}
