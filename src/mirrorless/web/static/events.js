// What happened, the newest first.

import { badge, el, kindOf, name } from "./dom.js";
import { clock } from "./format.js";
import { Table, built, text } from "./table.js";

export function eventLine(event) {
  return el(
    "li",
    { class: event.level },
    el("time", { datetime: new Date(event.at_ms).toISOString() }, clock(event.at_ms)),
    badge(kindOf(event.level), event.level),
    el("span", { class: "text" }, event.flow ? el("b", {}, name(event.flow), " ") : null, name(event.text, { class: "wrap" })),
  );
}

export class Events {
  constructor({ store, filterBox }) {
    this.store = store;
    this.filter = filterBox("Filter events", () => this.draw());
    this.table = new Table({
      label: "Events",
      sort: "time",
      descending: true,
      empty: "No event matches.",
      columns: [
        { key: "time", label: "Time", class: "w-time", value: (row) => row.number, draw: text((row) => clock(row.at_ms)), descending: true },
        { key: "level", label: "Level", class: "w-level", value: (row) => row.level, draw: built((row) => row.level, (level) => badge(kindOf(level), level)) },
        { key: "flow", label: "Flow", class: "w-flow p2", value: (row) => row.flow, draw: built((row) => row.flow, (flow) => name(flow)) },
        { key: "text", label: "Event", class: "grow", value: (row) => row.text, draw: built((row) => row.text, (line) => name(line)) },
      ],
    });
    this.element = el("div", { class: "view full" }, el("h1", {}, "Events"), el("div", { class: "tools" }, this.filter.element), this.table.frame);
  }

  draw() {
    const { matches } = this.filter;
    this.table.show(this.store.events.filter((row) => matches(`${row.level} ${row.flow} ${row.text}`)));
  }
}
