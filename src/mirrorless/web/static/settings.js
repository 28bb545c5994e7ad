// Settings in effect, with secrets masked by the server.

import { badge, el, name } from "./dom.js";
import { get } from "./session.js";

// Where a value comes from: the default, or the file and line that set it.
function origin(row) {
  if (row.is_default) return badge("idle", "default");
  return row.origin ? el("span", { class: "origin quiet" }, name(row.origin, { class: "wrap" })) : null;
}

export class Settings {
  constructor({ filterBox }) {
    this.filter = filterBox("Filter settings", () => this.show());
    this.changed = el("input", { type: "checkbox", id: "only-set", checked: true, onchange: () => this.show() });
    this.list = el("div", { class: "stack" });
    this.element = el(
      "div",
      { class: "view" },
      el("h1", {}, "Settings"),
      el("div", { class: "tools" }, this.filter.element, el("label", { for: "only-set", class: "check" }, this.changed, "Only those that are set")),
      this.list,
    );
  }

  async draw() {
    if (this.parts) return;
    this.parts = [];
    this.parts = (await get("settings")).settings;
    this.show();
  }

  show() {
    const { matches } = this.filter;
    const wanted = (row) => matches(`${row.key} ${row.value}`) && !(this.changed.checked && row.is_default);
    this.list.replaceChildren(
      ...this.parts.map((part) => {
        const rows = part.settings.filter(wanted);
        return el(
          "section",
          { class: "panel" },
          el("h2", {}, part.kind === "flow" ? "Flow " : "Cluster ", name(part.name)),
          rows.length
            ? el(
                "dl",
                { class: "settings" },
                rows.map((row) => el("div", { class: row.is_default ? "default" : "set" }, el("dt", { title: row.meaning }, name(row.key)), el("dd", {}, row.value ? name(row.value, { class: "wrap" }) : el("i", {}, "not set"), origin(row)))),
              )
            : el("p", { class: "quiet" }, this.changed.checked ? "No setting that the file sets matches." : "No setting matches the filter."),
        );
      }),
    );
  }
}
