// An object as YAML, with the owner of every field beside it and in colour.

import {showActions} from "./actions.js";
import {get, pathOf} from "./api.js";
import {h, plain, show} from "./dom.js";
import {kindNamed, tableLink, yamlLink} from "./kinds.js";
import {rolloutView} from "./rollout.js";
import {usageView} from "./usage.js";
import {ownedLines} from "./yaml.js";

const HUES = 8; // as many as style.css has
const WORKLOADS = new Set(["apps", "batch"]); // groups whose selectors choose pods

export async function view(place, scope, [group, version, plural, namespace, name]) {
  const kind = await kindNamed(group, version, plural);
  const own = namespace === "-" ? "" : namespace;
  const object = await get(pathOf({...kind, namespaced: Boolean(own)}, own, name));
  const pods = h("section", {"aria-label": "Its pods"});
  const actions = h("p", {class: "choices"});
  const usage = !kind.group && kind.plural === "nodes" && h("dl", {class: "figures usage"});
  show(
    place,
    h("p", {class: "quiet"}, h("a", {href: tableLink(kind)}, plain(kind.plural)), own && ` in ${plain(own)}`),
    h("h1", {}, plain(name)),
    owners(object), actions, usage, pods, yamlOf(object),
  );
  showActions(actions, kind, object, () => window.dispatchEvent(new HashChangeEvent("hashchange")));
  if (usage) usageView(usage, scope, kind, "", name);
  if (own && WORKLOADS.has(kind.group)) await rolloutView(pods, own, object);
}

// Links to who owns it.
export function owners({metadata}) {
  const found = (metadata.ownerReferences ?? []).map(({apiVersion, kind, name}) => {
    const [version, group = ""] = apiVersion.split("/").reverse();
    const plural = `${kind.toLowerCase()}${/(s|x)$/i.test(kind) ? "es" : "s"}`;
    return h("a", {href: yamlLink({group, version, plural}, metadata.namespace ?? "", name)}, plain(`${kind}/${name}`));
  });
  return found.length > 0 && h("p", {class: "quiet"}, "Owned by ", found.flatMap((link, at) => (at ? [", ", link] : [link])));
}

export function yamlOf(object) {
  const {lines, owners} = ownedLines(object);
  const used = new Set(lines.map((line) => line.owner));
  const legend = owners.map((owner, at) => used.has(at) && h("li", {},
    h("span", {class: `owner hue${at % HUES}`}, String(at + 1)), " ",
    plain([owner.manager, owner.operation, owner.subresource && `of ${owner.subresource}`].filter(Boolean).join(", ")),
    owner.time && h("span", {class: "quiet"}, ` ${plain(owner.time)}`)));
  const body = lines.map(({text, owner}) => {
    const mark = owner < 0 ? h("span", {class: "owner"}, " ") : h("span", {class: `owner hue${owner % HUES}`, title: plain(owners[owner].manager)}, String(owner + 1));
    return h("span", {class: "line"}, mark, ` ${plain(text)}\n`);
  });
  return h("section", {"aria-label": "YAML"},
    h("h2", {}, "Who owns which field"),
    owners.length ? h("ul", {class: "owners"}, legend) : h("p", {class: "quiet"}, "Nobody says to own a field."),
    h("pre", {class: "yaml", tabindex: "0", "aria-label": "YAML, each line with the number of its owner"}, body));
}
