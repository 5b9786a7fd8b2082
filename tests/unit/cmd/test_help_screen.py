"""cmd/help_screen.py: what a newcomer sees first."""

import re
import shlex

import pytest

from sampan.cli import catalog
from sampan.cmd import entry
from sampan.cmd.flags.examples import EXAMPLES
from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.help_screen import CLUSTER_VERBS, FIRST, screen


def test_ten_verbs_come_first_and_all_of_them_exist():
    assert len(FIRST) == 10
    assert {verb for verb, _ in FIRST} <= {*CLUSTER_VERBS, *catalog.names()}


def test_every_verb_is_on_one_screen():
    lines = screen().splitlines()
    assert set(screen().split()) >= {*CLUSTER_VERBS, *catalog.names()}
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("words", [[], ["help"], ["--help"], ["-h"]])
def test_every_way_to_ask_for_help_shows_it(words, capsys):
    assert entry.main(words) == 0
    assert capsys.readouterr().out == screen()


def test_help_of_a_verb_is_found_for_both_kinds_of_verbs(capsys):
    with pytest.raises(SystemExit) as ended:
        entry.main(["help", "up"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: sampan up [flags]\n\nstart a cluster\n")
    assert entry.main(["help", "get"]) == 0
    assert capsys.readouterr().out.startswith("Display one or many resources.")


@pytest.mark.parametrize("verb", [verb for verb in CLUSTER_VERBS if verb != "version"])
def test_examples_are_words_that_the_verb_takes(verb):
    lines = EXAMPLES[verb].splitlines()
    commands = [re.search(r"sampan (.*?)( {2,}| >|\)|$)", line)[1] for line in lines]
    assert commands
    for command in commands:
        assert parser_of_verbs().parse_args(shlex.split(command)).verb == verb, command
