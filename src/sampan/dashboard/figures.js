// What /metrics says, as far as a newcomer asks: queues, rates, memory. Pure but for `fetch`.

import {getText} from "./api.js";

const LINE = /^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? ([^ ]+)/i;

// → sum(name, labels): of all samples of that name that have these labels.
export function samplesOf(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const match = LINE.exec(line);
    if (!match) continue;
    const [, name, labels = "", value] = match;
    if (!found.has(name)) found.set(name, []);
    found.get(name).push([labels, Number(value)]);
  }
  return (name, wanted = "") => {
    const fitting = (found.get(name) ?? []).filter(([labels]) => labels.includes(wanted));
    return fitting.length ? fitting.reduce((sum, [, value]) => sum + value, 0) : null;
  };
}

// Each figure: a title, where it is read, and whether it is a rate or the thing itself.
const FIGURES = [
  ["Pods waiting for a decision", (of) => of("scheduler_pending_pods", 'queue="active"'), "count"],
  ["Pods backing off", (of) => of("scheduler_pending_pods", 'queue="backoff"'), "count"],
  ["Pods that fit nowhere", (of) => of("scheduler_pending_pods", 'queue="unschedulable"'), "count"],
  ["Requests", (of) => of("apiserver_request_total"), "rate"],
  ["Pods scheduled", (of) => of("scheduler_schedule_attempts_total", 'result="scheduled"'), "rate"],
  ["Work in controllers' queues", (of) => of("workqueue_depth"), "count"],
  ["Memory", (of) => of("process_resident_memory_bytes"), "bytes"],
];

export class Figures {
  #before = null;

  // → [{title, text, value}]; raises ApiError.
  async read() {
    const of = samplesOf(await getText("/metrics"));
    const now = performance.now() / 1000;
    const values = FIGURES.map(([, read]) => read(of));
    const before = this.#before;
    this.#before = {now, values};
    return FIGURES.flatMap(([title, , kind], at) => {
      if (values[at] == null) return [];
      if (kind !== "rate") return [{title, value: values[at], text: textOf(values[at], kind)}];
      if (!before) return [{title, value: 0, text: "…"}];
      const rate = Math.max(0, (values[at] - before.values[at]) / (now - before.now));
      return [{title, value: rate, text: `${rate.toFixed(rate < 10 ? 1 : 0)}/s`}];
    });
  }
}

function textOf(value, kind) {
  return kind === "bytes" ? `${Math.round(value / 1048576)} MiB` : String(Math.round(value));
}
