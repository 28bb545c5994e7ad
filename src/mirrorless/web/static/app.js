// Signs in, follows the stream, and shows the view that the address names.

import { Drawer } from "./details.js";
import { el, name, setText, visible } from "./dom.js";
import { Events } from "./events.js";
import { ago, moment, zone } from "./format.js";
import { Groups } from "./groups.js";
import { Operations } from "./operations.js";
import { Overview } from "./overview.js";
import { Problems, unknowns } from "./problems.js";
import { act, session, signIn, stream, tokenInAddress } from "./session.js";
import { Settings } from "./settings.js";
import { Store } from "./store.js";
import { Topics } from "./topics.js";

const VIEWS = [
  ["overview", "Overview", Overview],
  ["topics", "Topics", Topics],
  ["groups", "Groups", Groups],
  ["problems", "Problems", Problems],
  ["operations", "Operations", Operations],
  ["settings", "Settings", Settings],
  ["events", "Events", Events],
];
const KEYS = [
  ["1 to 7", "Open a view"],
  ["/", "Filter"],
  ["↑ ↓, j k", "Select a row of the focused table"],
  ["Page up, page down, home, end", "Move in the table"],
  ["Enter", "Open the selected row"],
  ["Escape", "Close details, clear the filter"],
  ["t", "Light or dark"],
  ["?", "These keys"],
];
const THEMES = { auto: "light", light: "dark", dark: "auto" };

const main = document.getElementById("main");
const dialog = document.getElementById("dialog");
const store = new Store();
let views = new Map();
let current = null;
let drawer = null;
let file = "";

// A box that filters rows by words; words in any order, in any case.
function filterBox(label, onInput) {
  const input = el("input", { type: "search", class: "filter", placeholder: `${label}  ( / )`, "aria-label": label, oninput: onInput, spellcheck: "false", autocomplete: "off" });
  return {
    element: input,
    get matches() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      return (content) => {
        const lower = content.toLowerCase();
        return words.every((word) => lower.includes(word));
      };
    },
  };
}

function showDialog(title, ...content) {
  dialog.replaceChildren(el("h2", { id: "dialog-title" }, title), ...content);
  dialog.showModal();
}

function askToAct(action, flow) {
  const error = el("p", { class: "notice bad", hidden: true });
  const go = async () => {
    try {
      await act(action, flow);
      dialog.close();
    } catch (reason) {
      setText(error, reason.message);
      error.hidden = false;
    }
  };
  showDialog(
    action === "pause" ? "Pause this flow?" : "Resume this flow?",
    el("p", {}, name(flow)),
    el("p", { class: "quiet" }, action === "pause" ? "No records are copied until it is resumed. Retention on the source does not wait." : "Replication continues where it stopped."),
    error,
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Cancel"),
      el("button", { type: "button", class: "button strong", onclick: go }, action === "pause" ? "Pause" : "Resume"),
    ),
  );
}

function showKeys() {
  showDialog(
    "Keys",
    el("dl", { class: "keys" }, KEYS.map(([keys, meaning]) => el("div", {}, el("dt", {}, el("kbd", {}, keys)), el("dd", {}, meaning)))),
    el("div", { class: "buttons" }, el("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Close")),
  );
}

function setTheme(theme) {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
  localStorage.setItem("theme", theme);
  const button = document.getElementById("theme");
  setText(button, `Theme: ${theme}`);
}

function nextTheme() {
  setTheme(THEMES[localStorage.getItem("theme") || "auto"]);
}

function place() {
  const [view, ...rest] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  return { view: views.has(view) ? view : "overview", rest };
}

function route() {
  const { view, rest } = place();
  if (current !== view) {
    current = view;
    main.replaceChildren(views.get(view).element);
    for (const link of document.querySelectorAll("#tabs a")) {
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
  if ((view === "topics" || view === "groups") && rest.length === 2) drawer.show(view, ...rest);
  else drawer.hide();
  draw();
}

function open(view, flow, item) {
  location.hash = `#/${view}/${encodeURIComponent(flow)}/${encodeURIComponent(item)}`;
}

function closeDetails() {
  location.hash = `#/${place().view}`;
  document.querySelector(".grid")?.focus();
}

function draw() {
  drawConnection();
  const problems = store.problems();
  const marks = document.getElementById("problems-count");
  setText(marks, problems.length ? String(problems.length) : store.version && unknowns(store).length ? "?" : "");
  marks.className = `count ${problems.some((one) => one.level === "error") ? "bad" : problems.length ? "warning" : "idle"}`;
  const label = VIEWS.find(([key]) => key === current)[1];
  document.title = `${problems.length ? `(${problems.length}) ` : ""}${label} · ${visible(file)} · Mirrorless`;
  if (!store.version) return;
  views.get(current).draw();
  drawer.draw();
}

function drawConnection() {
  const line = document.getElementById("connection");
  const late = store.at_ms && Date.now() - store.at_ms > 15_000;
  line.className = `connection ${store.connected && !late ? "good" : "bad"}`;
  const isOld = Boolean(store.version && (!store.connected || late));
  const stale = document.getElementById("stale");
  stale.hidden = !isOld;
  setText(stale, isOld ? `The page's server does not answer. All of this is as of ${moment(store.at_ms)}; what is true now is unknown.` : "");
  document.body.classList.toggle("stale", isOld);
  setText(line, !store.version ? "Connecting" : !store.connected ? `Not connected, as of ${ago(store.at_ms)}` : late ? `Late: as of ${ago(store.at_ms)}` : "Live");
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape") {
    if (typing && typing.value) {
      typing.value = "";
      typing.dispatchEvent(new Event("input"));
    } else if (!drawer.element.hidden) closeDetails();
    else typing?.blur();
    return;
  }
  if (typing) {
    if (event.key === "ArrowDown" && typing.matches(".filter")) {
      event.preventDefault();
      document.querySelector("main .grid")?.focus();
    }
    return;
  }
  if (event.key === "/") {
    const filter = document.querySelector("main .filter");
    if (filter) {
      event.preventDefault();
      filter.focus();
    }
  } else if (/^[1-7]$/.test(event.key)) location.hash = `#/${VIEWS[Number(event.key) - 1][0]}`;
  else if (event.key === "t") nextTheme();
  else if (event.key === "?") showKeys();
}

function askForToken(failed) {
  const input = el("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const form = el(
    "form",
    {
      class: "panel token",
      onsubmit: async (event) => {
        event.preventDefault();
        if (await signIn(input.value.trim())) begin();
        else askForToken(true);
      },
    },
    el("h1", {}, "Token"),
    el("p", { class: "quiet" }, "The command that serves this page printed it."),
    failed ? el("p", { class: "notice bad", role: "alert" }, "This token is wrong.") : null,
    el("label", { for: "token" }, "Token"),
    input,
    el("button", { type: "submit", class: "button strong" }, "Open"),
  );
  main.replaceChildren(form);
  input.focus();
}

async function begin() {
  const found = await session();
  if (found.token_required) {
    askForToken(false);
    return;
  }
  file = found.file.split("/").pop();
  document.getElementById("where").replaceChildren(name(found.file, { title: `Mirrorless ${found.version}: ${found.file}` }), el("span", {}, ` · times in ${zone()}`));
  drawer ??= new Drawer(document.getElementById("drawer"), store, closeDetails);
  const given = { store, session: found, filterBox, open, ask: askToAct };
  views = new Map(VIEWS.map(([key, , View]) => [key, new View(given)]));
  document.getElementById("tabs").replaceChildren(
    ...VIEWS.map(([key, label], index) =>
      el("a", { href: `#/${key}`, "data-view": key, title: `Key ${index + 1}` }, label, key === "problems" ? el("span", { id: "problems-count", class: "count" }) : null),
    ),
  );
  current = null;
  addEventListener("hashchange", route);
  addEventListener("keydown", onKey);
  store.listen(draw);
  setInterval(drawConnection, 1000);
  route();
  stream(store, () => location.reload());
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.getElementById("help").addEventListener("click", showKeys);
document.getElementById("theme").addEventListener("click", nextTheme);
setTheme(localStorage.getItem("theme") || "auto");

// The address with a token may also be pasted into an open page.
addEventListener("hashchange", async () => {
  const pasted = tokenInAddress();
  if (pasted && (await signIn(pasted))) location.reload();
});

const token = tokenInAddress();
if (token) await signIn(token);
await begin();
