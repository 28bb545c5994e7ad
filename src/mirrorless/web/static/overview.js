// The first view: the picture, a card for each flow, problems and the latest events.

import { badge, el, name, setText } from "./dom.js";
import { eventLine } from "./events.js";
import { ago, bytes, count, lagTime, latency, rate } from "./format.js";
import { Picture, kindOfFlow, stateOf } from "./picture.js";
import { problem } from "./problems.js";
import { Sparkline } from "./sparkline.js";

const EVENTS = 8;
const PROBLEMS = 3;

export class Overview {
  constructor({ store, session, ask }) {
    this.store = store;
    this.session = session;
    this.ask = ask;
    this.cards = new Map();
    this.picture = new Picture();
    this.flows = el("div", { class: "cards" });
    this.clusters = el("div", { class: "notices" });
    this.problems = el("div", { class: "stack" });
    this.more = el("a", { href: "#/problems", class: "more" });
    this.events = el("ol", { class: "events short" });
    this.problemsPart = el("section", { class: "panel" }, el("h2", {}, "Problems"), this.problems, this.more);
    this.element = el(
      "div",
      { class: "overview" },
      el("h1", { class: "hidden" }, "Overview"),
      this.clusters,
      el("section", { class: "panel", "aria-label": "Flows as a picture" }, this.picture.element),
      this.flows,
      this.problemsPart,
      el("section", { class: "panel" }, el("h2", {}, "Latest events"), this.events, el("a", { href: "#/events", class: "more" }, "All events")),
    );
  }

  draw() {
    this.picture.show(this.store);
    const notices = [
      ...this.store.clusters.filter((one) => one.error).map((one) => ["bad", one.error]),
      ...this.store.clusters.filter((one) => one.state === "slow").map((one) => ["warning", `cluster ${one.alias} answers slowly: ${one.answer_ms} ms`]),
      ...this.store.notes.map((text) => ["warning", text]),
    ];
    const state = JSON.stringify(notices);
    if (state !== this.notices) {
      this.notices = state;
      this.clusters.replaceChildren(...notices.map(([kind, text]) => el("p", { class: `notice ${kind}` }, badge(kind, kind === "bad" ? "unavailable" : "note"), name(text, { class: "wrap" }))));
    }
    for (const flow of this.store.flows) {
      if (!this.cards.has(flow.name)) {
        const card = new Card(flow, this);
        this.cards.set(flow.name, card);
        this.flows.append(card.element);
      }
      this.cards.get(flow.name).draw(flow);
    }
    const halted = this.store.rows("halted");
    this.problemsPart.hidden = !halted.length;
    const shown = JSON.stringify(halted.slice(0, PROBLEMS));
    if (shown !== this.shown) {
      this.shown = shown;
      this.problems.replaceChildren(...halted.slice(0, PROBLEMS).map(problem));
    }
    setText(this.more, halted.length > PROBLEMS ? `All ${count(halted.length)} halted partitions` : "");
    const events = this.store.events.slice(-EVENTS).reverse();
    const numbers = events.map((one) => one.number).join();
    if (numbers !== this.numbers) {
      this.numbers = numbers;
      this.events.replaceChildren(...(events.length ? events.map(eventLine) : [el("li", { class: "quiet" }, "Nothing has happened since this page's server started.")]));
    }
  }
}

class Card {
  constructor(flow, { session, ask, store }) {
    this.store = store;
    this.rates = new Sparkline(116, 30);
    this.lags = new Sparkline(116, 30, { class: "spark lag" });
    this.state = el("span", {});
    this.values = {};
    const value = (key, label, extra = null) => {
      this.values[key] = el("b", {});
      return el("div", { class: "value" }, el("span", { class: "quiet" }, label), this.values[key], extra);
    };
    this.lines = el("div", { class: "lines" });
    this.pause = session.actions
      ? el("button", { type: "button", class: "button", onclick: () => ask(this.action, this.flow.name) }, "Pause")
      : null;
    this.element = el(
      "article",
      { class: "panel card" },
      el("header", {}, el("h2", {}, name(flow.source), " → ", name(flow.target)), this.state, this.pause),
      el(
        "div",
        { class: "values" },
        value("rate", "Rate", this.rates.element),
        value("lag", "Lag", this.lags.element),
        value("time", "Lag in time"),
        value("latency", "Latency"),
        value("bytes", "Throughput"),
        value("heartbeat", "Last heartbeat"),
        value("topics", "Topics"),
        value("partitions", "Partitions"),
      ),
      this.lines,
    );
  }

  draw(flow) {
    this.flow = flow;
    this.action = flow.state === "running" ? "pause" : "resume";
    if (this.pause) setText(this.pause, this.action === "pause" ? "Pause" : "Resume");
    const state = stateOf(flow);
    if (state !== this.shown) {
      this.shown = state;
      this.state.replaceChildren(badge(kindOfFlow(flow), state === "not copied" ? "no process copies it" : state));
    }
    const points = this.store.points(flow.name);
    this.rates.draw(points.rates);
    this.lags.draw(points.lags);
    const values = {
      rate: `${rate(flow.records_per_s)} /s`,
      lag: count(flow.lag_records),
      time: flow.lag_records ? lagTime(flow) : "none",
      latency: flow.latency_ms === null ? "not known here" : latency(flow.latency_ms),
      bytes: flow.bytes_per_s === null ? "unknown" : bytes(flow.bytes_per_s),
      heartbeat: ago(flow.heartbeat_ms),
      topics: count(flow.topics),
      partitions: count(flow.partitions),
    };
    for (const [key, text] of Object.entries(values)) setText(this.values[key], text);
    this.values.latency.classList.toggle("faint", flow.latency_ms === null);
    const copiers = flow.copiers.map((one) => (one.share ? `${one.engine} (${one.share})` : one.engine));
    const lines = [
      ["quiet", `${copiers.length ? `Copied by ${copiers.join(" and ")}` : "Copied by no process"}. Engine ${flow.engine}: ${flow.engine_reason}.`],
      ...(flow.waiting ? [["quiet", `Waits: ${flow.waiting}`]] : []),
      ...(flow.error ? [["bad", flow.error]] : []),
      ...(flow.error && flow.read_ms !== null ? [["quiet", `Last read ${ago(flow.read_ms)}.`]] : []),
      ...flow.problems.map((text) => ["warning", text]),
    ];
    const drawn = JSON.stringify(lines);
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.lines.replaceChildren(...lines.map(([kind, text]) => el("p", { class: kind }, name(text, { class: "wrap" }))));
    }
  }
}
