// An object as lines of YAML, each with who owns what it says. Pure.
//
// ownedLines(object) → {lines: [{text, owner}], owners: [{manager, operation, subresource, time}]};
// `owner` is an index into owners, or -1. Several owners of a line: the last one in managedFields.

const PLAIN_WORD = /^[A-Za-z_./][A-Za-z0-9_./ @%+=()-]*$/;
// Lines that can stand as they are: the first one begins with no space, the last one ends once.
const BLOCK = /^[^\s][^]*\n[^]*[^\n]\n?$|^[^\s]\n$/;
const NOT_SHOWN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/;
const NOT_A_STRING = /^(true|false|null|yes|no|on|off|y|n|~)$/i;

export function ownedLines(object) {
  const fields = object.metadata?.managedFields ?? [];
  const owners = fields.map(({manager, operation, subresource = "", time = ""}) => ({manager, operation, subresource, time}));
  const shown = {...object, metadata: {...object.metadata}};
  delete shown.metadata.managedFields;
  const claims = fields.map((entry, owner) => ({owner, tree: entry.fieldsV1 ?? {}}));
  const lines = [];
  writeFields(lines, shown, claims, 0, "");
  return {lines, owners};
}

function writeFields(lines, value, claims, depth, first) {
  let lead = first;
  for (const [key, item] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) { // as kubectl
    const below = narrowed(claims, (tree) => tree[`f:${key}`]);
    writeItem(lines, `${lead || "  ".repeat(depth)}${scalar(key)}:`, item, below, depth);
    lead = "";
  }
}

function writeItem(lines, head, item, claims, depth) {
  const owner = ownerOf(claims);
  if (Array.isArray(item) && item.length) {
    lines.push({text: head, owner});
    for (const member of item) {
      const below = narrowed(claims, (tree) => memberOf(tree, member));
      writeMember(lines, member, below, depth);
    }
  } else if (isObject(item) && Object.keys(item).length) {
    lines.push({text: head, owner});
    writeFields(lines, item, claims, depth + 1, "");
  } else if (typeof item === "string" && BLOCK.test(item) && !NOT_SHOWN.test(item)) {
    lines.push({text: `${head} |${item.endsWith("\n") ? "" : "-"}`, owner});
    for (const line of item.replace(/\n$/, "").split("\n")) lines.push({text: "  ".repeat(depth + 1) + line, owner});
  } else {
    lines.push({text: `${head} ${scalar(item)}`, owner});
  }
}

function writeMember(lines, member, claims, depth) {
  const lead = `${"  ".repeat(depth)}- `;
  if (isObject(member) && Object.keys(member).length) writeFields(lines, member, claims, depth + 1, lead);
  else lines.push({text: lead + scalar(member), owner: ownerOf(claims)}); // a list in a list as JSON
}

// Whose tree goes on below: an empty tree owns all that is below it.
function narrowed(claims, below) {
  return claims.flatMap(({owner, tree, whole}) => {
    if (whole) return [{owner, tree, whole}];
    const found = below(tree);
    if (!found) return [];
    return [{owner, tree: found, whole: Object.keys(found).every((key) => key === ".")}];
  });
}

function memberOf(tree, member) {
  for (const [key, below] of Object.entries(tree)) {
    if (key.startsWith("k:") && isObject(member)) {
      const wanted = Object.entries(JSON.parse(key.slice(2)));
      if (wanted.every(([name, value]) => member[name] === value)) return below;
    }
    if (key.startsWith("v:") && key.slice(2) === JSON.stringify(member)) return below;
  }
  return undefined;
}

function ownerOf(claims) {
  return claims.length ? claims[claims.length - 1].owner : -1;
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

export function scalar(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  const isPlain = PLAIN_WORD.test(value) && !NOT_A_STRING.test(value) && !/^[.\d+-]/.test(value) && !value.endsWith(" ");
  return isPlain ? value : JSON.stringify(value);
}
