// What a container writes, live.
//
// Invariant: at most MOST lines are kept. A line is text: its control characters mean nothing.

import {pathOf, PODS, query, socket} from "./api.js";
import {h, plain, show} from "./dom.js";
import {containersOf} from "./pods.js";

const MOST = 2000;
const TAIL = 500;

export function logView(place, scope, namespace, name) {
  const choice = h("select", {id: "container"});
  const output = h("pre", {class: "log", tabindex: "0", role: "log", "aria-label": "Log", "aria-live": "off"});
  const state = h("p", {class: "quiet", role: "status"}, "No container has started.");
  show(place, h("h2", {id: "logs-title"}, "Logs"),
    h("p", {class: "search"}, h("label", {for: "container"}, "Container"), choice), state, output);
  let stream = null;
  let names = "";
  let timer = 0;
  let tries = 0; // since the container last started
  let opened = ""; // of which start of the container
  const again = (lost) => {
    if (tries++ < 5) timer = setTimeout(() => stream === lost && open(), 1000);
  };
  const open = () => {
    stream?.close();
    show(output);
    const where = {container: choice.value, follow: true, tailLines: TAIL};
    stream = new LogStream(output, state, pathOf(PODS, namespace, name, "log") + query(where), again);
  };
  choice.addEventListener("change", open);
  scope.add(() => stream?.close());
  scope.add(() => clearTimeout(timer));
  return {
    changed(pod) {
      if (!pod) return;
      const all = containersOf(pod).map((item) => item.name);
      if (all.join() !== names) {
        names = all.join();
        show(choice, all.map((item) => h("option", {value: item}, plain(item))));
        choice.value = pod.spec.containers[0].name;
      }
      const ids = (pod.status?.containerStatuses ?? []).map((item) => item.containerID ?? "").join();
      if (/[^,]/.test(ids) && ids !== opened && (!stream || stream.ended)) {
        opened = ids;
        tries = 0;
        open();
      }
    },
  };
}

class LogStream {
  ended = false;
  #socket;
  #output;
  #rest = "";
  #waiting = [];
  #frame = 0;
  #decoder = new TextDecoder();

  // `lost` is called where it broke off.
  constructor(output, state, path, lost) {
    this.#output = output;
    this.#socket = socket(path, "binary.k8s.io");
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => (state.textContent = "Following.");
    this.#socket.onmessage = ({data}) => this.#take(this.#decoder.decode(data, {stream: true}));
    this.#socket.onclose = ({wasClean}) => {
      this.ended = true;
      state.textContent = wasClean ? "The log has ended." : "The log broke off, or may not be read.";
      if (!wasClean) lost(this);
    };
  }

  close() {
    this.#socket.onclose = null;
    this.#socket.close();
    cancelAnimationFrame(this.#frame);
  }

  #take(text) {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop().slice(-65536);
    this.#waiting.push(...lines);
    this.#waiting.splice(0, this.#waiting.length - MOST);
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = 0;
    const output = this.#output;
    const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
    output.append(...this.#waiting.splice(0).map((line) => document.createTextNode(`${plain(line)}\n`)));
    while (output.childNodes.length > MOST) output.firstChild.remove();
    if (atEnd) output.scrollTop = output.scrollHeight;
  }
}
