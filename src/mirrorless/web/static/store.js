// Keeps the current state: a whole snapshot at first, then the differences that the server sends.

import { ago } from "./format.js";

const KEYS = {
  topics: ["flow", "topic"],
  problems: ["kind", "subject"],
  groups: ["flow", "group"],
  operations: ["id", "kind"],
  drills: ["flow", "began_ms"],
};
// As in feed.py: a point of a whole flow lasts 30 s, one of a topic 10 s.
export const POINTS = 120;
const POINT_MS = { flow: 30_000, topic: 10_000 };
const EVENTS = 500;

export function keyOf(...parts) {
  return JSON.stringify(parts);
}

export class Store {
  constructor() {
    this.version = 0;
    this.at_ms = 0;
    this.clusters = [];
    this.flows = [];
    this.applications = [];
    this.fences = [];
    this.readings = [];
    this.events = [];
    this.tables = Object.fromEntries(Object.keys(KEYS).map((name) => [name, new Map()]));
    this.history = new Map();
    this.connected = false;
    this.listeners = new Set();
  }

  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  rows(name) {
    return [...this.tables[name].values()];
  }

  topic(flow, topic) {
    return this.tables.topics.get(keyOf(flow, topic));
  }

  // Rates and lags, and for how many seconds they are known.
  points(flow, topic = "") {
    const known = this.history.get(keyOf(flow, topic)) || { numbers: [], rates: [], lags: [] };
    const { numbers } = known;
    const seconds = numbers.length ? ((numbers[numbers.length - 1] - numbers[0] + 1) * POINT_MS[topic ? "topic" : "flow"]) / 1000 : 0;
    return { ...known, seconds };
  }

  // Why a table is empty, or how old it is: lines of [kind, text] for a table, and for what would be known of flows.
  reasons(table) {
    return this.readings
      .filter((one) => one.table === table)
      .flatMap((one) => {
        const of = one.flow ? `${table} of ${one.flow}` : table;
        if (one.error) return [["bad", `${of}: ${one.read_ms === null ? "unknown" : `as of ${ago(one.read_ms)}`}, as they cannot be read now: ${one.error}`]];
        return one.read_ms === null ? [["idle", `${of}: not read yet`]] : [];
      });
  }

  problems() {
    return this.rows("problems").sort((one, other) => one.rank - other.rank || (one.subject < other.subject ? -1 : 1));
  }

  takeWhole(data) {
    for (const name of Object.keys(KEYS)) {
      this.tables[name] = new Map();
      this.put(name, data[name]);
    }
    this.events = data.events;
    this.history = new Map(data.history.map(([flow, topic, numbers, rates, lags]) => [keyOf(flow, topic), { numbers, rates, lags }]));
    this.takeSmall(data);
  }

  takeDelta(data) {
    for (const name of Object.keys(KEYS)) {
      this.put(name, data[name]);
      for (const key of data.gone[name]) {
        this.tables[name].delete(keyOf(...key));
        if (name === "topics") this.history.delete(keyOf(...key));
      }
    }
    this.events = [...this.events, ...data.events].slice(-EVENTS);
    for (const row of this.tables.topics.values()) {
      if (row.records_per_s || row.lag_records || this.history.has(keyOf(row.flow, row.topic))) {
        this.remember(row.flow, row.topic, row, Math.floor(data.at_ms / POINT_MS.topic));
      }
    }
    for (const flow of data.flows) this.remember(flow.name, "", flow, Math.floor(data.at_ms / POINT_MS.flow));
    this.takeSmall(data);
  }

  put(name, rows) {
    for (const row of rows) this.tables[name].set(keyOf(...KEYS[name].map((field) => row[field])), row);
  }

  // Of one point the last rate and the greatest lag are kept, null if unknown.
  remember(flow, topic, row, number) {
    const key = keyOf(flow, topic);
    let points = this.history.get(key);
    if (!points) this.history.set(key, (points = { numbers: [], rates: [], lags: [] }));
    const { numbers, rates, lags } = points;
    const last = numbers.length - 1;
    const rate = row.records_per_s === null ? null : Math.round(row.records_per_s);
    if (numbers[last] === number) {
      rates[last] = rate;
      lags[last] = row.lag_records === null ? lags[last] : Math.max(row.lag_records, lags[last] ?? 0);
      return;
    }
    numbers.push(number);
    rates.push(rate);
    lags.push(row.lag_records);
    if (numbers.length > POINTS) for (const some of [numbers, rates, lags]) some.shift();
  }

  takeSmall(data) {
    for (const name of ["version", "at_ms", "clusters", "flows", "applications", "fences", "readings", "copies_here"]) this[name] = data[name];
    this.connected = true;
    this.changed();
  }

  setConnected(connected) {
    if (this.connected === connected) return;
    this.connected = connected;
    this.changed();
  }
}
