// All topics of all flows in one table.

import { el, kindOf, name, setText, stateBadge } from "./dom.js";
import { bytes, catchUp, count, lagOf, lagTime, latency, plural, rate } from "./format.js";
import { Sparkline } from "./sparkline.js";
import { Table, built, text, titled } from "./table.js";

// The worst first.
const STATES = ["halted", "unreachable", "unknown", "resuming", "waiting", "not started", "copying", "caught up"];

function spark(store) {
  return (cell, row) => {
    cell.spark ??= new Sparkline(104, 24);
    if (!cell.firstChild) cell.append(cell.spark.element);
    cell.spark.draw(store.points(row.flow, row.topic).rates);
  };
}

function whyNone(flow) {
  if (flow.topics === null) return `Topics of ${flow.name}: unknown. ${flow.error ?? "They are not read yet."}`;
  return `${flow.name} copies no topic: the setting topics selects none that ${flow.source} has. mirrorless plan says why each is left out.`;
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
      columns: [
        { key: "topic", label: "Topic", class: "grow", value: (row) => row.topic, draw: titled((row) => row.topic, (row) => [[kindOf(row.state), row.state], [null, row.flow]]) },
        { key: "flow", label: "Flow", class: "w-flow p2", value: (row) => row.flow, draw: built((row) => row.flow, (flow) => name(flow)) },
        { key: "state", label: "State", class: "w-state wide", value: (row) => STATES.indexOf(row.state), draw: built((row) => row.state, (state) => stateBadge(state)) },
        { key: "lag", label: "Lag", class: "w-number", ...onNumber((row) => row.lag_records ?? Infinity), draw: text((row) => lagOf(row)) },
        { key: "time", label: "Lag in time", class: "w-number p1", ...onNumber((row) => (row.lag_s === null ? -1 : row.lag_s)), draw: text((row) => (row.lag_records === 0 ? "" : lagTime(row))) },
        { key: "soon", label: "Caught up", class: "w-soon p1", ...onNumber((row) => row.catch_up_s ?? Infinity), draw: text((row) => (row.lag_records === 0 ? "" : catchUp(row))) },
        { key: "rate", label: "Records/s", class: "w-number", ...onNumber((row) => row.records_per_s ?? -1), draw: text((row) => rate(row.records_per_s)) },
        { key: "spark", label: "Last 20 min", class: "w-spark p2", draw: spark(store) },
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
    this.table.explain(...(all.length ? ["No topic matches the filter."] : this.store.flows.map(whyNone)));
    this.table.show(shown);
  }
}
