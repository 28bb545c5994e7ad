// A line of points over the whole width, drawn as SVG; where a value is unknown, null, there is no line.

import { svg } from "./dom.js";

export class Sparkline {
  constructor(width, height, properties = {}) {
    this.width = width;
    this.height = height;
    this.area = svg("path", { class: "area" });
    this.line = svg("path", { class: "line" });
    this.element = svg(
      "svg",
      { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, preserveAspectRatio: "none", "aria-hidden": "true", ...properties },
      this.area,
      this.line,
    );
    this.drawn = "";
  }

  draw(points) {
    const top = Math.max(1, ...points.filter((one) => one !== null));
    const step = this.width / Math.max(1, points.length - 1);
    const inner = this.height - 3;
    const runs = [];
    points.forEach((value, index) => {
      if (value === null) return;
      if (index === 0 || points[index - 1] === null) runs.push([]);
      runs[runs.length - 1].push([(index * step).toFixed(1), (this.height - 1.5 - (value / top) * inner).toFixed(1)]);
    });
    const lines = runs.map((run) => run.map((point) => point.join(" ")).join("L"));
    const path = lines.map((line) => `M${line}`).join("");
    if (path === this.drawn) return;
    this.drawn = path;
    const isLine = points.length > 1;
    this.line.setAttribute("d", isLine ? path : "");
    const below = (run, line) => `M${line}L${run[run.length - 1][0]} ${this.height}L${run[0][0]} ${this.height}Z`;
    this.area.setAttribute("d", isLine ? runs.map((run, index) => below(run, lines[index])).join("") : "");
  }
}
