// Builds elements. Data becomes text nodes and attributes only; markup is never made from data.

const SVG = "http://www.w3.org/2000/svg";
// Characters that are invisible, or that change the direction of the text around them.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]/u;
const HIDDEN_ALL = new RegExp(HIDDEN.source, "gu");

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

// A text with visible escapes in place of hidden characters.
export function visible(text) {
  return String(text).replace(HIDDEN_ALL, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

// A name that comes from a cluster: isolated from the text around it, cut at the end of its place.
export function name(text, properties = {}) {
  const made = el("bdi", { class: "name", dir: "ltr", title: visible(text), ...properties });
  let rest = String(text);
  for (let found = rest.match(HIDDEN); found; found = rest.match(HIDDEN)) {
    if (found.index) made.append(rest.slice(0, found.index));
    made.append(el("span", { class: "escape" }, visible(found[0])));
    rest = rest.slice(found.index + found[0].length);
  }
  made.append(rest);
  return made;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const SHAPES = {
  moving: "M4 2l9.5 6L4 14z",
  good: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2Z",
  warning: "M8 2l6.5 12h-13z",
  bad: "M3 3h10v10H3z",
  idle: "M3 8a5 5 0 1 0 10 0A5 5 0 1 0 3 8ZM5.4 8a2.6 2.6 0 1 1 5.2 0 2.6 2.6 0 1 1-5.2 0Z",
  paused: "M3.5 3h3.2v10H3.5zM9.3 3h3.2v10H9.3z",
};

// A state as a shape and a word, so that no colour is needed to read it.
export function badge(kind, text, properties = {}) {
  const shape = svg("svg", { class: "shape", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: SHAPES[kind] }));
  return el("span", { class: `badge ${kind}`, ...properties }, shape, el("span", {}, text));
}

const KINDS = {
  running: "good", available: "good", copying: "moving", "caught up": "good", completed: "good", done: "good", info: "good",
  paused: "paused", stopped: "paused", connecting: "idle", unknown: "idle", "not started": "idle", aborted: "idle", undone: "idle",
  resuming: "warning", waiting: "warning", slow: "warning", warning: "warning", begun: "warning",
  halted: "bad", unreachable: "bad", unavailable: "bad", error: "bad",
};

export function kindOf(state) {
  return KINDS[state] || "idle";
}

export function stateBadge(state, text = state) {
  return badge(kindOf(state), text);
}

// A command with a button that copies it.
export function command(text) {
  const code = el("code", {}, visible(text));
  const copy = el("button", {
    type: "button",
    class: "plain small",
    "aria-label": `Copy: ${visible(text)}`,
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        setText(copy, "Copied");
      } catch {
        getSelection().selectAllChildren(code);
        setText(copy, "Selected");
      }
      setTimeout(() => setText(copy, "Copy"), 2000);
    },
  }, "Copy");
  return el("div", { class: "command" }, code, copy);
}
