// The panel beside a table: partitions of a topic, positions of a group.

import { el, kindOf, name, setText, stateBadge } from "./dom.js";
import { bytes, catchUp, count, duration, lagOf, lagTime, latency, rate } from "./format.js";
import { problem } from "./problems.js";
import { get } from "./session.js";
import { Sparkline } from "./sparkline.js";
import { Table, built, text, titled } from "./table.js";

const AGAIN_MS = 2000;
// What a state means, as in docs/operations.md.
const MEANINGS = {
  halted: "A partition has a gap, or cannot be copied: it is not copied until an operator acts.",
  unreachable: "A partition has no leader that answers: it is asked again every few seconds.",
  unknown: "The clusters do not answer this page, or were not read yet.",
  resuming: "A partition continues after an interruption.",
  waiting: "An open transaction on the source, or another process, holds a partition back.",
  "not started": "Nothing of a partition was copied yet.",
  copying: "Records are there that are not copied yet.",
  "caught up": "Every record that was there when the source was last asked is copied.",
};
// How an offset was translated; all but the nearest are exact.
const HOW = {
  run: "exact, copied in one run",
  hole: "exact, the records before it do not exist any more",
  walk: "exact, records were counted",
  before: "exact, before the first copied record",
  empty: "exact, the remote partition is empty",
  beyond: "exact, at the end of what is copied",
  pair: "exact, an offset sync is there",
  nearest: "the nearest offset sync before it",
  start: "the first record that the target still has",
  merged: "the least of several sources",
  checkpoint: "as of the last checkpoint",
};
const figure = () => el("figcaption", {});
const last = (seconds) => (seconds ? `last ${duration(seconds)}` : "no point yet");

function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.map(([label, value]) => el("div", {}, el("dt", {}, label), el("dd", {}, value))));
}

const number = (key, label, read, extra = "") => ({
  key,
  label,
  class: `w-number ${extra}`,
  value: (row) => read(row) ?? -1,
  descending: true,
  draw: text((row) => (read(row) === null ? "unknown" : count(read(row)))),
});

class TopicDetails {
  constructor(store, flow, topic) {
    this.store = store;
    this.place = { flow, topic };
    this.facts = el("div", {});
    this.problems = el("div", { class: "stack" });
    this.rates = new Sparkline(460, 64);
    this.lags = new Sparkline(460, 64, { class: "spark lag" });
    this.captions = [figure(), figure()];
    this.table = new Table({
      label: "Partitions",
      sort: "partition",
      rowHeight: 34,
      columns: [
        { key: "partition", label: "Partition", class: "w-small", value: (row) => row.partition, draw: titled((row) => String(row.partition), (row) => [[kindOf(row.state), row.state]]) },
        { key: "state", label: "State", class: "w-state wide", value: (row) => row.state, draw: built((row) => row.state, (state) => stateBadge(state)) },
        number("next", "Next offset", (row) => row.next_offset),
        number("end", "Source end", (row) => row.source_end, "p1"),
        number("lag", "Lag", (row) => row.lag_records),
        { key: "reason", label: "Reason", class: "grow p1", draw: built((row) => row.reason, (reason) => (reason ? name(reason) : "")) },
        { key: "time", label: "Lag in time", class: "w-number p1", value: (row) => row.lag_s ?? -1, descending: true, draw: text((row) => (row.lag_s === null ? "unknown" : row.lag_records ? duration(row.lag_s) : "")) },
      ],
    });
    this.table.show([]);
    this.element = el(
      "div",
      { class: "details" },
      this.facts,
      el("div", { class: "plots" }, el("figure", {}, this.captions[0], this.rates.element), el("figure", {}, this.captions[1], this.lags.element)),
      this.problems,
      el("h3", {}, "Partitions"),
      this.table.frame,
    );
  }

  draw() {
    const row = this.store.topic(this.place.flow, this.place.topic);
    if (!row) {
      this.facts.replaceChildren(el("p", { class: "notice warning" }, "This topic is not replicated any more, or not read yet."));
      return;
    }
    const drawn = JSON.stringify(row);
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      const pairs = [
        ["State", stateBadge(row.state)],
        ["Remote topic", name(row.remote_topic)],
        ["Rate", row.records_per_s === null ? "unknown" : `${rate(row.records_per_s)} records/s`],
        ["Lag", row.lag_records === 0 ? "none" : row.lag_s === null ? lagOf(row) : `${lagOf(row)}, ${lagTime(row)}`],
        ["Time until caught up", catchUp(row)],
      ];
      if (row.latency_ms !== null) pairs.push(["Latency", latency(row.latency_ms)]);
      if (row.bytes_per_s !== null) pairs.push(["Throughput", bytes(row.bytes_per_s)]);
      const meaning = el("p", { class: "quiet meaning" }, `${MEANINGS[row.state] ?? ""} Manual: `, el("code", {}, "operations.md#states-of-a-partition"));
      this.facts.replaceChildren(facts(pairs), meaning, row.error ? el("p", { class: "notice bad" }, name(row.error, { class: "wrap" })) : "");
    }
    const points = this.store.points(row.flow, row.topic);
    setText(this.captions[0], `Records/s, ${last(points.seconds)}`);
    setText(this.captions[1], `Lag, ${last(points.seconds)}`);
    this.rates.draw(points.rates);
    this.lags.draw(points.lags);
    const halted = this.store.problems().filter((one) => one.flow === row.flow && one.topic === row.topic);
    const problems = JSON.stringify(halted);
    if (problems !== this.shown) {
      this.shown = problems;
      this.problems.replaceChildren(...halted.map((one) => problem(one)));
    }
  }

  async load() {
    this.table.show((await get("partitions", this.place)).partitions);
  }
}

class GroupDetails {
  constructor(store, flow, group) {
    this.store = store;
    this.place = { flow, group };
    this.facts = el("div", {});
    this.table = new Table({
      label: "Positions",
      sort: "topic",
      rowHeight: 34,
      empty: "The group has no committed offset in a replicated topic.",
      columns: [
        { key: "topic", label: "Partition", class: "grow", value: (row) => `${row.topic} ${String(row.partition).padStart(8, "0")}`, draw: built((row) => `${row.topic}-${row.partition}`, (place) => name(place)) },
        number("source", "Source offset", (row) => row.source_offset, "p1"),
        number("lag", "Left to read", (row) => row.source_lag, "p1"),
        { key: "target", label: "Target offset", class: "w-number", value: (row) => row.continues_at ?? -1, draw: text((row) => (row.continues_at === null ? "none" : count(row.continues_at))) },
        number("again", "Reads again", (row) => row.read_again),
        number("skips", "Skips", (row) => row.skipped, "p2"),
        { key: "how", label: "How it is known", class: "w-how p2", value: (row) => row.how, draw: built((row) => HOW[row.how] ?? row.how, (how) => name(how)) },
      ],
    });
    this.table.show([]);
    this.element = el("div", { class: "details" }, this.facts, el("h3", {}, "Positions"), this.table.frame);
  }

  draw() {
    const row = this.store.rows("groups").find((one) => one.flow === this.place.flow && one.group === this.place.group);
    const drawn = JSON.stringify(row ?? null);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.facts.replaceChildren(
      row
        ? facts([
            ["On the source", row.state],
            ["Left to read", count(row.lag_records)],
            ["Reads again, at most", count(row.read_again)],
            ["Skips, at most", count(row.skipped)],
            ["No position yet", count(row.untranslated)],
          ])
        : el("p", { class: "notice warning" }, "This group is gone, or not read yet."),
      row?.error ? el("p", { class: "notice bad" }, name(row.error, { class: "wrap" })) : "",
    );
  }

  async load() {
    this.table.show((await get("positions", this.place)).positions);
  }
}

export class Drawer {
  constructor(element, store, onClose) {
    this.element = element;
    this.store = store;
    this.onClose = onClose;
    setInterval(() => this.refresh(), AGAIN_MS);
  }

  show(kind, flow, item) {
    const key = JSON.stringify([kind, flow, item]);
    if (this.key === key) return;
    this.key = key;
    this.details = new (kind === "topics" ? TopicDetails : GroupDetails)(this.store, flow, item);
    this.error = el("p", { class: "notice bad", hidden: true });
    const close = el("button", { type: "button", class: "plain", "aria-label": "Close details", onclick: () => this.onClose() }, "Close");
    this.title = el("h2", { tabindex: "-1" }, name(item, { class: "wrap" }));
    this.element.replaceChildren(el("header", {}, this.title, close), el("p", { class: "quiet" }, name(flow)), this.error, this.details.element);
    this.element.hidden = false;
    document.body.classList.add("with-drawer");
    this.title.focus({ preventScroll: true });
    this.draw();
    this.refresh();
  }

  hide() {
    this.key = this.details = null;
    this.element.hidden = true;
    this.element.replaceChildren();
    document.body.classList.remove("with-drawer");
  }

  draw() {
    this.details?.draw();
  }

  async refresh() {
    const { details } = this;
    if (!details || document.hidden) return;
    try {
      await details.load();
      this.error.hidden = true;
    } catch (error) {
      if (details !== this.details) return;
      setText(this.error, error.message);
      this.error.hidden = false;
    }
  }
}
