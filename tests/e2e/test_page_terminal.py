"""The terminal of the page, without a cluster: its screen and its keys, in a real browser [X1]."""

import base64
import json
from pathlib import Path

import pytest

import sampan

pytestmark = pytest.mark.slow
FOLDER = Path(sampan.__file__).parent / "dashboard"

# What a program writes to a screen of 10 × 3 → the lines, and where the cursor is then.
WRITTEN = [
    ("one\r\ntwo", ["one", "two", ""], [1, 3]),
    ("0123456789", ["0123456789", "", ""], [0, 9]),
    ("0123456789a", ["0123456789", "a", ""], [1, 1]),
    ("\x1b[?7l0123456789ab", ["012345678b", "", ""], [0, 9]),
    ("a\r\nb\r\nc\r\nd", ["b", "c", "d"], [2, 1]),
    ("a\tb", ["a       b", "", ""], [0, 9]),
    ("abc\x08\x08X", ["aXc", "", ""], [0, 2]),
    ("abc\x1b[2;5HX\x1b[1;1H\x1b[K", ["", "    X", ""], [0, 0]),
    ("abcdef\x1b[3D\x1b[1K", ["    ef", "", ""], [0, 3]),
    ("abcdef\x1b[1G\x1b[2P", ["cdef", "", ""], [0, 0]),
    ("abcdef\x1b[1G\x1b[2@", ["  abcdef", "", ""], [0, 0]),
    ("abcdef\x1b[2G\x1b[3X", ["a   ef", "", ""], [0, 1]),
    ("abc\x1b[1G\x1b[4hX\x1b[4l", ["Xabc", "", ""], [0, 1]),
    ("1\r\n2\r\n3\x1b[1;1H\x1b[L", ["", "1", "2"], [0, 0]),
    ("1\r\n2\r\n3\x1b[1;1H\x1b[M", ["2", "3", ""], [0, 0]),
    ("1\r\n2\r\n3\x1b[2;3r\x1b[3;1H\n4", ["1", "3", "4"], [2, 1]),
    ("1\r\n2\r\n3\x1b[1;2r\x1b[1;1H\x1bM", ["", "1", "3"], [0, 0]),
    ("1\r\n2\r\n3\x1b[2J", ["", "", ""], [2, 1]),
    ("1\r\n2\r\n3\x1b[2;1H\x1b[J", ["1", "", ""], [1, 0]),
    ("ab\x1b7\x1b[3;9HX\x1b8c", ["abc", "", "        X"], [0, 3]),
    ("ab\x1b[?1049h\x1b[Hother\x1b[?1049lc", ["abc", "", ""], [0, 3]),
    ("\x1b]0;a title\x07a\x1b]8;;http://x\x1b\\b\x1bP1$r\x1b\\c", ["abc", "", ""], [0, 3]),
    ("\x1b(0lqk\x1b(Bq", ["┌─┐q", "", ""], [0, 4]),
    ("世界!", ["世界!", "", ""], [0, 5]),
    ("\x1b[1;10H世", ["", "世", ""], [1, 2]),
    ("世\x1b[1;2HX", [" X", "", ""], [0, 2]),
    ("e\u0301!", ["e\u0301!", "", ""], [0, 2]),
    ("ab\x1b[3b", ["abbbb", "", ""], [0, 5]),
    ("\x1b[99999999;99999999Hx\x1b[1;1H\x1b[99999999@", ["", "", "         x"], [0, 0]),
    ("\x1b[5;1r\x1b[0;0;0r\x1b[>4;1m\x1b[?12;25$p\x1b[!pa", ["a", "", ""], [0, 1]),
    ("a\x1bcb", ["b", "", ""], [0, 1]),
    ("\x1b[12\x18ab\x1b\x1b[Cc", ["ab c", "", ""], [0, 4]),
]


@pytest.fixture(scope="module")
def asked(browser):
    """asked(module, expression): what the expression is where `it` is a module of the page."""
    page = browser.page("about:blank")

    def ask(module, expression):
        text = base64.b64encode((FOLDER / module).read_bytes()).decode()
        where = f"data:text/javascript;base64,{text}"
        return page.evaluate(f"import('{where}').then((it) => {{ {expression} }})")

    yield ask
    page.close()


def test_a_screen_shows_what_a_terminal_shows(asked):
    """Each sequence whole, and character by character."""
    found = asked(
        "screen.js",
        f"const given = {json.dumps([row[0] for row in WRITTEN])};"
        """
        const seen = ({lines, row, column}) =>
            [lines.map((line) => line.map((cell) => cell.char).join("").trimEnd()), [row, column]];
        return given.map((text) => {
            const [whole, pieces] = [new it.Screen(10, 3), new it.Screen(10, 3)];
            whole.write(text);
            for (const char of text) pieces.write(char);
            return [seen(whole), seen(pieces)];
        });""",
    )
    for (text, lines, cursor), answer in zip(WRITTEN, found, strict=True):
        assert answer == [[lines, cursor]] * 2, repr(text)


def test_a_screen_keeps_answers_and_changes_its_size(asked):
    found = asked(
        "screen.js",
        r"""
        const screen = new it.Screen(10, 3);
        const replies = [];
        screen.reply = (text) => replies.push(text);
        screen.write("a\r\nb\r\nc\x1b[6n\x1b[5n\x1b[c\x1b[?1h\x1b[?2004h\x1b[?25l");
        const modes = [screen.applicationKeys, screen.bracketedPaste, screen.hidden];
        screen.resize(4, 2);
        const small = screen.lines.map((line) => line.map((cell) => cell.char).join(""));
        const kept = screen.history.length;
        screen.resize(6, 4);
        const large = screen.lines.map((line) => line.length);
        for (let at = 0; at < it.HISTORY + 50; at++) screen.write("x\r\n");
        const isBounded = screen.history.length === it.HISTORY;
        return {replies, small, kept, large, modes, isBounded};
        """,
    )
    assert found == {
        "replies": ["\x1b[3;2R", "\x1b[0n", "\x1b[?1;2c"],
        "small": ["b   ", "c   "], "kept": 1, "large": [6, 6, 6, 6],
        "modes": [True, True, True], "isBounded": True,
    }  # fmt: skip


def test_colours_and_looks_are_set_and_undone(asked):
    rows = [
        ({}, ["1", "31"], {"bold": True, "colour": 1}),
        ({}, ["38", "5", "200", "4"], {"colour": 200, "underlined": True}),
        ({}, ["38:2::1:2:3"], {"colour": "#010203"}),
        ({}, ["48", "2", "1", "2", "3"], {"ground": "#010203"}),
        ({}, ["97", "101", "7"], {"colour": 15, "ground": 9, "reverse": True}),
        ({"bold": True}, ["0"], {}),
        ({"bold": True}, [""], {}),
        ({}, ["38"], {}),
        ({"bold": True, "colour": 1, "ground": 2, "reverse": True}, ["22", "39", "49", "27"], {}),
        ({"underlined": True}, ["4:0"], {}),
    ]
    given = json.dumps([row[:2] for row in rows])
    found = asked("screen.js", f"return {given}.map((row) => it.lookAfter(...row));")
    assert found == [row[2] for row in rows]


# (key, what is held, the screen wants application keys) → what is sent; None: it is the browser's.
KEYS = [
    ("Enter", "", False, "\r"), ("Backspace", "", False, "\x7f"), ("Tab", "", False, "\t"),
    ("Tab", "shift", False, None), ("Escape", "", False, "\x1b"), ("ArrowUp", "", False, "\x1b[A"),
    ("ArrowUp", "", True, "\x1bOA"), ("ArrowLeft", "ctrl", True, "\x1b[1;5D"),
    ("Home", "", False, "\x1b[H"), ("Delete", "", False, "\x1b[3~"),
    ("PageUp", "", False, "\x1b[5~"), ("PageUp", "shift", False, None),
    ("F1", "", False, "\x1bOP"), ("F5", "alt", False, "\x1b[15;3~"),
    ("c", "ctrl", False, "\x03"), ("C", "ctrl shift", False, None), ("v", "ctrl", False, None),
    ("[", "ctrl", False, "\x1b"), (" ", "ctrl", False, "\x00"), ("b", "alt", False, "\x1bb"),
    ("a", "", False, None), ("a", "meta", False, None), ("Shift", "shift", False, None),
]  # fmt: skip


def test_keys_send_what_a_terminal_sends(asked):
    held = ("shift", "ctrl", "alt", "meta")
    rows = [
        [{"key": key, **{f"{name}Key": name in given for name in held}}, application]
        for key, given, application, _ in KEYS
    ]
    sent = asked(
        "terminal_keys.js", f"return {json.dumps(rows)}.map((row) => it.charactersOf(...row));"
    )
    assert sent == [row[3] for row in KEYS]


def test_a_paste_cannot_end_itself_and_a_selection_is_copied(asked):
    assert asked("terminal_keys.js", r"return it.pasted('a\r\nb', false);") == "a\rb"
    found = asked("terminal_keys.js", r"return it.pasted('a\x1b[201~b', true);")
    assert found == "\x1b[200~a[201~b\x1b[201~"
    copied = "return it.charactersOf({key: 'c', ctrlKey: true}, false, true);"
    assert asked("terminal_keys.js", copied) is None
