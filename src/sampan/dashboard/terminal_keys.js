// What a key sends to a program in a terminal. Pure.

const CURSOR = {ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F"};
const FIRST = {F1: "P", F2: "Q", F3: "R", F4: "S"};
const NUMBERED = {Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24};
const ALONE = {Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b"};

// → the characters, or null: the key is the browser's, or types by itself. Shift+Tab leaves the
// terminal, Ctrl+V pastes, Ctrl+C copies where something is selected.
export function charactersOf(event, applicationKeys, isSelected = false) {
  const {key, ctrlKey, altKey, shiftKey, metaKey} = event;
  if (metaKey || event.isComposing || (key === "Tab" && shiftKey) || (shiftKey && /^Page(Up|Down)$/.test(key))) return null;
  const modifier = 1 + (shiftKey ? 1 : 0) + (altKey ? 2 : 0) + (ctrlKey ? 4 : 0);
  if (CURSOR[key]) {
    if (modifier > 1) return `\x1b[1;${modifier}${CURSOR[key]}`;
    return `\x1b${applicationKeys ? "O" : "["}${CURSOR[key]}`;
  }
  if (FIRST[key]) return modifier > 1 ? `\x1b[1;${modifier}${FIRST[key]}` : `\x1bO${FIRST[key]}`;
  if (NUMBERED[key]) return `\x1b[${NUMBERED[key]}${modifier > 1 ? `;${modifier}` : ""}~`;
  if (ALONE[key]) return (altKey ? "\x1b" : "") + ALONE[key];
  if (key.length !== 1) return null;
  if (ctrlKey) return controlled(key, shiftKey || (key === "c" && isSelected), altKey);
  return altKey && key.charCodeAt(0) < 0x7f ? `\x1b${key}` : null;
}

function controlled(key, isBrowsers, altKey) {
  const code = key.toUpperCase().charCodeAt(0);
  if (isBrowsers || key === "v") return null;
  if (altKey && code > 0x7f) return null; // AltGr
  if (code >= 0x40 && code <= 0x5f) return (altKey ? "\x1b" : "") + String.fromCharCode(code - 0x40);
  return {" ": "\x00", "/": "\x1f"}[key] ?? null;
}

// A program that asked for it is told where a paste begins and ends; nothing in it can end it.
export function pasted(text, bracketed) {
  const lines = text.replace(/\r?\n/g, "\r");
  return bracketed ? `\x1b[200~${lines.replaceAll("\x1b", "")}\x1b[201~` : lines;
}
