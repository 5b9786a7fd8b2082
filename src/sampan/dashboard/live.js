// A kind as it is now: listed once, then watched; shared by whoever looks at it.
//
// Invariant: there is one watch for each path, however many views follow it, and none when nobody
// does. Listeners hear of changes once for each frame, not once for each event.

import {ApiError, get, query, socket} from "./api.js";

const PAGE = 500;
const SLOWEST = 15000; // milliseconds between two tries
const kept = new Map(); // path → Live

// follow(path, scope, listener): `listener(live, changes)` now and whenever something changed, until
// the scope is closed. `changes`: uid → [before, now]; null after a list.
export function follow(path, scope, listener, selectors = {}) {
  const key = path + query(selectors);
  let live = kept.get(key);
  if (!live) kept.set(key, (live = new Live(path, selectors)));
  live.listeners.add(listener);
  scope.add(() => {
    live.listeners.delete(listener);
    if (live.listeners.size === 0) {
      live.close();
      kept.delete(key);
    }
  });
  listener(live, null);
  return live;
}

class Live {
  items = new Map(); // by uid
  listeners = new Set();
  state = "loading"; // live, forbidden, failed
  problem = "";
  events = 0; // heard so far

  #path;
  #selectors;
  #changes = new Map();
  #listed = false;
  #frame = 0;
  #socket = null;
  #timer = 0;
  #failures = 0;
  #revision = "";
  #closed = false;

  constructor(path, selectors) {
    this.#path = path;
    this.#selectors = selectors;
    this.#start();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.#socket?.close();
  }

  async #start() {
    try {
      if (!this.#revision) await this.#list();
      if (!this.#closed) this.#watch();
    } catch (error) {
      if (this.#closed) return;
      this.problem = error.message;
      this.state = error instanceof ApiError && error.forbidden ? "forbidden" : "failed";
      this.#soon(null);
      if (!isFinal(error)) this.#again();
    }
  }

  async #list() {
    const found = new Map();
    let next = "";
    do {
      const page = await get(this.#path + query({...this.#selectors, limit: PAGE, continue: next}));
      for (const item of page.items) found.set(item.metadata.uid, item);
      next = page.metadata.continue ?? "";
      this.#revision = page.metadata.resourceVersion;
    } while (next && !this.#closed);
    this.items = found;
    this.#listed = true;
    this.#become("live");
    this.#soon(null);
  }

  #watch() {
    const where = {...this.#selectors, watch: 1, allowWatchBookmarks: true, resourceVersion: this.#revision};
    const opened = (this.#socket = socket(this.#path + query(where), "json.k8s.io"));
    opened.onopen = () => {
      this.#failures = 0;
      this.#become("live");
    };
    opened.onmessage = (message) => this.#take(JSON.parse(message.data));
    opened.onclose = () => {
      if (!this.#closed) this.#again();
    };
  }

  #take({type, object}) {
    if (type === "ERROR") {
      this.#revision = ""; // too old: everything is listed again
      this.#socket.close();
      return;
    }
    this.#revision = object.metadata.resourceVersion;
    if (type === "BOOKMARK") return;
    this.events += 1;
    const uid = object.metadata.uid;
    const before = this.items.get(uid);
    if (type === "DELETED") this.items.delete(uid);
    else this.items.set(uid, object);
    this.#soon([uid, before, type === "DELETED" ? null : object]);
  }

  #again() {
    if (this.#failures) this.#become("failed");
    const wait = Math.min(SLOWEST, 250 * 2 ** this.#failures++);
    this.#timer = setTimeout(() => this.#start(), wait);
  }

  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.problem = state === "live" ? "" : this.problem || "the API server does not answer";
    this.#soon(null);
  }

  #soon(change) {
    if (change) {
      const [uid, before, now] = change;
      const first = this.#changes.get(uid);
      this.#changes.set(uid, [first ? first[0] : before, now]);
    }
    this.#frame ||= requestAnimationFrame(() => this.#tell());
  }

  #tell() {
    this.#frame = 0;
    const changes = this.#listed || this.state !== "live" ? null : this.#changes;
    this.#listed = false;
    this.#changes = new Map();
    for (const listener of [...this.listeners]) listener(this, changes);
  }
}

// Asked in vain once, asked in vain always: as long as the question stays the same.
function isFinal(error) {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && ![410, 429].includes(error.status);
}

// What a view says instead of what it may not or cannot show; null where there is nothing to say.
export function problemOf(live, what) {
  if (live.state === "forbidden") return `You may not list ${what} here: ${live.problem}`;
  if (live.state === "failed") return `${what}: ${live.problem}`;
  return null;
}
