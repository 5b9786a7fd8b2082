// Elements out of plain values.
//
// Invariant: text becomes text nodes, never markup; what others wrote cannot become an element.
// (The content-security-policy of the page refuses every other way.)

// h("a", {href: "#/", class: "x", onclick: f}, "text", [more, nodes]) → an element.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

function set(element, name, value) {
  if (value == null || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "class") element.className = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}

export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
}

// Only where it differs: screen readers and selections are not disturbed by what stays the same.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Control characters as the symbols that stand for them: no escape sequence means anything here.
// Marks that turn the direction of text around are shown, too: they make one name look like another.
export function plain(text) {
  return String(text)
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (char) => String.fromCharCode(0x2400 + char.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

export function notice(text) {
  setText(document.getElementById("notice"), plain(text));
}

// Of a view: what has to be let go when another one is shown.
export class Scope {
  #undo = [];

  add(undo) {
    this.#undo.push(undo);
  }

  every(milliseconds, work) {
    const timer = setInterval(() => document.hidden || work(), milliseconds);
    this.add(() => clearInterval(timer));
  }

  listen(target, type, listener) {
    target.addEventListener(type, listener);
    this.add(() => target.removeEventListener(type, listener));
  }

  close() {
    for (const undo of this.#undo.splice(0)) undo();
  }
}

export function seconds(value) {
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 2 : 1)} ms`;
  return value < 120 ? `${value.toFixed(2)} s` : `${Math.round(value / 60)} min`;
}

// As kubectl's AGE.
export function age(since, now = Date.now()) {
  const total = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  if (Number.isNaN(total)) return "";
  if (total < 120) return `${total}s`;
  if (total < 7200) return `${Math.floor(total / 60)}m`;
  if (total < 172800) return `${Math.floor(total / 3600)}h`;
  return `${Math.floor(total / 86400)}d`;
}
