"""cli/completion: what kubectl offers is recorded (tests/client_recording); here what needs no
server, and what is left where none answers."""

import io

import pytest

from sampan.cli.completion import candidates
from sampan.cli.main import main
from sampan.cli.session import Io

CONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: one, context: {cluster: c, user: u}}, {name: two, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: one
"""


@pytest.fixture
def complete(tmp_path):
    (tmp_path / "config").write_text(CONFIG)

    def told(*words, more=None):
        environment = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "config")}
        out, err = io.StringIO(), io.StringIO()
        streams = Io(io.BytesIO(), out, err, environment)
        assert main(["__complete", *words], io=streams, more_verbs=more) == 0
        *lines, directive = out.getvalue().splitlines()
        return lines, directive, err.getvalue()

    return told


@pytest.mark.parametrize(
    ("words", "found", "directive"),
    [
        (("get", "-o", "jsonpath-"), ["jsonpath-as-json", "jsonpath-file"], ":4"),
        (("get", "--output=wi"), ["wide"], ":4"),
        (("get", "--context", ""), ["one", "two"], ":4"),
        (("config", "use-context", "t"), ["two"], ":4"),
        (("config", "use-context", "one", ""), [], ":4"),
        (("apply", "-f", ""), ["json", "yaml", "yml"], ":8"),
        (("completion", "p"), ["powershell"], ":4"),
        (("get", "pods", "--", "--nam"), [], ":4"),
    ],
)
def test_values_that_need_no_server(complete, words, found, directive):
    assert complete(*words)[:2] == (found, directive)


def test_a_flag_is_offered_once_unless_it_may_be_repeated(complete):
    names = [line.split("\t")[0] for line in complete("get", "--name")[0]]
    assert names == ["--namespace"]
    assert complete("get", "-n", "a", "--name")[0] == []
    again = complete("apply", "-f", "a", "--filen")[0]
    assert [line.split("\t")[0] for line in again] == ["--filename"]


@pytest.mark.parametrize(
    "words", [("get", "pods", ""), ("get", "-n", ""), ("logs", ""), ("cp", "")]
)
def test_a_server_that_does_not_answer_gives_no_candidates_and_no_noise(complete, words):
    lines, _, err = complete(*words)
    assert not [line for line in lines if line not in ("./", "/")]
    assert err.startswith("Completion ended with directive: ")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("get", "--nope", ""), "unknown flag: --nope"),
        (("get", "-Z", ""), "unknown shorthand flag: 'Z' in -Z"),
        (("nope", ""), "unable to find a command for arguments: [nope]"),
    ],
)
def test_what_cannot_be_read_is_told_to_who_debugs(complete, words, why):
    lines, directive, err = complete(*words)
    assert (lines, directive) == ([], ":0")
    assert why in err


def test_verbs_of_the_program_stand_beside_those_of_the_client(complete):
    lines, directive, _ = complete("do", more={"down": "stop it", "up": "start it"})
    assert (lines, directive) == (["down\tstop it"], ":4")


def test_a_candidate_is_one_line():
    out = io.StringIO()
    streams = Io(io.BytesIO(), out, io.StringIO(), {})
    candidates.tell(streams, candidates.Answer(["a\tfirst \nsecond"], 2))
    assert out.getvalue() == "a\tfirst\n:2\n"
