// A shell in a container, line by line, for who may exec.
//
// It is no emulation of a terminal: a line is typed and sent, and what comes back is text. Escape
// sequences of what runs there do nothing here.
// Invariant: nothing is opened before the user asks for it.

import {may, pathOf, PODS, query, socket} from "./api.js";
import {h, plain, show} from "./dom.js";

const MOST = 256 * 1024; // characters kept
const PROTOCOL = "v5.channel.k8s.io";
const [STDIN, STDOUT, STDERR, ERROR] = [0, 1, 2, 3];

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
      const where = {container: choice.value, command: command.value, stdin: true, stdout: true, stderr: true, tty: false};
      shell = new Shell(box, pathOf(PODS, namespace, name, "exec") + query(where));
    };
    return [h("p", {class: "search"},
      h("label", {for: "shell-container"}, "Container"), choice,
      h("label", {for: "shell-command"}, "Command"), command,
      h("button", {type: "button", onclick: open}, "Open")), box];
  }
}

class Shell {
  #socket;
  #output = h("pre", {class: "log", tabindex: "0", role: "log", "aria-label": "Terminal output"});
  #length = 0;
  #decoder = new TextDecoder();

  constructor(place, path) {
    const input = h("input", {id: "shell-line", autocomplete: "off", spellcheck: "false", autocapitalize: "off"});
    const submit = (event) => {
      event.preventDefault();
      this.#print(`$ ${input.value}\n`, "typed");
      this.#send(`${input.value}\n`);
      input.value = "";
    };
    show(place, this.#output,
      h("form", {class: "search", onsubmit: submit},
        h("label", {for: "shell-line"}, "Line"), input,
        h("button", {type: "submit"}, "Send")));
    this.#socket = socket(path, PROTOCOL);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => input.focus();
    this.#socket.onmessage = ({data}) => this.#take(new Uint8Array(data));
    this.#socket.onclose = () => {
      this.#print("— ended —\n", "quiet");
      input.disabled = true;
    };
  }

  close() {
    this.#socket.onclose = null;
    this.#socket.close();
  }

  #send(line) {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const text = new TextEncoder().encode(line);
    const message = new Uint8Array(text.length + 1);
    message[0] = STDIN;
    message.set(text, 1);
    this.#socket.send(message);
  }

  #take(message) {
    const [channel, bytes] = [message[0], message.subarray(1)];
    if (channel === STDOUT) this.#print(this.#decoder.decode(bytes, {stream: true}), "");
    else if (channel === STDERR) this.#print(new TextDecoder().decode(bytes), "stderr");
    else if (channel === ERROR) this.#print(`${statusText(new TextDecoder().decode(bytes))}\n`, "quiet");
  }

  #print(text, look) {
    const shown = plain(text);
    this.#output.append(look ? h("span", {class: look}, shown) : document.createTextNode(shown));
    this.#length += shown.length;
    while (this.#length > MOST) {
      this.#length -= this.#output.firstChild.textContent.length;
      this.#output.firstChild.remove();
    }
    this.#output.scrollTop = this.#output.scrollHeight;
  }
}

function statusText(text) {
  try {
    const status = JSON.parse(text);
    return status.status === "Success" ? "— ended with 0 —" : status.message;
  } catch {
    return text;
  }
}
