// All topics of all flows in one table.

import { el, name, setText, stateBadge } from "./dom.js";
import { bytes, count, lagTime, latency, plural, rate } from "./format.js";
import { Sparkline } from "./sparkline.js";
import { Table, built, text } from "./table.js";

// The worst first.
const STATES = ["halted", "unreachable", "resuming", "waiting", "not started", "copying", "caught up"];

function spark(store) {
  return (cell, row) => {
    cell.spark ??= new Sparkline(104, 24);
    if (!cell.firstChild) cell.append(cell.spark.element);
    cell.spark.draw(store.points(row.flow, row.topic).rates);
  };
}

export class Topics {
  constructor({ store, filterBox, open }) {
    this.store = store;
    this.filter = filterBox("Filter topics", () => this.draw());
    this.line = el("p", { class: "quiet", role: "status" });
    this.states = el(
      "select",
      { "aria-label": "State", onchange: () => this.draw() },
      el("option", { value: "" }, "All states"),
      STATES.map((state) => el("option", { value: state }, state)),
    );
    const onNumber = (read) => ({ value: read, descending: true });
    this.table = new Table({
      label: "Topics",
      sort: "lag",
      descending: true,
      open: (row) => open("topics", row.flow, row.topic),
      empty: "No topic matches.",
      columns: [
        { key: "topic", label: "Topic", class: "grow", value: (row) => row.topic, draw: built((row) => row.topic, (topic) => name(topic)) },
        { key: "flow", label: "Flow", class: "w-flow p2", value: (row) => row.flow, draw: built((row) => row.flow, (flow) => name(flow)) },
        { key: "state", label: "State", class: "w-state", value: (row) => STATES.indexOf(row.state), draw: built((row) => row.state, (state) => stateBadge(state)) },
        { key: "lag", label: "Lag", class: "w-number", ...onNumber((row) => row.lag_records), draw: text((row) => count(row.lag_records)) },
        { key: "time", label: "Lag in time", class: "w-number p1", ...onNumber((row) => (row.lag_s === null ? -1 : row.lag_s)), draw: text((row) => (row.lag_records ? lagTime(row) : "")) },
        { key: "rate", label: "Records/s", class: "w-number", ...onNumber((row) => row.records_per_s), draw: text((row) => rate(row.records_per_s)) },
        { key: "spark", label: "Last 2 min", class: "w-spark p1", draw: spark(store) },
        { key: "bytes", label: "Throughput", class: "w-number p3", ...onNumber((row) => row.bytes_per_s || 0), draw: text((row) => bytes(row.bytes_per_s)) },
        { key: "latency", label: "Latency", class: "w-number p3", ...onNumber((row) => (row.latency_ms === null ? -1 : row.latency_ms)), draw: text((row) => latency(row.latency_ms)) },
        { key: "partitions", label: "Partitions", class: "w-number p2", ...onNumber((row) => row.partitions), draw: text((row) => count(row.partitions)) },
      ],
    });
    this.element = el(
      "div",
      { class: "view full" },
      el("h1", {}, "Topics"),
      el("div", { class: "tools" }, this.filter.element, this.states, this.line),
      this.table.frame,
    );
  }

  draw() {
    const all = this.store.rows("topics");
    const { matches } = this.filter;
    const state = this.states.value;
    const shown = all.filter((row) => (!state || row.state === state) && matches(`${row.topic} ${row.flow}`));
    setText(this.line, shown.length === all.length ? plural(all.length, "topic") : `${count(shown.length)} of ${plural(all.length, "topic")}`);
    this.table.show(shown);
  }
}
