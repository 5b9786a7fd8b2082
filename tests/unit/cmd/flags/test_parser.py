"""cmd/flags/parser.py: the parser of one verb is a part of the parser of all."""

import argparse

import pytest

from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.help_screen import CLUSTER_VERBS


def verbs_of(parser):
    [verbs] = [item for item in parser._actions if isinstance(item, argparse._SubParsersAction)]
    return verbs.choices


@pytest.mark.parametrize("verb", [*CLUSTER_VERBS, "config"])
def test_the_parser_of_one_verb_has_it_as_the_parser_of_all_does(verb):
    alone, among_all = verbs_of(parser_of_verbs(verb)), verbs_of(parser_of_verbs())
    assert len(alone) < len(among_all)
    assert alone[verb].format_help() == among_all[verb].format_help()


def test_a_verb_that_nobody_knows_is_looked_for_among_all(capsys):
    with pytest.raises(SystemExit):
        parser_of_verbs("upp").parse_args(["upp"])
    assert "'up'" in capsys.readouterr().err
