"""tools/error_index.py: docs/errors.md has the sentences that the code says."""

import ast
import functools
import re
from pathlib import Path

import pytest

from tools.error_index import DOCTOR, SECTIONS, text

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "sampan"
INDEXED = {sentence for _, rows in SECTIONS for sentence, _, _ in rows}
STOPS = {"CannotStart", "DataDirError"}
# The lab's and the flags' own sentences name the file or the flag that they are about.
OTHERS = (PACKAGE / "cmd" / "lab", PACKAGE / "cmd" / "flags")


@functools.cache
def nodes():
    """Of what stops a verb, and of what the client says where nobody answers."""
    paths = [PACKAGE / "cli" / "reporting.py", *sorted((PACKAGE / "cmd").rglob("*.py"))]
    texts = [
        path.read_text() for path in paths if not any(path.is_relative_to(one) for one in OTHERS)
    ]
    wanted = [text for text in texts if re.search(rf"{'|'.join(STOPS)}|_unreachable_text", text)]
    return [node for text in wanted for node in ast.walk(ast.parse(text))]


def sentence(node):
    """Of a text in the source, with … for what is put into it."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(one.value if isinstance(one, ast.Constant) else "…" for one in values)
    return ""


def stopping(node):
    match node:
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[first, *_])) if name in STOPS:
            return sentence(first)
    return ""


def says_enough(text):
    """By its own words; what only passes on another's has none."""
    return sum(word.isalpha() for word in text.replace("…", " ").split()) >= 4


def test_the_document_is_made_of_the_table():
    made = (ROOT / "docs" / "errors.md").read_text()
    assert made == text(), "python tools/error_index.py > docs/errors.md"


@pytest.mark.slow
def test_every_sentence_of_the_index_is_one_that_is_said():
    said = {sentence(node) for node in nodes()}
    assert said >= INDEXED, INDEXED - said


@pytest.mark.slow
def test_what_stops_a_verb_of_the_cluster_is_in_the_index():
    found = {stopping(node) for node in nodes()}
    wanted = {one for one in found if not one.startswith("--") and says_enough(one)}
    assert len(wanted) > 50
    assert wanted <= INDEXED, wanted - INDEXED


def test_whatever_the_doctor_looks_at_is_in_the_index():
    machine = PACKAGE / "cmd" / "verbs" / "machine"
    trees = [ast.parse((machine / f"{name}.py").read_text()) for name in ("doctor", "leftovers")]
    found = [node for tree in trees for node in ast.walk(tree)]
    looked_at = {
        sentence(node.args[0])
        for node in found
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Check" and node.args
    } - {""}
    indexed = {row[0].partition(": ")[0] for row in DOCTOR}
    assert looked_at <= indexed, looked_at - indexed
    said = {sentence(node) for node in found}
    for row in DOCTOR:
        what, _, words = row[0].partition(": ")
        if words != "…" and what not in ("system", "disk"):  # put together of parts
            assert words in said, row[0]


def test_every_sentence_has_a_cause_and_a_remedy():
    for _, rows in (*SECTIONS, ("", DOCTOR)):
        for _, cause, remedy in rows:
            assert cause.endswith(".")
            assert remedy.endswith((".", "?"))
