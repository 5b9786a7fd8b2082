"""cmd/help_screen.py: what a newcomer sees first."""

import pytest

from sampan.cli import catalog
from sampan.cmd import entry
from sampan.cmd.flags.examples import EXAMPLES
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


def test_examples_are_of_verbs_that_exist():
    assert set(EXAMPLES) <= set(CLUSTER_VERBS)
