"""tools/picture: what a terminal showed, as a drawing; and the drawing that the README shows."""

import importlib.machinery
import importlib.util
import xml.etree.ElementTree as ElementTree

import pytest

from tests.pages.place import ROOT


@pytest.fixture(scope="module")
def picture():
    path = str(ROOT / "tools" / "picture")
    loader = importlib.machinery.SourceFileLoader("picture", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("picture", loader))
    loader.exec_module(module)
    return module


def texts(svg):
    root = ElementTree.fromstring(svg)
    return ["".join(item.itertext()) for item in root.iter("{http://www.w3.org/2000/svg}text")]


def test_commands_and_what_they_printed_are_drawn_line_by_line(picture):
    svg = picture.drawing([("echo '<a>'", "<a>\n\nb & c\n"), ("true", "\x1b[32m✓\x1b[0m done\n")])
    assert texts(svg) == ["$ echo '<a>'", "<a>", "b & c", "$ true", "✓ done"]
    assert '<tspan class="green">✓</tspan> done' in svg


def test_a_long_line_is_broken_as_a_terminal_does(picture):
    long = "x" * picture.COLUMNS + "yz"
    assert texts(picture.drawing([("true", long)]))[1:] == ["x" * picture.COLUMNS, "yz"]


def test_a_command_that_fails_draws_nothing(picture, tmp_path):
    with pytest.raises(SystemExit, match="oh no"):
        picture.printed_by("echo oh no; false", str(tmp_path), {"PATH": "/usr/bin:/bin"})


def test_the_readmes_picture_is_of_the_session_that_the_tool_runs(picture):
    drawn = texts((ROOT / "docs" / "pictures" / "first-minute.svg").read_text())
    assert [line[2:] for line in drawn if line.startswith("$ ")] == list(picture.SHOWN)
    assert "prefers-color-scheme: dark" in (ROOT / "docs/pictures/first-minute.svg").read_text()
