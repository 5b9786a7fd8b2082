// What this user may do with an object: each shows the command that it stands for, and asks.
//
// Invariant: what is offered is what the server allows. Everything names the object by its uid or
// its resourceVersion: nothing happens to another one of the same name, and a request that is sent
// twice does what it does once.

import {get, may, pathOf, PODS, send} from "./api.js";
import {h, notice, plain, show} from "./dom.js";
import {opened} from "./dialog.js";
import {ownedLines} from "./yaml.js";

const RESTARTED = "kubectl.kubernetes.io/restartedAt";
const SCALED = new Set(["deployments", "replicasets", "statefulsets"]);
const FORWARDED = new Set(["pods", "services"]);
const ROLLED = new Set(["deployments", "statefulsets", "daemonsets"]);

export async function showActions(place, kind, object, again = () => {}) {
  const wanted = actionsOf(kind, object);
  const allowed = await Promise.all(wanted.map((action) => mayDo(kind, object, action)));
  const button = ({title}, at) => h("button", {type: "button", class: "plain", onclick: () => askAbout(kind, object, at, again)}, title);
  show(place, wanted.map(button).filter((_, at) => allowed[at]));
}

function mayDo(kind, {metadata: {name, namespace = ""}}, {verb, subresource = "", of = kind}) {
  return may(verb, of.plural, {group: of.group, namespace, subresource, name: of === kind ? name : ""});
}

// As the object is now: it may have changed since its actions were shown.
async function askAbout(kind, {metadata: {uid, name, namespace}}, at, again) {
  try {
    const object = await get(pathOf({...kind, namespaced: Boolean(namespace)}, namespace, name));
    if (object.metadata.uid !== uid) notice("It is gone, and another one has its name.");
    else ask(actionsOf(kind, object)[at], again);
  } catch (error) {
    notice(error.message);
  }
}

function ask({title, command, field, work, sure = title}, again) {
  const body = [
    field && h("p", {}, h("label", {for: field.id}, field.dataset.label), field),
    h("p", {class: "quiet"}, "In a terminal:"), h("pre", {tabindex: "0", "aria-label": "The command"}, h("code", {}, plain(command))),
  ];
  opened(title, body, work && [sure, async () => {
    await work(field?.value);
    notice(`${title}: done`);
    again();
  }]);
  field?.focus();
}

function actionsOf(kind, object) {
  const {name, namespace} = object.metadata;
  const path = pathOf({...kind, namespaced: Boolean(namespace)}, namespace, name);
  const where = `${kind.group ? `${kind.plural}.${kind.group}` : kind.plural} ${name}${namespace ? ` -n ${namespace}` : ""}`;
  const found = [];
  if (kind.group === "apps" && SCALED.has(kind.plural)) found.push(scale(object, path, where));
  if (kind.group === "apps" && ROLLED.has(kind.plural)) found.push(restart(object, path, where));
  if (kind.plural === "nodes" && !kind.group) found.push(cordon(object, path));
  if (!kind.group && FORWARDED.has(kind.plural)) found.push(forward(kind, object));
  found.push(edit(object, path), remove(object, path, where));
  return found;
}

function scale(object, path, where) {
  const field = h("input", {id: "replicas", type: "number", min: "0", max: "2147483647", required: true, value: String(object.spec.replicas ?? 1), "data-label": "Replicas"});
  return {
    title: "Scale", verb: "patch", subresource: "scale", field, command: `sampan scale ${where} --replicas=N`,
    work: (value) => patch(`${path}/scale`, {spec: {replicas: Number(value)}}),
  };
}

function restart(object, path, where) {
  const [what, name, ...rest] = where.split(" ");
  const annotations = {[RESTARTED]: new Date().toISOString().replace(/\.\d+Z$/, "Z")};
  return {
    title: "Restart", verb: "patch", command: ["sampan rollout restart", `${what}/${name}`, ...rest].join(" "),
    work: () => patch(path, {metadata: {uid: object.metadata.uid}, spec: {template: {metadata: {annotations}}}}),
  };
}

function cordon(object, path) {
  const closed = Boolean(object.spec.unschedulable);
  return {
    title: closed ? "Uncordon" : "Cordon", verb: "patch", command: `sampan ${closed ? "uncordon" : "cordon"} ${object.metadata.name}`,
    work: () => patch(path, {metadata: {uid: object.metadata.uid}, spec: {unschedulable: closed ? null : true}}),
  };
}

// A browser cannot listen on a port: the command is all that there is.
function forward(kind, {metadata: {name, namespace}, spec}) {
  const found = kind.plural === "pods" ? spec.containers.flatMap((item) => (item.ports ?? []).map((port) => port.containerPort)) : (spec.ports ?? []).map((item) => item.port);
  const ports = found.length ? found.map((port) => `${port < 1024 ? 8000 + port : port}:${port}`) : ["8080:80"];
  const command = `sampan port-forward ${kind.plural}/${name} -n ${namespace} ${ports.join(" ")}`;
  return {title: "Port-forward", verb: "create", subresource: "portforward", of: PODS, command};
}

function edit(object, path) {
  const text = ownedLines(object).lines.map((line) => `${line.text}\n`).join("");
  const field = h("textarea", {id: "edited", rows: "24", cols: "80", spellcheck: "false", "data-label": "YAML"});
  field.value = text;
  return {
    title: "Edit", verb: "update", sure: "Replace", field, command: "sampan replace -f - <<E\n…\nE",
    work: (value) => send(path, {method: "PUT", headers: {"content-type": "application/yaml"}, body: value}),
  };
}

function remove(object, path, where) {
  const body = JSON.stringify({apiVersion: "v1", kind: "DeleteOptions", preconditions: {uid: object.metadata.uid}, propagationPolicy: "Background"});
  return {
    title: "Delete", verb: "delete", command: `sampan delete ${where}`,
    work: () => send(path, {method: "DELETE", headers: {"content-type": "application/json"}, body}),
  };
}

function patch(path, body) {
  return send(path, {method: "PATCH", headers: {"content-type": "application/merge-patch+json"}, body: JSON.stringify(body)});
}
