// The screen of a terminal: what a program writes, as cells. No document, no socket, no clock.
//
// As xterm and ECMA-48 have it, as far as shells, editors and pagers ask: colours, scrolling regions,
// the other screen, wide characters, reports. What is not known is swallowed, never shown.
// Invariant: there are `rows` lines of `columns` cells, the cursor is within, and what was scrolled
// away is at most HISTORY lines.
// Invariant: nothing that a program writes becomes more than a character with a look: titles, links
// and questions about the machine are not heard.

export const HISTORY = 2000; // lines
const MOST_PARAMETERS = 32;
const MOST_STRING = 4096; // characters of a title or the like, after which it counts as ended
const LARGEST = 1000; // columns or rows
const PLAIN = Object.freeze({});
const BLANK = Object.freeze({char: " ", look: PLAIN});
const REST = Object.freeze({char: "", look: PLAIN}); // the second half of a wide character
const GRAPHICS = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"; // ` to ~ of the line-drawing set

export class Screen {
  columns;
  rows;
  lines = []; // of cells: {char, look}
  history = []; // lines that were scrolled away
  row = 0;
  column = 0;
  hidden = false; // the cursor
  applicationKeys = false;
  bracketedPaste = false;
  reply = () => {}; // what the program asked for
  #changed = new Set(); // rows
  #scrolled = 0; // lines that went into history since the last look
  #look = PLAIN;
  #top = 0;
  #bottom;
  #wraps = true;
  #inserts = false;
  #pending = false; // the next character goes into the next line
  #origin = false;
  #saved = null;
  #other = null; // the main screen while the other one is shown
  #sets = ["B", "B"];
  #set = 0;
  #last = "";
  #stops = new Set();
  #state = "ground";
  #text = "";

  constructor(columns, rows) {
    this.columns = columns;
    this.rows = rows;
    this.#reset();
  }

  // → [rows that differ, lines that went into history] since it was asked last.
  taken() {
    const found = [[...this.#changed].filter((row) => row < this.rows).sort((a, b) => a - b), this.#scrolled];
    this.#changed = new Set();
    this.#scrolled = 0;
    return found;
  }

  resize(columns, rows) {
    [columns, rows] = [within(columns, 1, LARGEST), within(rows, 1, LARGEST)];
    if (columns === this.columns && rows === this.rows) return;
    while (this.lines.length > rows && this.row < this.lines.length - 1) this.lines.pop();
    while (this.lines.length > rows) {
      this.#keep(this.lines.shift());
      this.row -= 1;
    }
    [this.columns, this.rows] = [columns, rows];
    this.lines = this.#fitted(this.lines);
    if (this.#other) this.#other.lines = this.#fitted(this.#other.lines.slice(-rows));
    [this.#top, this.#bottom, this.#pending] = [0, rows - 1, false];
    this.#moveTo(this.row, this.column);
    this.#touchAll();
  }

  #fitted(lines) {
    const fitted = lines.map((line) => {
      const cut = line.slice(0, this.columns);
      while (cut.length < this.columns) cut.push(BLANK);
      if (cut.at(-1).wide) cut[cut.length - 1] = BLANK;
      return cut;
    });
    while (fitted.length < this.rows) fitted.push(this.#blankLine());
    return fitted;
  }

  write(text) {
    for (const char of text) this.#take(char);
  }

  #reset() {
    this.lines = Array.from({length: this.rows}, () => this.#blankLine());
    Object.assign(this, {row: 0, column: 0, hidden: false, applicationKeys: false, bracketedPaste: false});
    [this.#look, this.#top, this.#bottom, this.#wraps] = [PLAIN, 0, this.rows - 1, true];
    [this.#inserts, this.#pending, this.#origin, this.#saved, this.#other] = [false, false, false, null, null];
    [this.#sets, this.#set, this.#state, this.#text] = [["B", "B"], 0, "ground", ""];
    this.#stops = new Set(Array.from({length: LARGEST / 8}, (_, at) => at * 8));
    this.#touchAll();
  }

  #take(char) {
    const code = char.codePointAt(0);
    if (this.#state === "string") this.#inString(char, code);
    else if (code === 0x18 || code === 0x1a) this.#state = "ground";
    else if (code === 0x1b) [this.#state, this.#text] = ["escape", ""];
    else if (code < 0x20) this.#control(code);
    else if (code === 0x7f || (code >= 0x80 && code < 0xa0)) return;
    else if (this.#state === "ground") this.#print(char, code);
    else if (this.#state === "escape") this.#escape(char);
    else if (this.#state === "sequence") this.#sequence(char, code);
    else this.#charset(char);
  }

  // Titles, palettes, device strings: up to their end, BEL or ESC \.
  #inString(char, code) {
    if (this.#text.endsWith("\x1b")) {
      if (char === "\\") this.#state = "ground";
      else this.#escape(char);
    } else if (code === 0x07 || code === 0x18 || code === 0x1a || this.#text.length > MOST_STRING) this.#state = "ground";
    else this.#text += char;
  }

  #control(code) {
    if (code === 0x08) this.#moveTo(this.row, this.column - 1);
    else if (code === 0x09) this.#tab();
    else if (code >= 0x0a && code <= 0x0c) this.#lineFeed();
    else if (code === 0x0d) this.#moveTo(this.row, 0);
    else if (code === 0x0e || code === 0x0f) this.#set = code === 0x0e ? 1 : 0;
  }

  #print(char, code) {
    const width = widthOf(code);
    if (width === 0) return this.#combine(char);
    if (this.#pending && this.#wraps) {
      this.#moveTo(this.row, 0);
      this.#lineFeed();
    }
    if (this.column + width > this.columns) {
      if (width > this.columns) return;
      if (this.#wraps) {
        this.#moveTo(this.row, 0);
        this.#lineFeed();
      } else this.column = this.columns - width;
    }
    const shown = this.#sets[this.#set] === "0" && code >= 0x60 && code <= 0x7e ? GRAPHICS[code - 0x60] : char;
    this.#last = char;
    if (this.#inserts) this.#insertCells(width);
    this.#put(this.column, width === 2 ? {char: shown, look: this.#look, wide: true} : {char: shown, look: this.#look});
    if (width === 2) this.#put(this.column + 1, REST, true);
    this.#pending = this.column + width >= this.columns;
    this.column = Math.min(this.columns - 1, this.column + width);
  }

  // Half of a wide character is none.
  #put(at, cell, isRest = false) {
    const line = this.lines[this.row];
    if (line[at] === REST && !isRest && at > 0) line[at - 1] = BLANK;
    if (line[at].wide && line[at + 1] === REST) line[at + 1] = BLANK;
    line[at] = cell;
    this.#changed.add(this.row);
  }

  #combine(char) {
    const line = this.lines[this.row];
    let at = this.#pending ? this.column : this.column - 1;
    if (at > 0 && line[at] === REST) at -= 1;
    if (at < 0 || line[at].char.length > 16) return;
    line[at] = {...line[at], char: line[at].char + char};
    this.#changed.add(this.row);
  }

  #escape(char) {
    this.#state = "ground";
    if (char === "[") [this.#state, this.#text] = ["sequence", ""];
    else if ("]PX^_".includes(char)) [this.#state, this.#text] = ["string", ""];
    else if ("()*+-./#% ".includes(char)) [this.#state, this.#text] = ["charset", char];
    else if (char === "7") this.#save();
    else if (char === "8") this.#restore();
    else if (char === "D") this.#lineFeed();
    else if (char === "E") {
      this.#moveTo(this.row, 0);
      this.#lineFeed();
    } else if (char === "M") this.#reverseFeed();
    else if (char === "H") this.#stops.add(this.column);
    else if (char === "c") this.#reset();
  }

  #charset(char) {
    if (this.#text === "(") this.#sets[0] = char;
    else if (this.#text === ")") this.#sets[1] = char;
    this.#state = "ground";
  }

  #sequence(char, code) {
    if (code < 0x40) {
      if (this.#text.length < 8 * MOST_PARAMETERS) this.#text += char;
      return;
    }
    this.#state = "ground";
    const [, mark, numbers, between] = /^([<=>?]?)([0-9;:]*)(.*)$/s.exec(this.#text);
    if (between) return between === "!" && char === "p" ? this.#softReset() : undefined;
    const given = numbers.split(";").slice(0, MOST_PARAMETERS);
    if (mark === "?" && "hl".includes(char)) for (const mode of given) this.#privateMode(Number(mode), char === "h");
    else if (!mark && char === "m") this.#look = lookAfter(this.#look, given);
    else if (!mark) this.#ordinary(char, given.map((text) => Math.min(LARGEST * 10, Number(text.split(":")[0]) || 0)));
  }

  #ordinary(char, given) {
    const [first = 0, second = 0] = given;
    const count = Math.max(1, first);
    const [top, bottom] = [this.row >= this.#top ? this.#top : 0, this.row <= this.#bottom ? this.#bottom : this.rows - 1];
    const acts = {
      A: () => this.#moveTo(Math.max(top, this.row - count), this.column),
      B: () => this.#moveTo(Math.min(bottom, this.row + count), this.column),
      C: () => this.#moveTo(this.row, this.column + count),
      D: () => this.#moveTo(this.row, this.column - count),
      E: () => this.#moveTo(Math.min(bottom, this.row + count), 0),
      F: () => this.#moveTo(Math.max(top, this.row - count), 0),
      G: () => this.#moveTo(this.row, count - 1),
      H: () => this.#address(count - 1, Math.max(1, second) - 1),
      I: () => repeat(count, () => this.#tab()),
      J: () => this.#eraseScreen(first),
      K: () => this.#eraseLine(first),
      L: () => this.#withinRegion(() => this.#scrollDown(this.row, count)),
      M: () => this.#withinRegion(() => this.#scrollUp(this.row, count, false)),
      P: () => this.#deleteCells(count),
      S: () => this.#scrollUp(this.#top, count, false),
      T: () => this.#scrollDown(this.#top, count),
      X: () => this.#erase(this.row, this.column, this.column + count),
      "@": () => this.#insertCells(count),
      b: () => this.#last && repeat(Math.min(count, this.columns * this.rows), () => this.#print(this.#last, this.#last.codePointAt(0))),
      c: () => this.reply("\x1b[?1;2c"),
      d: () => this.#address(count - 1, this.column),
      g: () => (first === 3 ? this.#stops.clear() : this.#stops.delete(this.column)),
      h: () => given.includes(4) && (this.#inserts = true),
      l: () => given.includes(4) && (this.#inserts = false),
      n: () => this.#report(first),
      r: () => this.#region(first || 1, second || this.rows),
      s: () => this.#save(),
      u: () => this.#restore(),
    };
    acts["`"] = acts.G;
    acts.a = acts.C;
    acts.e = acts.B;
    acts.f = acts.H;
    acts[char]?.();
  }

  #report(what) {
    if (what === 5) this.reply("\x1b[0n");
    else if (what === 6) this.reply(`\x1b[${this.row - (this.#origin ? this.#top : 0) + 1};${this.column + 1}R`);
  }

  #privateMode(mode, on) {
    if (mode === 1) this.applicationKeys = on;
    else if (mode === 6) {
      this.#origin = on;
      this.#address(0, 0);
    } else if (mode === 7) this.#wraps = on;
    else if (mode === 25) this.#hide(!on);
    else if (mode === 47 || mode === 1047) this.#switchScreen(on);
    else if (mode === 1048) on ? this.#save() : this.#restore();
    else if (mode === 1049) {
      if (on) this.#save();
      this.#switchScreen(on);
      if (!on) this.#restore();
    } else if (mode === 2004) this.bracketedPaste = on;
  }

  #hide(hidden) {
    this.hidden = hidden;
    this.#changed.add(this.row);
  }

  // What full-screen programs draw on: the shell's lines come back when they end.
  #switchScreen(on) {
    if (on === Boolean(this.#other)) return;
    if (on) {
      this.#other = {lines: this.lines};
      this.lines = Array.from({length: this.rows}, () => this.#blankLine());
    } else {
      this.lines = this.#other.lines;
      this.#other = null;
    }
    [this.#top, this.#bottom] = [0, this.rows - 1];
    this.#touchAll();
  }

  #softReset() {
    Object.assign(this, {hidden: false, applicationKeys: false});
    [this.#look, this.#top, this.#bottom, this.#wraps, this.#inserts, this.#origin] = [PLAIN, 0, this.rows - 1, true, false, false];
    [this.#sets, this.#set, this.#saved] = [["B", "B"], 0, null];
    this.#changed.add(this.row);
  }

  #save() {
    this.#saved = {row: this.row, column: this.column, look: this.#look, sets: [...this.#sets], set: this.#set, origin: this.#origin};
  }

  #restore() {
    const {row = 0, column = 0, look = PLAIN, sets = ["B", "B"], set = 0, origin = false} = this.#saved ?? {};
    [this.#look, this.#sets, this.#set, this.#origin] = [look, [...sets], set, origin];
    this.#moveTo(row, column);
  }

  #address(row, column) {
    if (this.#origin) this.#moveTo(Math.min(this.#bottom, this.#top + row), column);
    else this.#moveTo(row, column);
  }

  #moveTo(row, column) {
    this.#changed.add(this.row);
    this.row = within(row, 0, this.rows - 1);
    this.column = within(column, 0, this.columns - 1);
    this.#pending = false;
    this.#changed.add(this.row);
  }

  #tab() {
    let at = this.column + 1;
    while (at < this.columns - 1 && !this.#stops.has(at)) at += 1;
    this.#moveTo(this.row, at);
  }

  #region(top, bottom) {
    if (top >= bottom || top > this.rows) return;
    [this.#top, this.#bottom] = [top - 1, Math.min(bottom, this.rows) - 1];
    this.#address(0, 0);
  }

  #lineFeed() {
    if (this.row === this.#bottom) this.#scrollUp(this.#top, 1, true);
    else this.#moveTo(this.row + 1, this.column);
    this.#pending = false;
  }

  #reverseFeed() {
    if (this.row === this.#top) this.#scrollDown(this.#top, 1);
    else this.#moveTo(this.row - 1, this.column);
  }

  #withinRegion(work) {
    if (this.row >= this.#top && this.row <= this.#bottom) work();
  }

  #scrollUp(from, count, keeps) {
    for (let left = Math.min(count, this.#bottom - from + 1); left > 0; left--) {
      const [gone] = this.lines.splice(from, 1);
      this.lines.splice(this.#bottom, 0, this.#blankLine());
      if (keeps && from === 0 && !this.#other) this.#keep(gone);
    }
    this.#touch(from, this.#bottom);
  }

  #scrollDown(from, count) {
    for (let left = Math.min(count, this.#bottom - from + 1); left > 0; left--) {
      this.lines.splice(this.#bottom, 1);
      this.lines.splice(from, 0, this.#blankLine());
    }
    this.#touch(from, this.#bottom);
  }

  #keep(line) {
    this.history.push(line);
    this.#scrolled += 1;
    if (this.history.length > HISTORY) this.history.shift();
  }

  #eraseScreen(what) {
    if (what === 3) return; // the history is the reader's
    const [from, until] = [what === 0 ? this.row + 1 : 0, what === 1 ? this.row : this.rows];
    if (what < 2) this.#eraseLine(what);
    for (let row = from; row < until; row++) this.#erase(row, 0, this.columns);
  }

  #eraseLine(what) {
    this.#erase(this.row, what === 0 ? this.column : 0, what === 1 ? this.column + 1 : this.columns);
  }

  #erase(row, from, until) {
    const line = this.lines[row];
    if (line[from] === REST && from > 0) line[from - 1] = BLANK;
    if (line[until] === REST) line[until] = BLANK;
    line.fill(this.#blank(), from, Math.min(until, this.columns));
    this.#changed.add(row);
  }

  #insertCells(count) {
    const line = this.lines[this.row];
    line.splice(this.column, 0, ...this.#blankLine(Math.min(count, this.columns - this.column)));
    line.length = this.columns;
    this.#changed.add(this.row);
  }

  #deleteCells(count) {
    const line = this.lines[this.row];
    const gone = line.splice(this.column, Math.min(count, this.columns - this.column));
    line.push(...this.#blankLine(gone.length));
    this.#changed.add(this.row);
  }

  // Erased cells have the ground that is set.
  #blank() {
    return this.#look.ground == null ? BLANK : {char: " ", look: {ground: this.#look.ground}};
  }

  #blankLine(length = this.columns) {
    return new Array(length).fill(this.#blank());
  }

  #touch(from, until) {
    for (let row = from; row <= until; row++) this.#changed.add(row);
  }

  #touchAll() {
    this.#touch(0, this.rows - 1);
  }
}

function within(value, least, most) {
  return Math.max(least, Math.min(most, value));
}

function repeat(count, work) {
  for (let left = count; left > 0; left--) work();
}

const SWITCHES = {1: ["bold", true], 2: ["faint", true], 3: ["italic", true], 4: ["underlined", true], 7: ["reverse", true], 8: ["concealed", true], 9: ["struck", true], 23: ["italic"], 24: ["underlined"], 27: ["reverse"], 28: ["concealed"], 29: ["struck"]};

// The look after `m`: colours are 0–255 or "#rrggbb"; what is not set is not there.
export function lookAfter(look, given) {
  let next = {...look};
  const set = (name, value) => {
    if (value == null) delete next[name];
    else next[name] = value;
  };
  for (let at = 0; at < given.length; at++) {
    const parts = given[at].split(":");
    const code = Number(parts[0]) || 0;
    if (code === 0) next = {};
    else if (code === 4 && parts[1] === "0") set("underlined");
    else if (SWITCHES[code]) set(...SWITCHES[code]);
    else if (code === 22) [set("bold"), set("faint")];
    else if (code >= 30 && code <= 37) set("colour", code - 30);
    else if (code >= 40 && code <= 47) set("ground", code - 40);
    else if (code >= 90 && code <= 97) set("colour", code - 82);
    else if (code >= 100 && code <= 107) set("ground", code - 92);
    else if (code === 39 || code === 49) set(code === 39 ? "colour" : "ground");
    else if (code === 38 || code === 48) {
      const inOne = parts.length > 1;
      const [value, used] = colourOf(inOne ? parts.slice(1).map(Number) : given.slice(at + 1).map(Number), inOne);
      if (value != null) set(code === 38 ? "colour" : "ground", value);
      if (!inOne) at += used;
    }
  }
  return Object.keys(next).length ? Object.freeze(next) : PLAIN;
}

// 5;N or 2;R;G;B (with colons there may be a colour space before R) → [value, how many were used].
function colourOf(numbers, inOne) {
  if (numbers[0] === 5) return [within(numbers[1] || 0, 0, 255), 2];
  if (numbers[0] !== 2) return [null, numbers.length];
  const from = inOne && numbers.length > 4 ? 2 : 1;
  const hex = numbers.slice(from, from + 3).map((part) => within(part || 0, 0, 255).toString(16).padStart(2, "0"));
  return [hex.length === 3 ? `#${hex.join("")}` : null, 4];
}

const ZERO = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const WIDE = [[0x1100, 0x115f], [0x231a, 0x231b], [0x23e9, 0x23ec], [0x2e80, 0x303e], [0x3041, 0x33ff], [0x3400, 0x4dbf], [0x4e00, 0x9fff], [0xa000, 0xa4cf], [0xa960, 0xa97f], [0xac00, 0xd7a3], [0xf900, 0xfaff], [0xfe30, 0xfe6f], [0xff00, 0xff60], [0xffe0, 0xffe6], [0x1f300, 0x1f64f], [0x1f680, 0x1f6ff], [0x1f900, 0x1faff], [0x20000, 0x3fffd]];

export function widthOf(code) {
  if (code < 0x300) return 1;
  if (ZERO.test(String.fromCodePoint(code))) return 0;
  return WIDE.some(([from, until]) => code >= from && code <= until) ? 2 : 1;
}
