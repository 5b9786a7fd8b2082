// A handful of values as a line: the newest is on the right, the largest at the top.

import {h} from "./dom.js";

export function sparkline(values) {
  const canvas = h("canvas", {class: "spark", width: 60, height: 16, "aria-hidden": "true"});
  const paint = canvas.getContext("2d");
  const most = Math.max(...values, 1e-9);
  paint.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  paint.beginPath();
  values.forEach((value, at) => paint.lineTo(at + 0.5, 15 - (value / most) * 13));
  paint.stroke();
  return canvas;
}
