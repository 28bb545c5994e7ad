// Numbers and times as text.

const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value) {
  return value === null || value === undefined ? "unknown" : COUNT.format(value);
}

export function short(value) {
  return value < 10_000 ? COUNT.format(Math.round(value)) : SHORT.format(value);
}

export function rate(value) {
  if (value === null || value === undefined) return "unknown";
  return value > 0 && value < 10 ? value.toFixed(1) : short(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "";
  if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e4 && value > 0 ? 1 : 0)} kB/s`;
  return `${(value / 1e6).toFixed(1)} MB/s`;
}

export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// The lag of a flow or topic; a minimum if it is not known of every partition.
export function lagOf(row, shown = count) {
  if (row.lag_records === null) return "unknown";
  return row.unknown_partitions ? `over ${shown(row.lag_records)}` : shown(row.lag_records);
}

// When the lag would be 0, if it continued to shrink as in the last half minute.
export function catchUp(row) {
  if (row.lag_records === 0 && !row.unknown_partitions) return "caught up";
  if (row.catch_up_s !== null) return row.catch_up_s < 5 ? "within 5 s" : `in ${duration(row.catch_up_s)}`;
  if (row.lag_records === null || row.lag_per_s === null || row.unknown_partitions) return "unknown";
  return row.lag_per_s > 0 ? `lag grows, ${rate(row.lag_per_s)}/s` : "lag does not shrink";
}

export function lagTime(row) {
  if (row.lag_s === null) return "unknown";
  return row.lag_is_minimum && row.lag_records ? `over ${duration(row.lag_s)}` : duration(row.lag_s);
}

export function latency(value) {
  return value === null ? "" : value < 10_000 ? `${COUNT.format(value)} ms` : duration(value / 1000);
}

export function ago(ms, now = Date.now()) {
  return ms === null ? "never" : `${duration(Math.max(0, (now - ms) / 1000))} ago`;
}

export function clock(ms) {
  const time = new Date(ms);
  const today = new Date().toDateString() === time.toDateString();
  return (today ? "" : `${time.toLocaleDateString("en-CA")} `) + time.toLocaleTimeString("en-GB");
}

// The offset of this browser's clock from UTC at a time.
export function zone(ms = Date.now()) {
  const minutes = -new Date(ms).getTimezoneOffset();
  const rest = Math.abs(minutes) % 60;
  const hours = Math.floor(Math.abs(minutes) / 60);
  return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest ? `:${String(rest).padStart(2, "0")}` : ""}`;
}

// A time with its date and zone.
export function moment(ms) {
  const time = new Date(ms);
  return `${time.toLocaleDateString("en-CA")} ${time.toLocaleTimeString("en-GB")} ${zone(ms)}`;
}

export function plural(number, noun) {
  return `${COUNT.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}
