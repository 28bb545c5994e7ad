// Keeps the current state: a whole snapshot at first, then the differences that the server sends.

const KEYS = {
  topics: ["flow", "topic"],
  halted: ["flow", "topic", "partition"],
  groups: ["flow", "group"],
  operations: ["id", "kind"],
  drills: ["flow", "began_ms"],
};
const POINTS = 60;
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
    this.notes = [];
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

  points(flow, topic = "") {
    return this.history.get(keyOf(flow, topic)) || { rates: [], lags: [] };
  }

  takeWhole(data) {
    for (const name of Object.keys(KEYS)) {
      this.tables[name] = new Map();
      this.put(name, data[name]);
    }
    this.events = data.events;
    this.history = new Map(data.history.map(([flow, topic, rates, lags]) => [keyOf(flow, topic), { rates, lags }]));
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
        this.remember(row.flow, row.topic, row);
      }
    }
    for (const flow of data.flows) this.remember(flow.name, "", flow);
    this.takeSmall(data);
  }

  put(name, rows) {
    for (const row of rows) this.tables[name].set(keyOf(...KEYS[name].map((field) => row[field])), row);
  }

  remember(flow, topic, row) {
    const key = keyOf(flow, topic);
    let points = this.history.get(key);
    if (!points) this.history.set(key, (points = { rates: [], lags: [] }));
    points.rates.push(Math.round(row.records_per_s));
    points.lags.push(row.lag_records);
    if (points.rates.length > POINTS) {
      points.rates.shift();
      points.lags.shift();
    }
  }

  takeSmall(data) {
    for (const name of ["version", "at_ms", "clusters", "flows", "notes", "copies_here"]) this[name] = data[name];
    this.connected = true;
    this.changed();
  }

  setConnected(connected) {
    if (this.connected === connected) return;
    this.connected = connected;
    this.changed();
  }
}
