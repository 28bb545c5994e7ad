// The picture of all flows: clusters as boxes, flows as arrows with rate, lag and state.

import { el, kindOf, svg, visible } from "./dom.js";
import { ago, bytes, lagOf, lagTime, plural, rate, short } from "./format.js";

const BOX = { width: 224, height: 118 };
const SMALL = { width: 132, height: 86 };
// As in problems.py: above this part of the RPO a lag is a warning.
const NEAR = 0.5;

export class Picture {
  constructor() {
    this.element = el("div", { class: "picture" });
    this.drawn = "";
    new ResizeObserver(() => requestAnimationFrame(() => this.redraw())).observe(this.element);
  }

  show(store) {
    this.store = store;
    this.redraw();
  }

  redraw() {
    if (!this.store || !this.element.clientWidth || !this.store.flows.length) return;
    const width = this.element.clientWidth;
    const { flows } = this.store;
    const clusters = this.store.clusters.map((one) => ({ ...one, answered_ms: 0, marks: marksOf(one.alias, this.store) }));
    const state = JSON.stringify([width, clusters, flows.map((flow) => ({ ...flow, read_ms: 0, heartbeat_ms: 0 })), this.store.connected]);
    if (state === this.drawn) return;
    this.drawn = state;
    const pair = clusters.length === 2;
    const drawing = pair ? (width < 640 ? stacked : beside)(width, clusters, flows) : around(width, clusters, flows);
    const label = flows.map((flow) => `${visible(flow.name)}: ${stateOf(flow)}, ${lagText(flow)}`).join("; ");
    this.element.replaceChildren(
      svg("svg", { viewBox: `0 0 ${width} ${drawing.height}`, width, height: drawing.height, role: "img", "aria-label": label }, drawing.parts),
    );
  }
}

// What a cluster's box says about applications and fences: short lines.
function marksOf(alias, { applications, fences }) {
  const topics = fences.filter((one) => one.cluster === alias).reduce((sum, one) => sum + one.count, 0);
  const lines = [];
  if (applications.some((one) => one.cluster === alias)) lines.push(["good", "applications"]);
  if (topics) lines.push(["warning", `fence on ${plural(topics, "topic")}`]);
  return lines;
}

export function stateOf(flow) {
  if (flow.error) return "unreachable";
  if (flow.read_ms === null) return "not read yet";
  if (flow.halted) return flow.halted === flow.partitions ? "halted" : `${flow.halted} halted`;
  if (flow.state !== "running") return flow.state;
  if (!flow.copiers.length && flow.bytes_per_s === null && flow.read_ms !== null && !flow.waiting) return "not copied";
  if (flow.rpo_s !== null && flow.lag_s !== null && flow.lag_s > flow.rpo_s) return "beyond RPO";
  if (flow.lag_records === null) return "lag unknown";
  return flow.lag_records || flow.unknown_partitions ? "copying" : "caught up";
}

export function kindOfFlow(flow) {
  const state = stateOf(flow);
  if (flow.halted && state.endsWith("halted")) return "bad";
  if (state === "not copied" || state === "beyond RPO") return "bad";
  if (state === "copying" && flow.rpo_s !== null && (flow.lag_s ?? 0) > NEAR * flow.rpo_s) return "warning";
  return kindOf(state);
}

function rateText(flow) {
  if (flow.records_per_s === null) return "rate unknown";
  const amount = `${rate(flow.records_per_s)} records/s`;
  return flow.bytes_per_s === null ? amount : `${amount} · ${bytes(flow.bytes_per_s)}`;
}

function lagText(flow) {
  if (flow.error) return flow.read_ms === null ? "not read yet" : `last read ${ago(flow.read_ms)}`;
  if (flow.lag_records === 0 && !flow.unknown_partitions) return flow.halted ? "no lag known" : "no lag";
  const lag = `lag ${lagOf(flow, short)}`;
  return flow.lag_s === null ? lag : `${lag} · ${lagTime(flow)}`;
}

function cut(text, most) {
  const shown = visible(text);
  return shown.length > most ? `${shown.slice(0, most - 1)}…` : shown;
}

const canvas = document.createElement("canvas").getContext("2d");

// The width of a text in pixels.
function measure(text, size) {
  canvas.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return canvas.measureText(text).width;
}

// A line in the middle of its place, with the shape of a state before it.
function marked(x, y, kind, text, size, properties) {
  const width = measure(text, size);
  return [mark(kind, x - width / 2 - 10, y - 10.5), label(x + 8, y, text, properties)];
}

function label(x, y, content, properties = {}) {
  return svg("text", { x, y, "text-anchor": "middle", ...properties }, content);
}

function box(cluster, x, y, { width, height }) {
  const kind = kindOf(cluster.state);
  const small = height < 80;
  const middle = x + width / 2;
  const facts = [cluster.state];
  const about = [];
  if (cluster.kafka !== null && !small) about.push(`Kafka ${cluster.kafka}`);
  if (cluster.brokers !== null && !small) about.push(plural(cluster.brokers, "broker"));
  if (cluster.answer_ms !== null && cluster.state !== "unavailable") facts.push(`${cluster.answer_ms} ms`);
  const text = facts.join(" · ");
  const below = small ? 20 : about.length ? 60 : 42;
  const line = y + height / 2 - (small ? 4 : below / 2 - 6) - (cluster.marks.length ? 11 : 0);
  return svg(
    "g",
    { class: `cluster ${kind}` },
    svg("title", {}, `${visible(cluster.alias)}: ${visible(cluster.error || cluster.bootstrap_servers)}`),
    svg("rect", { x, y, width, height, rx: 10 }),
    label(middle, line, cut(cluster.alias, Math.floor(width / 9)), { class: "alias" }),
    small ? null : label(middle, line + 20, cut(cluster.bootstrap_servers, Math.floor(width / 6.8)), { class: "servers" }),
    about.length ? label(middle, line + 38, about.join(" · "), { class: "servers" }) : null,
    marked(middle, line + below, kind, text, 12, { class: "facts" }),
    cluster.marks.length ? marked(middle, line + below + (small ? 20 : 22), cluster.marks[cluster.marks.length - 1][0], (small ? cluster.marks.slice(-1) : cluster.marks).map(([, mark]) => mark).join(" · "), 12, { class: "facts here" }) : null,
  );
}

const MARKS = {
  good: "M6 1a5 5 0 1 1 0 10A5 5 0 0 1 6 1Z",
  moving: "M2 1l9 5-9 5z",
  warning: "M6 1l5.5 10H.5z",
  bad: "M1 1h10v10H1z",
  idle: "M2 6a4 4 0 1 0 8 0A4 4 0 1 0 2 6ZM4 6a2 2 0 1 1 4 0A2 2 0 1 1 4 6Z",
  paused: "M1.5 1h3.4v10H1.5zM7.1 1h3.4v10H7.1z",
};

function mark(kind, x, y) {
  return svg("path", { class: `mark ${kind}`, d: MARKS[kind], transform: `translate(${x} ${y})` });
}

function thickness(flow) {
  return Math.min(7, 2 + Math.log10(1 + (flow.records_per_s ?? 0)));
}

function arrow(flow, path, end, angle) {
  const kind = kindOfFlow(flow);
  const moving = flow.records_per_s > 0 && !flow.error;
  return [
    svg("path", { class: `arrow ${kind}${moving ? " moving" : ""}`, d: path, "stroke-width": thickness(flow) }),
    moving ? svg("path", { class: "stream", d: path }) : null,
    svg("path", { class: `point ${kind}`, d: "M0 0L-14 -8V8Z", transform: `translate(${end.x} ${end.y}) rotate(${angle})` }),
  ];
}

// Two clusters side by side, one lane for each flow.
function beside(width, clusters, flows) {
  const lane = 78;
  const height = Math.max(150, flows.length * lane + 30);
  const size = { width: Math.min(BOX.width, width * 0.24), height: Math.min(height - 16, Math.max(BOX.height, flows.length * lane)) };
  const top = (height - size.height) / 2;
  const places = [8, width - size.width - 8];
  const parts = clusters.map((cluster, index) => box(cluster, places[index], top, size));
  flows.forEach((flow, index) => {
    const y = height / 2 + (index - (flows.length - 1) / 2) * lane + 2;
    const forward = flow.source === clusters[0].alias;
    const from = forward ? places[0] + size.width + 8 : places[1] - 8;
    const to = forward ? places[1] - 8 : places[0] + size.width + 8;
    const stop = to + (forward ? -10 : 10);
    parts.push(...arrow(flow, `M${from} ${y}L${stop} ${y}`, { x: to, y }, forward ? 0 : 180));
    const state = `${stateOf(flow)} · ${lagText(flow)}`;
    const middle = (from + to) / 2;
    parts.push(
      label(middle, y - 13, rateText(flow), { class: "rate" }),
      ...marked(middle, y + 25, kindOfFlow(flow), state, 13, { class: `state ${kindOfFlow(flow)}` }),
    );
  });
  return { height, parts };
}

// Two clusters one above the other, for narrow windows.
function stacked(width, clusters, flows) {
  const size = { width: width - 16, height: 98 };
  const between = 132;
  const height = size.height * 2 + between + 16;
  const parts = clusters.map((cluster, index) => box(cluster, 8, 8 + index * (size.height + between), size));
  const column = width / flows.length;
  flows.forEach((flow, index) => {
    const x = 8 + column * index + 22;
    const forward = flow.source === clusters[0].alias;
    const [high, low] = [8 + size.height + 10, size.height + between];
    const [from, to] = forward ? [high, low] : [low, high];
    parts.push(...arrow(flow, `M${x} ${from}L${x} ${to + (forward ? -10 : 10)}`, { x, y: to }, forward ? 90 : -90));
    const middle = (high + low) / 2;
    const left = x + 16;
    parts.push(
      label(left, middle - 38, cut(`${flow.source} → ${flow.target}`, Math.floor((column - 40) / 8)), { class: "alias", "text-anchor": "start" }),
      label(left, middle - 18, flow.records_per_s === null ? "rate unknown" : `${rate(flow.records_per_s)} rec/s`, { class: "rate", "text-anchor": "start" }),
      mark(kindOfFlow(flow), left, middle - 6),
      label(left + 17, middle + 5, stateOf(flow), { class: `state ${kindOfFlow(flow)}`, "text-anchor": "start" }),
      label(left, middle + 25, lagText(flow), { class: "servers", "text-anchor": "start" }),
    );
  });
  return { height, parts };
}

// More clusters on an ellipse, flows as curves between them.
function around(width, clusters, flows) {
  const size = width < 640 ? SMALL : { width: 168, height: 72 };
  const height = Math.max(300, Math.min(520, 150 + clusters.length * 60));
  const radius = { x: (width - size.width) / 2 - 10, y: (height - size.height) / 2 - 10 };
  const centre = { x: width / 2, y: height / 2 };
  const places = new Map(
    clusters.map((cluster, index) => {
      const angle = (2 * Math.PI * index) / clusters.length - Math.PI / 2 - (clusters.length === 4 ? Math.PI / 4 : 0);
      return [cluster.alias, { x: centre.x + radius.x * Math.cos(angle), y: centre.y + radius.y * Math.sin(angle) }];
    }),
  );
  const parts = [];
  const labels = [];
  for (const flow of flows) {
    const [from, to] = [places.get(flow.source), places.get(flow.target)];
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy) || 1;
    const bend = { x: (from.x + to.x) / 2 + (-dy / length) * 34, y: (from.y + to.y) / 2 + (dx / length) * 34 };
    const begin = edge(from, bend, size, 6);
    const end = edge(to, bend, size, 8);
    const angle = (Math.atan2(end.y - bend.y, end.x - bend.x) * 180) / Math.PI;
    parts.push(...arrow(flow, `M${begin.x} ${begin.y}Q${bend.x} ${bend.y} ${end.x} ${end.y}`, end, angle));
    const middle = { x: (begin.x + 2 * bend.x + end.x) / 4, y: (begin.y + 2 * bend.y + end.y) / 4 };
    const state = `${stateOf(flow)} · ${lagText(flow)}`;
    const room = Math.max(measure(state, 13) + 44, 120);
    labels.push(
      svg("rect", { class: "plate", x: middle.x - room / 2, y: middle.y - 22, width: room, height: 44, rx: 6 }),
      label(middle.x, middle.y - 4, flow.records_per_s === null ? "rate unknown" : `${rate(flow.records_per_s)} records/s`, { class: "rate" }),
      ...marked(middle.x, middle.y + 14, kindOfFlow(flow), state, 13, { class: `state ${kindOfFlow(flow)}` }),
    );
  }
  for (const cluster of clusters) {
    const place = places.get(cluster.alias);
    parts.push(box(cluster, place.x - size.width / 2, place.y - size.height / 2, size));
  }
  return { height, parts: [...parts, ...labels] };
}

// Where the line from a box's centre to a point leaves the box.
function edge(centre, point, size, gap) {
  const [dx, dy] = [point.x - centre.x, point.y - centre.y];
  const scale = Math.min((size.width / 2 + gap) / Math.abs(dx || 1e-9), (size.height / 2 + gap) / Math.abs(dy || 1e-9));
  return { x: centre.x + dx * scale, y: centre.y + dy * scale };
}
