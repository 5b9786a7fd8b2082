"""What is wanted beside envtest's API server, as words and as settings."""

import pytest

from sampan.cmd.flags.testserver_flags import beside_in, words_of
from sampan.cmd.settings import Beside

FEW = Beside().controllers


@pytest.mark.parametrize(
    ("words", "beside"),
    [
        ([], Beside()),
        (["--nodes=2"], Beside(("*",), 2)),
        (["--nodes", "2", "--controllers=*,-job"], Beside(("*", "-job"), 2)),
        (["--controllers=deployment,replicaset"], Beside(("deployment", "replicaset"))),
        (["--nodes=1", "--simulated-scenario=s.yaml"], Beside(("*",), 1, "s.yaml")),
        (["--stages=/a", "--stages", "/b"], Beside(stages=("/a", "/b"))),
    ],
)
def test_words_say_what_is_wanted_and_are_said_again(words, beside):
    assert beside_in(words) == (beside, [])
    assert beside_in(words_of(beside)) == (beside, [])


def test_what_is_of_the_api_server_is_left_to_it():
    of_the_server = ["--secure-port=1", "--node", "x", "--v=4", ""]
    assert beside_in([*of_the_server[:2], "--nodes=3", *of_the_server[2:]]) == (
        Beside(("*",), 3),
        of_the_server,
    )


def test_nothing_but_a_number_of_nodes_is_one(capsys):
    with pytest.raises(SystemExit):
        beside_in(["--nodes=many"])
    assert "'many' is not a number of nodes" in capsys.readouterr().err
