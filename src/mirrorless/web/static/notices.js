// Lines about what cannot be read, above what is shown of before.

import { badge, el, name } from "./dom.js";

export function notices() {
  const element = el("div", { class: "notices" });
  let drawn = "";
  return {
    element,
    show(lines) {
      const now = JSON.stringify(lines);
      if (now === drawn) return;
      drawn = now;
      element.replaceChildren(...lines.map(([kind, text]) => el("p", { class: `notice ${kind}` }, badge(kind, kind === "bad" ? "not current" : "note"), name(text, { class: "wrap" }))));
    },
  };
}
