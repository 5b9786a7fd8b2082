// The search: all words must be in a section; its heading counts more than its text.
"use strict";
const top_ = document.currentScript.dataset.top;
const box = document.getElementById("search");
const found = document.getElementById("found");
if (matchMedia("(max-width: 50rem)").matches) document.querySelector("nav details").open = false;

function load() {
  if (load.asked) return;
  load.asked = true;
  const script = document.createElement("script");
  script.src = `${top_}search-index.js`;
  script.onload = show;
  document.head.append(script);
}

function score([, page, heading, text], words) {
  let sum = 0;
  for (const word of words) {
    const at = [heading, page, text].findIndex((part) => part.toLowerCase().includes(word));
    if (at < 0) return 0;
    sum += [10, 5, 1][at];
  }
  return sum;
}

function show() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.replaceChildren();
  found.hidden = !words.length || typeof INDEX === "undefined";
  if (found.hidden) return;
  const rows = INDEX.map((row) => [score(row, words), row]).filter(([points]) => points);
  rows.sort((a, b) => b[0] - a[0]);
  for (const [, [place, page, heading, text]] of rows.slice(0, 30)) {
    const link = document.createElement("a");
    link.href = top_ + place;
    link.textContent = heading || page;
    const more = document.createElement("small");
    more.textContent = `${page} · ${text.slice(0, 160)}`;
    const item = document.createElement("li");
    item.append(link, more);
    found.append(item);
  }
  if (!rows.length) found.append(Object.assign(document.createElement("li"), { textContent: "Nothing has all of these words." }));
}

box.addEventListener("focus", load);
box.addEventListener("input", show);
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== box) {
    event.preventDefault();
    box.focus();
  } else if (event.key === "Escape") {
    box.value = "";
    show();
    box.blur();
  }
});
