// The first view: the picture, a card for each flow, problems and the latest events.

import { badge, command, el, name, setText } from "./dom.js";
import { eventLine } from "./events.js";
import { ago, bytes, catchUp, count, duration, lagOf, lagTime, latency, moment, rate } from "./format.js";
import { Picture, kindOfFlow, stateOf } from "./picture.js";
import { problem, unknowns } from "./problems.js";
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
    this.applications = el("section", { class: "panel where-applications" });
    this.unknown = el("p", { class: "notice idle", hidden: true });
    this.problems = el("div", { class: "stack" });
    this.more = el("a", { href: "#/problems", class: "more" });
    this.events = el("ol", { class: "events short" });
    this.problemsPart = el("section", { class: "panel" }, el("h2", {}, "What needs action first"), this.problems, this.more);
    this.element = el(
      "div",
      { class: "overview" },
      el("h1", { class: "hidden" }, "Overview"),
      this.problemsPart,
      this.unknown,
      el("section", { class: "panel", "aria-label": "Flows as a picture" }, this.picture.element),
      this.applications,
      this.flows,
      el("section", { class: "panel" }, el("h2", {}, "Latest events"), this.events, el("a", { href: "#/events", class: "more" }, "All events")),
    );
  }

  draw() {
    this.picture.show(this.store);
    const unknown = unknowns(this.store).slice(0, 4).join("; ");
    this.unknown.hidden = !unknown;
    setText(this.unknown, `Unknown: ${unknown}.`);
    this.drawApplications();
    for (const flow of this.store.flows) {
      if (!this.cards.has(flow.name)) {
        const card = new Card(flow, this);
        this.cards.set(flow.name, card);
        this.flows.append(card.element);
      }
      this.cards.get(flow.name).draw(flow);
    }
    const problems = this.store.problems();
    this.problemsPart.hidden = !problems.length;
    const shown = JSON.stringify(problems.slice(0, PROBLEMS));
    if (shown !== this.shown) {
      this.shown = shown;
      this.problems.replaceChildren(...problems.slice(0, PROBLEMS).map((row, index) => problem(row, index > 0)));
    }
    setText(this.more, problems.length > 1 ? `All ${count(problems.length)} problems, and what fixes them` : "");
    const events = this.store.events.slice(-EVENTS).reverse();
    const numbers = events.map((one) => one.number).join();
    if (numbers !== this.numbers) {
      this.numbers = numbers;
      this.events.replaceChildren(...(events.length ? events.map(eventLine) : [el("li", { class: "quiet" }, "Nothing has happened since this page's server started.")]));
    }
  }

  drawApplications() {
    const { applications, fences } = this.store;
    const unread = this.store.reasons("fences");
    const drawn = JSON.stringify([applications, fences, unread]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.applications.replaceChildren(
      el("h2", {}, "Applications"),
      ...applications.map((one) => el("p", {}, where(one))),
      ...fences.map((one) =>
        el("div", { class: "fix" }, el("span", {}, badge("warning", `fence on ${one.cluster || "a topic"}`), " ", name(one.text, { class: "wrap" }), one.operation ? name(`: ${one.topics.join(", ")}${one.count > one.topics.length ? ` and ${count(one.count - one.topics.length)} more` : ""}.`, { class: "wrap" }) : ""), one.fix.command ? command(one.fix.command) : null),
      ),
      ...(fences.length ? [] : unread.length ? unread.map(([, line]) => el("p", { class: "quiet" }, name(line, { class: "wrap" }))) : [el("p", { class: "quiet" }, "No fence blocks writers.")]),
    );
  }
}

// On which cluster of a pair applications are, and since which operation.
function where(row) {
  const between = [name(row.between[0]), " and ", name(row.between[1]), ": "];
  if (row.cluster === null) return [...between, row.is_known ? "" : el("b", {}, "unknown, "), name(row.text, { class: "wrap" }), "."];
  const since = `, since ${moment(row.since_ms)}, by ${row.kind} ${row.operation}`;
  return [...between, "on ", el("b", {}, name(row.cluster)), since, row.is_known ? "." : name(`; that was last read before: ${row.text}`, { class: "wrap" })];
}

class Card {
  constructor(flow, { session, ask, store }) {
    this.store = store;
    this.rates = new Sparkline(116, 30);
    this.lags = new Sparkline(116, 30, { class: "spark lag" });
    this.state = el("span", {});
    this.values = {};
    this.limits = {};
    const value = (key, label, extra = null) => {
      this.values[key] = el("b", {});
      this.limits[key] = el("span", { class: "quiet limit" });
      return el("div", { class: "value" }, el("span", { class: "quiet" }, label), this.values[key], this.limits[key], extra);
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
        value("soon", "Time until caught up"),
        value("latency", "Latency"),
        value("bytes", "Throughput"),
        value("groups", "Group offsets"),
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
    if (this.pause) this.pause.disabled = flow.state === "unknown";
    if (this.pause) setText(this.pause, this.action === "pause" ? "Pause" : "Resume");
    const state = stateOf(flow);
    const shown = `${kindOfFlow(flow)} ${state}`;
    if (shown !== this.shown) {
      this.shown = shown;
      this.state.replaceChildren(badge(kindOfFlow(flow), state === "not copied" ? "no process copies it" : state));
    }
    const points = this.store.points(flow.name);
    this.rates.draw(points.rates);
    this.lags.draw(points.lags);
    const values = {
      rate: flow.records_per_s === null ? "unknown" : `${rate(flow.records_per_s)} /s`,
      lag: lagOf(flow),
      time: flow.lag_records === 0 && !flow.unknown_partitions ? "none" : lagTime(flow),
      soon: flow.state === "running" || flow.state === "unknown" ? catchUp(flow) : flow.state,
      latency: flow.latency_ms !== null ? latency(flow.latency_ms) : !this.store.copies_here ? "not known here" : flow.error ? "unknown" : "nothing is copied now",
      bytes: flow.bytes_per_s === null ? "unknown" : bytes(flow.bytes_per_s),
      groups: flow.groups_age_ms !== null ? `${latency(flow.groups_age_ms)} behind` : "by checkpoint runs, or not known here",
      heartbeat: flow.has_heartbeat === null ? "unknown" : flow.has_heartbeat ? ago(flow.heartbeat_ms) : "none on the target",
      topics: count(flow.topics),
      partitions: count(flow.partitions),
    };
    for (const [key, text] of Object.entries(values)) setText(this.values[key], text);
    const isPast = flow.error !== null && flow.read_ms !== null;
    const limits = {
      rate: points.seconds ? `last ${duration(points.seconds)}` : "",
      lag: isPast && flow.last_lag_records !== null ? `${count(flow.last_lag_records)} ${ago(flow.read_ms)}` : flow.unknown_partitions && flow.partitions ? `unknown of ${count(flow.unknown_partitions)} of ${count(flow.partitions)} partitions` : points.seconds ? `last ${duration(points.seconds)}` : "",
      time: flow.rpo_s === null ? "" : `RPO ${duration(flow.rpo_s)}`,
      bytes: flow.limit_bytes_per_s === null ? "" : `limit ${bytes(flow.limit_bytes_per_s)}`,
      topics: isPast ? `as of ${ago(flow.read_ms)}` : "",
    };
    for (const [key, text] of Object.entries(limits)) setText(this.limits[key], text);
    for (const [key, value] of Object.entries(this.values)) value.classList.toggle("faint", values[key] === "unknown" || (key === "latency" && flow.latency_ms === null) || (key === "groups" && flow.groups_age_ms === null));
    this.values.time.classList.toggle("bad", state === "beyond RPO");
    const copiers = flow.copiers.map((one) => (one.share ? `${one.engine} (${one.share})` : one.engine));
    const lines = [
      ["quiet", `${copiers.length ? `Copied by ${copiers.join(" and ")}` : flow.state === "unknown" ? "Which process copies it is unknown" : "Copied by no process"}. Engine ${flow.engine}: ${flow.engine_reason}.`],
      ...(flow.waiting ? [["quiet", `Waits: ${flow.waiting}`]] : []),
      ...(flow.error ? [["bad", flow.read_ms === null ? "Not read yet: see what needs action first." : `Last read ${ago(flow.read_ms)}: see what needs action first.`]] : []),
      ...flow.problems.map((text) => ["warning", text]),
    ];
    const drawn = JSON.stringify(lines);
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.lines.replaceChildren(...lines.map(([kind, text]) => el("p", { class: kind }, name(text, { class: "wrap" }))));
    }
  }
}
