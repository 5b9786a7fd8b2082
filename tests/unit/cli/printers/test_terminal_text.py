"""cli/printers/terminal_text.py: what others wrote gives a terminal no orders."""

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from sampan.cli.printers.terminal_text import described, on_terminal
from sampan.cli.session import Io, Session

ORDERS = ["\x1b", "\x1b[2J", "\x1b]0;title\x07", "\x9b1A", "\r", "\b", "\x1b[8m", "\x1bc", "\x7f"]
TEXTS = st.lists(st.one_of(st.sampled_from(ORDERS), st.text(max_size=4))).map("".join)
OWN = "\x1b[0;32mname\x1b[0m"


class Screen(io.StringIO):
    def isatty(self):
        return True


@given(TEXTS)
def test_nothing_but_lines_stops_and_own_colours_is_left_of_orders(text):
    shown = re.sub(r"\x1b\[0(;3[0-7])?m", "", on_terminal(text))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


@given(st.text(st.characters(exclude_categories=["Cc"], include_characters="\n\t")))
def test_text_is_shown_as_it_is(text):
    assert on_terminal(text + OWN) == text + OWN


def test_what_is_replaced_can_be_read():
    assert on_terminal("a\x1b[2Jb\x07\r\x9b\x00") == "a^[[2Jb^G\\r\\x9b^@"
    assert described("a\x1b[2Jb\r\x07") == "a^[[2Jb\\r\x07"


def test_every_line_of_a_command_goes_this_way_and_programs_get_what_there_is():
    coloured = "\x1b[33;1mWarning:\x1b[0m"  # the word is ours; what is said is not
    cases = ((Screen, "^[[2J", coloured), (io.StringIO, "\x1b[2J", "Warning:"))
    for screen, shown, word in cases:
        out, error = screen(), screen()
        session = Session("kubectl", "", Io(io.BytesIO(), out, error, {}))
        session.print("\x1b[2J")
        session.write("\x1b[2J")
        session.complain("\x1b[2J")
        session.warn("\x1b[2J")
        assert out.getvalue() == f"{shown}\n{shown}"
        assert error.getvalue() == f"{shown}\n{word} {shown}\n"
