// The API, as this user may use it: requests and WebSockets.
//
// Invariant: no request carries more than the user's own token; without one the browser's client
// certificate speaks, or a proxy does.
// Invariant: the token is in this tab's sessionStorage only: no cookie, so no other page can use it.

const TOKEN = "sampan.token";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  get forbidden() {
    return this.status === 403;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (value) => sessionStorage.setItem(TOKEN, value),
  clear: () => sessionStorage.removeItem(TOKEN),
};

// Called with every 401: the session is over.
let whenRefused = () => {};
export function onRefused(listener) {
  whenRefused = listener;
}

export async function send(path, options = {}) {
  const headers = {accept: "application/json", ...options.headers};
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  const answer = await patiently(path, {...options, headers, cache: "no-store", credentials: "same-origin"});
  if (answer.ok) return answer;
  if (answer.status === 401) whenRefused();
  throw new ApiError(answer.status, await messageOf(answer));
}

// Nothing that this page sends does harm when it is sent twice; what the network lost is sent again.
async function patiently(path, options) {
  for (const wait of [200, 500, 1000, 0]) {
    try {
      return await fetch(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
    }
    if (wait) await pause(wait);
  }
  throw new ApiError(0, "the API server does not answer");
}

export function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function messageOf(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).message || text;
  } catch {
    return text || answer.statusText;
  }
}

export async function get(path, headers = {}) {
  return (await send(path, {headers})).json();
}

export async function getText(path) {
  return (await send(path, {headers: {accept: "*/*"}})).text();
}

export async function post(path, body) {
  const headers = {"content-type": "application/json"};
  return (await send(path, {method: "POST", headers, body: JSON.stringify(body)})).json();
}

// Browsers cannot set a header on a WebSocket: the token is one of the offered protocols, as
// Kubernetes has it for them.
export function socket(path, protocol) {
  const protocols = [protocol];
  if (token.get()) {
    protocols.unshift("base64url.bearer.authorization.k8s.io." + base64url(token.get()));
  }
  return new WebSocket(new URL(path, location.href.replace(/^http/, "ws")), protocols);
}

function base64url(text) {
  const bytes = String.fromCharCode(...new TextEncoder().encode(text));
  return btoa(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

export async function whoAmI() {
  const body = {apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview"};
  const review = await post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body);
  return review.status.userInfo;
}

// May this user? As `kubectl auth can-i`.
export async function may(verb, resource, {group = "", namespace = "", name = "", subresource = ""} = {}) {
  const resourceAttributes = {verb, resource, group, namespace, name, subresource};
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: {resourceAttributes},
  };
  try {
    const review = await post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body);
    return review.status.allowed === true;
  } catch {
    return false;
  }
}

export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value != null);
  return given.length ? "?" + new URLSearchParams(given) : "";
}

// {"metadata.name": "web"} → a field selector; what means something in it is escaped.
export function fields(wanted) {
  return Object.entries(wanted).map(([key, value]) => `${key}=${value.replace(/[\\,=]/g, "\\$&")}`).join(",");
}

const part = encodeURIComponent;

// {group, version, plural, namespaced} and where → a path of the API.
export function pathOf(kind, namespace = "", name = "", subresource = "") {
  const root = kind.group ? `/apis/${part(kind.group)}/${part(kind.version)}` : `/api/${part(kind.version)}`;
  const where = kind.namespaced && namespace ? `/namespaces/${part(namespace)}` : "";
  return [root + where, kind.plural, name, subresource].filter(Boolean).map((item, at) => (at ? part(item) : item)).join("/");
}

export const PODS = {group: "", version: "v1", plural: "pods", namespaced: true};
export const NODES = {group: "", version: "v1", plural: "nodes", namespaced: false};
export const EVENTS = {group: "", version: "v1", plural: "events", namespaced: true};
export const NAMESPACES = {group: "", version: "v1", plural: "namespaces", namespaced: false};
