// A terminal in a container, for who may exec: `kubectl exec -it`, with its size, colours and keys.
//
// Invariant: nothing is opened before the user asks for it.
// Invariant: what is shown is Screen's cells, each a text with a look: nothing written there is markup.

import {may, pathOf, PODS, query, socket} from "./api.js";
import {h, plain, show} from "./dom.js";
import {HISTORY, Screen} from "./screen.js";
import {charactersOf, pasted} from "./terminal_keys.js";

const PROTOCOL = "v5.channel.k8s.io";
const [STDIN, STDOUT, STDERR, ERROR, RESIZE] = [0, 1, 2, 3, 4];
const ROWS = 24;
const LOOKS = ["bold", "faint", "italic", "underlined", "struck", "concealed"];

export function terminalView(place, scope, namespace, name) {
  let asked = false;
  let shell = null;
  scope.add(() => shell?.close());
  show(place);
  return {
    async changed(pod) {
      if (asked || !pod || pod.status?.phase !== "Running") return;
      asked = true;
      const allowed = await may("create", "pods", {namespace, name, subresource: "exec"});
      show(place, h("h2", {id: "terminal-title"}, "Terminal"), allowed ? opener(pod) : h("p", {class: "quiet"}, "You may not run commands in this pod."));
    },
  };

  function opener(pod) {
    const names = pod.spec.containers.map((item) => item.name);
    const choice = h("select", {id: "shell-container"}, names.map((item) => h("option", {value: item}, plain(item))));
    const command = h("input", {id: "shell-command", value: "sh", size: "8", autocomplete: "off", spellcheck: "false"});
    const box = h("div");
    const open = () => {
      shell?.close();
      const where = {container: choice.value, command: command.value, stdin: true, stdout: true, tty: true};
      shell = new Terminal(box, pathOf(PODS, namespace, name, "exec") + query(where));
    };
    return [h("p", {class: "search"},
      h("label", {for: "shell-container"}, "Container"), choice,
      h("label", {for: "shell-command"}, "Command"), command,
      h("button", {type: "button", onclick: open}, "Open"),
      h("span", {class: "quiet"}, "Shift+Tab leaves it; Shift+PageUp shows what went by.")), box];
  }
}

class Terminal {
  #screen = new Screen(80, ROWS);
  #history = h("div");
  #lines = h("div");
  #box = h("div", {class: "terminal", tabindex: "0", role: "region", "aria-label": "Terminal output"}, this.#history, this.#lines);
  #input = h("textarea", {id: "shell-line", class: "typing", rows: "1", "aria-label": "Terminal input", autocomplete: "off", autocapitalize: "off", spellcheck: "false", disabled: true});
  #decoder = new TextDecoder();
  #socket;
  #observer = new ResizeObserver(() => this.#fit());
  #frame = 0;
  #cursor = -1; // the row where it was drawn

  constructor(place, path) {
    show(place, h("div", {class: "console"}, this.#box, this.#input));
    this.#screen.reply = (text) => this.#send(text);
    this.#listen();
    this.#observer.observe(this.#box);
    this.#fit();
    this.#socket = socket(path, PROTOCOL);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => {
      this.#sendSize();
      this.#input.disabled = false;
      this.#input.focus();
    };
    this.#socket.onmessage = ({data}) => this.#take(new Uint8Array(data));
    this.#socket.onclose = () => {
      this.#input.disabled = true;
      this.#write("\r\n\x1b[0m— ended —\r\n");
    };
  }

  close() {
    this.#observer.disconnect();
    cancelAnimationFrame(this.#frame);
    this.#socket.onclose = null;
    this.#socket.close();
  }

  #listen() {
    this.#box.addEventListener("click", () => String(getSelection()) || this.#input.focus());
    this.#input.addEventListener("keydown", (event) => {
      const selected = String(getSelection()) !== "";
      if (event.shiftKey && /^Page(Up|Down)$/.test(event.key)) this.#box.scrollBy(0, (event.key === "PageUp" ? -1 : 1) * this.#box.clientHeight);
      const characters = charactersOf(event, this.#screen.applicationKeys, selected);
      if (characters == null) return;
      event.preventDefault();
      this.#send(characters);
    });
    this.#input.addEventListener("input", (event) => {
      if (event.isComposing) return;
      this.#send(this.#input.value.replace(/\n/g, "\r"));
      this.#input.value = "";
    });
    this.#input.addEventListener("compositionend", () => {
      this.#send(this.#input.value);
      this.#input.value = "";
    });
    this.#input.addEventListener("paste", (event) => {
      event.preventDefault();
      this.#send(pasted(event.clipboardData.getData("text"), this.#screen.bracketedPaste));
    });
    for (const type of ["focus", "blur"]) this.#input.addEventListener(type, () => this.#box.classList.toggle("active", type === "focus"));
  }

  #take(message) {
    const [channel, bytes] = [message[0], message.subarray(1)];
    if (channel === STDOUT || channel === STDERR) this.#write(this.#decoder.decode(bytes, {stream: true}));
    else if (channel === ERROR) this.#write(`\r\n\x1b[0m${statusText(new TextDecoder().decode(bytes))}`);
  }

  #send(text) {
    if (text) this.#sendOn(STDIN, text);
  }

  #sendSize() {
    this.#sendOn(RESIZE, JSON.stringify({Width: this.#screen.columns, Height: this.#screen.rows}));
  }

  #sendOn(channel, text) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const bytes = new TextEncoder().encode(text);
    const message = new Uint8Array(bytes.length + 1);
    message[0] = channel;
    message.set(bytes, 1);
    this.#socket.send(message);
  }

  // As many cells as there is room for.
  #fit() {
    const probe = h("span", {class: "probe", "aria-hidden": "true"}, "0".repeat(50));
    this.#lines.append(probe);
    const {width, height} = probe.getBoundingClientRect();
    probe.remove();
    const style = getComputedStyle(this.#box);
    const room = this.#box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const tall = this.#box.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
    if (!width || room <= 0 || tall <= 0) return;
    const [columns, rows] = [this.#screen.columns, this.#screen.rows];
    this.#screen.resize(Math.max(2, Math.floor((room * 50) / width)), Math.max(2, Math.floor(tall / height)));
    this.#box.dataset.size = `${this.#screen.columns}x${this.#screen.rows}`;
    if (columns === this.#screen.columns && rows === this.#screen.rows) return;
    this.#sendSize();
    this.#soon();
  }

  #write(text) {
    this.#screen.write(text);
    this.#soon();
  }

  #soon() {
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  // Only lines that changed; who has scrolled back stays there.
  #draw() {
    this.#frame = 0;
    const atEnd = this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight < 8;
    const screen = this.#screen;
    const [changed, scrolled] = screen.taken();
    const gone = screen.history.slice(Math.max(0, screen.history.length - scrolled));
    this.#history.append(...gone.map((cells) => h("div", {}, runs(cells))));
    while (this.#history.childElementCount > HISTORY) this.#history.firstChild.remove();
    while (this.#lines.childElementCount > screen.rows) this.#lines.lastChild.remove();
    while (this.#lines.childElementCount < screen.rows) this.#lines.append(h("div"));
    for (const row of new Set([...changed, this.#cursor, screen.row])) {
      if (row < 0 || row >= screen.rows) continue;
      show(this.#lines.children[row], runs(screen.lines[row], row === screen.row && !screen.hidden ? screen.column : -1));
    }
    this.#cursor = screen.row;
    if (atEnd) this.#box.scrollTop = this.#box.scrollHeight;
  }
}

// Neighbours of one look in one element; the blanks at a line's end are not there.
function runs(cells, cursor = -1) {
  const found = [];
  let last = cells.length - 1;
  while (last > cursor && cells[last].char === " " && cells[last].look.ground == null && !cells[last].look.reverse) last -= 1;
  for (let at = 0; at <= last; at++) {
    const {char, look, wide} = cells[at];
    const before = found.at(-1);
    if (before && before.look === look && !before.alone && !wide && at !== cursor) before.text += char;
    else found.push({text: char, look, alone: wide || at === cursor, wide, cursor: at === cursor});
  }
  return found.map(run);
}

function run({text, look, wide, cursor}) {
  const classes = LOOKS.filter((name) => look[name]);
  if (look.reverse) classes.push("reverse");
  if (wide) classes.push("double");
  if (cursor) classes.push("cursor");
  const [colour, ground] = look.reverse ? [look.ground, look.colour] : [look.colour, look.ground];
  const bright = look.bold && !look.reverse && colour < 8 ? colour + 8 : colour;
  if (bright < 16) classes.push(`colour${bright}`);
  if (ground < 16) classes.push(`ground${ground}`);
  const shown = plain(text);
  if (!classes.length && bright == null && ground == null) return document.createTextNode(shown);
  const element = h("span", {class: classes.join(" ") || null}, shown);
  if (bright != null && !(bright < 16)) element.style.color = hexOf(bright);
  if (ground != null && !(ground < 16)) element.style.backgroundColor = hexOf(ground);
  return element;
}

// 16–231 are a cube of 6 × 6 × 6, 232–255 greys.
function hexOf(colour) {
  if (typeof colour === "string") return colour;
  if (colour >= 232) return `rgb(${Array(3).fill(8 + (colour - 232) * 10).join(" ")})`;
  const parts = [36, 6, 1].map((by) => Math.floor((colour - 16) / by) % 6);
  return `rgb(${parts.map((part) => (part ? 55 + part * 40 : 0)).join(" ")})`;
}

function statusText(text) {
  try {
    const status = JSON.parse(text);
    const ended = (status.details?.causes ?? []).find((cause) => cause.reason === "ExitCode");
    if (ended) return `command terminated with exit code ${ended.message}`; // kubectl's words, whatever the runtime's
    return status.status === "Success" ? "— ended with 0 —" : status.message;
  } catch {
    return text;
  }
}
