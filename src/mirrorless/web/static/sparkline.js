// A line of the last points, drawn as SVG.

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

  draw(points, most = 60) {
    const top = Math.max(1, ...points);
    const step = this.width / (most - 1);
    const begin = this.width - step * (points.length - 1);
    const inner = this.height - 3;
    const path = points
      .map((value, index) => `${(begin + index * step).toFixed(1)} ${(this.height - 1.5 - (value / top) * inner).toFixed(1)}`)
      .join("L");
    if (path === this.drawn) return;
    this.drawn = path;
    this.line.setAttribute("d", points.length > 1 ? `M${path}` : "");
    this.area.setAttribute(
      "d",
      points.length > 1 ? `M${path}L${this.width} ${this.height}L${begin.toFixed(1)} ${this.height}Z` : "",
    );
  }
}
