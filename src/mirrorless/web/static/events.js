// What happened, the newest first.

import { badge, el, kindOf, name, setText } from "./dom.js";
import { clock, count, moment, plural, zone } from "./format.js";

export function eventLine(event) {
  return el(
    "li",
    { class: event.level },
    el("time", { datetime: new Date(event.at_ms).toISOString(), title: moment(event.at_ms) }, clock(event.at_ms)),
    badge(kindOf(event.level), event.level),
    el("span", { class: "text" }, event.flow ? el("b", {}, name(event.flow), " ") : null, name(event.text, { class: "wrap" })),
  );
}

export class Events {
  constructor({ store, filterBox }) {
    this.store = store;
    this.filter = filterBox("Filter events", () => this.draw());
    this.line = el("p", { class: "quiet", role: "status" });
    this.list = el("ol", { class: "events panel" });
    this.element = el(
      "div",
      { class: "view" },
      el("h1", {}, "Events"),
      el("p", { class: "quiet" }, `Since this page's server started, the latest 500. Times are those of this browser's clock, ${zone()}.`),
      el("div", { class: "tools" }, this.filter.element, this.line),
      this.list,
    );
  }

  draw() {
    const { matches } = this.filter;
    const all = this.store.events;
    const shown = all.filter((row) => matches(`${row.level} ${row.flow} ${row.text}`)).reverse();
    setText(this.line, shown.length === all.length ? plural(all.length, "event") : `${count(shown.length)} of ${plural(all.length, "event")}`);
    const drawn = shown.map((one) => one.number).join();
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const none = all.length ? "No event matches the filter." : "Nothing has happened since this page's server started.";
    this.list.replaceChildren(...(shown.length ? shown.map(eventLine) : [el("li", { class: "quiet" }, none)]));
  }
}
