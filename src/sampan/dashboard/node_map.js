// Nodes as boxes, their pods as squares inside, on a canvas.
//
// Invariant: a pod keeps its square for as long as it is on its node: others coming and going move
// nothing. A frame costs what changed and is in sight; where nothing changes nothing is drawn.

import {lookOf, LOOKS} from "./pods.js";

const SQUARE = 11; // a pod, with the gap to the next
const PAD = 8;
const TITLE = 18;
const GROW = 250; // milliseconds in which a square comes or goes
export const inOrder = new Intl.Collator("en", {numeric: true}).compare;
export const NOWHERE = ""; // the box of pods without a node

export class NodeMap {
  #boxes = new Map(); // node name → Box
  #pods = new Map(); // uid → {box, slot, look, since, leaving, pod}
  #canvas;
  #paint;
  #frame = 0;
  #width = 0;
  #height = 0;
  #laidOut = false;
  #changed = new Set(); // boxes to draw anew
  #whole = true; // all of them
  #top = -1; // of what is in sight
  #moving = new Set(); // uids whose squares are growing or shrinking
  #colours = {};

  constructor(canvas, scope) {
    this.#canvas = canvas;
    this.#paint = canvas.getContext("2d");
    const observer = new ResizeObserver(() => this.#arrange());
    observer.observe(canvas.parentElement);
    scope.add(() => observer.disconnect());
    scope.add(() => cancelAnimationFrame(this.#frame));
    scope.listen(window, "scroll", () => this.#soon());
    scope.listen(window, "resize", () => this.#arrange());
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scope.listen(scheme, "change", () => this.#readColours());
    this.#readColours();
    this.#box(NOWHERE);
  }

  // Nodes in the order of their names; those of pods that are on no node we know come, too.
  setNodes(nodes) {
    const known = new Map(nodes.map((node) => [node.metadata.name, isReady(node)]));
    for (const [name, ready] of known) this.#box(name).ready = ready;
    for (const [name, box] of this.#boxes) {
      box.known = known.has(name);
      if (!box.known && box.used === 0 && name !== NOWHERE) this.#boxes.delete(name);
    }
    this.#arrange();
  }

  reset(pods) {
    this.#pods.clear();
    for (const box of this.#boxes.values()) box.clear();
    for (const pod of pods) this.#place(pod, -Infinity);
    this.#arrange();
  }

  // changes: uid → [before, now]
  change(changes) {
    const now = performance.now();
    for (const [uid, [, pod]] of changes) {
      const square = this.#pods.get(uid);
      if (!pod) this.#leave(uid, square, now);
      else if (!square || square.box.name !== (pod.spec?.nodeName ?? NOWHERE)) {
        if (square) this.#remove(uid, square);
        this.#place(pod, now);
      } else {
        square.pod = pod;
        square.look = lookOf(pod);
        this.#changed.add(square.box);
      }
    }
    this.#soon();
  }

  at(x, y) {
    for (const box of this.#boxes.values()) {
      if (x < box.x || y < box.y || x > box.x + box.width || y > box.y + box.height) continue;
      const column = Math.floor((x - box.x - PAD) / SQUARE);
      const row = Math.floor((y - box.y - TITLE - PAD) / SQUARE);
      if (column < 0 || row < 0 || column >= box.columns) return {box, pod: null};
      const uid = box.slots[row * box.columns + column];
      return {box, pod: uid ? this.#pods.get(uid).pod : null};
    }
    return null;
  }

  #box(name) {
    let box = this.#boxes.get(name);
    if (!box) {
      this.#boxes.set(name, (box = new Box(name)));
      this.#laidOut = false;
    }
    return box;
  }

  #place(pod, since) {
    const box = this.#box(pod.spec?.nodeName ?? NOWHERE);
    const uid = pod.metadata.uid;
    const square = {box, slot: box.take(uid), look: lookOf(pod), since, leaving: false, pod};
    this.#pods.set(uid, square);
    this.#changed.add(box);
    if (!box.fits()) this.#laidOut = false;
    if (since > 0) this.#moving.add(uid);
  }

  #leave(uid, square, now) {
    if (!square) return;
    square.leaving = true;
    square.pod = null;
    square.since = now;
    this.#moving.add(uid);
  }

  #remove(uid, square) {
    square.box.give(square.slot);
    this.#changed.add(square.box);
    this.#pods.delete(uid);
    this.#moving.delete(uid);
  }

  // Boxes as wide as their pods need, in rows, top to bottom.
  #arrange() {
    this.#laidOut = false;
    this.#soon();
  }

  #layOut() {
    const room = this.#canvas.parentElement.clientWidth;
    const boxes = [...this.#boxes.values()].sort((a, b) => inOrder(a.name, b.name));
    const largest = Math.max(16, ...boxes.map((box) => (box.name === NOWHERE ? 0 : box.slots.length)));
    const side = Math.ceil(Math.sqrt(largest * 1.6));
    const wanted = Math.max(110, side * SQUARE + 2 * PAD);
    const across = Math.max(1, Math.floor((room + PAD) / (wanted + PAD)));
    const width = Math.floor((room + PAD) / across) - PAD;
    let [x, y, tallest, column] = [0, 0, 0, 0];
    for (const box of boxes) {
      const whole = box.name === NOWHERE; // always there: coming and going it would move the others
      if (column === across || (whole && column)) [x, y, tallest, column] = [0, y + tallest + PAD, 0, 0];
      box.place(x, y, whole ? room : width);
      tallest = Math.max(tallest, box.height);
      x += box.width + PAD;
      column = whole ? across : column + 1;
    }
    this.#resize(room, y + tallest + 1);
    this.#laidOut = this.#whole = true;
  }

  #resize(width, height) {
    if (width === this.#width && height === this.#height) return;
    [this.#width, this.#height] = [width, height];
    const visible = Math.min(height, window.innerHeight + 200);
    const ratio = window.devicePixelRatio || 1;
    this.#canvas.parentElement.style.height = `${height}px`;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(visible * ratio);
    this.#canvas.style.width = `${width}px`;
    this.#canvas.style.height = `${visible}px`;
  }

  #soon() {
    this.#frame ||= requestAnimationFrame((now) => this.#draw(now));
  }

  #draw(now) {
    this.#frame = 0;
    for (const uid of this.#moving) {
      const square = this.#pods.get(uid);
      this.#changed.add(square.box);
      if (now - square.since < GROW) continue;
      this.#moving.delete(uid);
      if (square.leaving) this.#remove(uid, square);
    }
    if (!this.#laidOut) this.#layOut();
    const top = this.#offset();
    const bottom = top + this.#canvas.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    const paint = this.#paint;
    paint.setTransform(ratio, 0, 0, ratio, 0, -top * ratio);
    if (top !== this.#top) this.#whole = true;
    if (this.#whole) paint.clearRect(0, top, this.#width, bottom - top);
    for (const box of this.#whole ? this.#boxes.values() : this.#changed) {
      if (box.width && box.y < bottom && box.y + box.height > top) this.#drawBox(paint, box, now);
    }
    this.#top = top;
    this.#whole = false;
    this.#changed.clear();
    if (this.#moving.size) this.#soon();
  }

  // How far the canvas is from the top of what it shows: it is moved along with the window.
  #offset() {
    const hidden = -this.#canvas.parentElement.getBoundingClientRect().top - 100;
    const most = this.#height - this.#canvas.clientHeight;
    const top = Math.max(0, Math.min(most, hidden));
    this.#canvas.style.transform = top ? `translateY(${top}px)` : "";
    return top;
  }

  #drawBox(paint, box, now) {
    const colours = this.#colours;
    paint.fillStyle = colours.panel;
    paint.strokeStyle = box.ready ? colours.line : colours.failed;
    paint.lineWidth = 1;
    paint.fillRect(box.x, box.y, box.width, box.height);
    paint.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
    paint.fillStyle = colours.text;
    paint.font = "12px system-ui, sans-serif";
    const title = box.name === NOWHERE ? "not on a node yet" : box.name;
    paint.fillText(title, box.x + PAD, box.y + TITLE - 4, box.width - 2 * PAD);
    for (let slot = 0; slot < box.slots.length; slot++) {
      const square = box.slots[slot] && this.#pods.get(box.slots[slot]);
      if (square) this.#drawPod(paint, box, slot, square, now);
    }
  }

  #drawPod(paint, box, slot, square, now) {
    const x = box.x + PAD + (slot % box.columns) * SQUARE;
    const y = box.y + TITLE + PAD + Math.floor(slot / box.columns) * SQUARE;
    const grown = Math.min(1, (now - square.since) / GROW);
    const side = (SQUARE - 2) * Math.max(0.05, square.leaving ? 1 - grown : grown);
    const shift = (SQUARE - 2 - side) / 2;
    paint.fillStyle = this.#colours[LOOKS[square.look]];
    paint.fillRect(x + shift, y + shift, side, side);
    if (["Failed", "Failing", "Not ready"].includes(square.look)) {
      paint.fillStyle = this.#colours.panel; // not by colour alone
      paint.fillRect(x + 3, y + 3, SQUARE - 8, SQUARE - 8);
    }
  }

  #readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of [...Object.values(LOOKS), "panel", "line", "text"]) {
      this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.#whole = true;
    this.#soon();
  }
}

class Box {
  slots = []; // uid or null
  used = 0;
  ready = true;
  known = false;
  x = 0;
  y = 0;
  width = 0;
  height = 0;
  columns = 1;
  #free = [];

  constructor(name) {
    this.name = name;
  }

  take(uid) {
    this.used += 1;
    const slot = this.#free.pop() ?? this.slots.length;
    this.slots[slot] = uid;
    return slot;
  }

  give(slot) {
    this.used -= 1;
    this.slots[slot] = null;
    this.#free.push(slot);
    if (this.used === 0) this.clear();
  }

  clear() {
    this.slots = [];
    this.#free = [];
    this.used = 0;
  }

  place(x, y, width) {
    [this.x, this.y, this.width] = [x, y, width];
    this.columns = Math.max(1, Math.floor((width - 2 * PAD) / SQUARE));
    const rows = Math.max(1, Math.ceil(this.slots.length / this.columns));
    this.height = TITLE + 2 * PAD + rows * SQUARE;
  }

  // Whether all pods have room in the box as it was placed.
  fits() {
    return this.slots.length <= this.columns * Math.floor((this.height - TITLE - 2 * PAD) / SQUARE);
  }
}

export function isReady(node) {
  return (node.status?.conditions ?? []).some((item) => item.type === "Ready" && item.status === "True");
}
