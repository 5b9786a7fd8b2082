"""cmd/reference.py: docs/cli.md says what the parser knows."""

import argparse
from pathlib import Path

from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.reference import text

DOCUMENT = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_document_is_made_from_the_parser():
    assert DOCUMENT.read_text() == text(), "python -m sampan.cmd.reference > docs/cli.md"


def test_every_verb_and_every_flag_is_in_it():
    lines = text().splitlines()
    [verbs] = [
        action
        for action in parser_of_verbs()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    for name, parser in verbs.choices.items():
        assert f"### {name}" in lines
        for action in parser._actions:
            if action.option_strings and action.help not in (None, argparse.SUPPRESS):
                flag = f"`{action.option_strings[-1]}`"
                assert "--help" in flag or any(flag in line for line in lines), flag
