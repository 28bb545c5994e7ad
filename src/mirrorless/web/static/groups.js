// Consumer groups: where they are on the source, and what they would read again on the target.

import { badge, el, name, setText } from "./dom.js";
import { count, plural } from "./format.js";
import { notices } from "./notices.js";
import { Table, built, text, titled } from "./table.js";

export class Groups {
  constructor({ store, filterBox, open }) {
    this.store = store;
    this.filter = filterBox("Filter groups", () => this.draw());
    this.line = el("p", { class: "quiet", role: "status" });
    this.notices = notices();
    const number = (key, label, read, extra = "") => ({ key, label, class: `w-number ${extra}`, value: (row) => read(row) ?? -1, descending: true, draw: text((row) => count(read(row))) });
    this.table = new Table({
      label: "Groups",
      sort: "group",
      open: (row) => open("groups", row.flow, row.group),
      columns: [
        { key: "group", label: "Group", class: "grow", value: (row) => row.group, draw: titled((row) => row.group, (row) => [...(row.error ? [["bad", "error"]] : []), [null, row.flow], [null, row.why || row.state]]) },
        { key: "flow", label: "Flow", class: "w-flow p2", value: (row) => row.flow, draw: built((row) => row.flow, (flow) => name(flow)) },
        { key: "state", label: "On the source", class: "w-state p1", value: (row) => row.state, draw: built((row) => row.error || row.state, (state, row) => (row.error ? badge("bad", "error") : el("span", {}, state))) },
        number("partitions", "Partitions", (row) => row.partitions, "p3"),
        number("lag", "Left to read", (row) => row.lag_records),
        number("again", "Reads again", (row) => row.read_again),
        { key: "skipped", label: "Skips", class: "w-number p2", value: (row) => row.skipped, descending: true, draw: text((row) => (row.skipped ? count(row.skipped) : "")) },
        { key: "untranslated", label: "Without a position", class: "w-why p1", value: (row) => row.untranslated, descending: true, draw: built((row) => (row.untranslated ? `${count(row.untranslated)}: ${row.why}` : row.why), (why) => name(why)) },
      ],
    });
    this.element = el(
      "div",
      { class: "view full" },
      el("h1", {}, "Groups"),
      el("p", { class: "quiet" }, "If a group moved to the target now: how many records it would read again, or skip, at most. ", el("code", {}, "mirrorless failover-plan"), " also counts what is not copied yet."),
      this.notices.element,
      el("div", { class: "tools" }, this.filter.element, this.line),
      this.table.frame,
    );
  }

  draw() {
    const all = this.store.rows("groups");
    const { matches } = this.filter;
    const shown = all.filter((row) => matches(`${row.group} ${row.flow}`));
    setText(this.line, shown.length === all.length ? plural(all.length, "group") : `${count(shown.length)} of ${plural(all.length, "group")}`);
    const unread = this.store.reasons("groups");
    this.notices.show(unread.filter(([kind]) => kind === "bad"));
    this.table.explain(...(all.length ? ["No group matches the filter."] : unread.length ? unread.map(([, line]) => line) : this.store.flows.map((flow) => `${flow.source} has no group that the setting groups of ${flow.name} selects.`)));
    this.table.show(shown);
  }
}
