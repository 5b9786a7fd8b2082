// Why this node, or none: what each filter refused and what each score gave, as `sampan why` has it.

import {get} from "./api.js";
import {h, plain, show} from "./dom.js";

export function decisionView(place, namespace, name) {
  const body = h("div");
  show(place, h("h2", {id: "decision-title"}, "The scheduler's decision"), body);
  const path = `/sampan/v1/why/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  let asked = "";
  return {
    async changed(pod) {
      // A decision changes with the node, or with the message of the condition.
      const wanted = JSON.stringify([pod?.metadata.uid, pod?.spec.nodeName, scheduled(pod)?.message]);
      if (!pod || wanted === asked) return;
      asked = wanted;
      try {
        show(body, decision(await get(path)));
      } catch (error) {
        const why = error.forbidden ? "You may not see it." : error.status === 404 ? "This server remembers none: the pod was given its node otherwise, or the scheduler runs elsewhere." : error.message;
        show(body, h("p", {class: "quiet"}, plain(why)));
      }
    },
  };
}

function scheduled(pod) {
  return pod?.status?.conditions?.find((item) => item.type === "PodScheduled");
}

function decision({chosen, message, refused = {}, best = []}) {
  const head = chosen
    ? `${chosen.node} with ${chosen.points} points, of ${chosen.feasibleNodes} nodes that were possible`
    : message || "No node.";
  return [h("p", {}, plain(head)), filterTable(refused), scoreTable(best)];
}

function filterTable(refused) {
  const rows = Object.entries(refused);
  if (!rows.length) return h("p", {class: "quiet"}, "No filter refused a node.");
  return h("table", {class: "small"}, h("caption", {}, "Filters"),
    h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Filter"), h("th", {scope: "col"}, "Refused nodes"))),
    h("tbody", {}, rows.map(([rule, nodes]) => h("tr", {}, h("th", {scope: "row"}, plain(rule)), h("td", {}, nodes.map(plain).join(", "))))));
}

function scoreTable(best) {
  if (!best.length) return null;
  const rules = [...new Set(best.flatMap(({byRule}) => Object.keys(byRule)))];
  const titles = ["Node", "Points", ...rules];
  return h("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Scores, scrollable"},
    h("table", {class: "small"}, h("caption", {}, "Scores of the best nodes"),
      h("thead", {}, h("tr", {}, titles.map((title) => h("th", {scope: "col"}, plain(title))))),
      h("tbody", {}, best.map(({node, points, byRule}) => h("tr", {},
        h("th", {scope: "row"}, plain(node)), h("td", {}, String(points)),
        rules.map((rule) => h("td", {}, String(byRule[rule] ?? 0))))))));
}
