"""What a kuberc does to a command line, and what it never does."""

import io

import pytest

from sampan.cli import kuberc, kuberc_file
from sampan.cli.errors import Plain
from sampan.cli.session import Io, Session

HEAD = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"
GET_WIDE = HEAD + "defaults:\n- command: get\n  options:\n  - {name: output, default: wide}\n"
ALIAS = HEAD + (
    "aliases:\n- name: getn\n  command: get\n  prependArgs: [nodes]\n  appendArgs: [--watch]\n"
    "  options:\n  - {name: output, default: wide}\n"
)


@pytest.fixture
def applied(tmp_path):
    def apply(text, *words):
        (tmp_path / "kuberc").write_text(text)
        environment = {"HOME": str(tmp_path), "KUBERC": str(tmp_path / "kuberc")}
        streams = Io(io.BytesIO(), io.StringIO(), io.StringIO(), environment)
        session = Session("kubectl", "kubectl", streams)
        return kuberc.apply(session, words), session

    return apply


@pytest.mark.parametrize(
    "given", [["-o", "json"], ["-ojson"], ["--output=json"], ["--output", "json"], ["-Ao", "json"]]
)
def test_a_flag_that_is_given_is_not_overridden(applied, given):
    _, session = applied(GET_WIDE, "get", "pods", *given)
    assert session.presets == []


def test_a_default_is_for_its_command_only(applied):
    assert applied(GET_WIDE, "get", "pods")[1].presets == [("output", "wide")]
    assert applied(GET_WIDE, "describe", "pods")[1].presets == []


def test_an_alias_is_its_command_with_arguments_before_and_behind(applied):
    words, session = applied(ALIAS, "getn", "one")
    assert words == ["getn", "nodes", "one", "--watch"]
    assert session.presets == [("output", "wide")]
    assert session.alias.name == "getn"


def test_defaults_of_a_command_are_not_those_of_its_alias(applied):
    text = ALIAS + GET_WIDE.removeprefix(HEAD).replace("output", "sort-by")
    assert applied(text, "getn")[1].presets == [("output", "wide")]


def test_no_alias_hides_a_command(applied):
    words, session = applied(ALIAS.replace("getn", "version"), "version", "--client")
    assert (words, session.alias) == (["version", "--client"], None)


def test_a_wrong_value_is_told_before_anything_runs(applied):
    with pytest.raises(Plain, match="could not apply override value maybe to flag watch"):
        applied(GET_WIDE.replace("output", "watch").replace("wide", "maybe"), "get", "pods")


def test_both_versions_say_the_same():
    old = GET_WIDE.replace("v1beta1", "v1alpha1").replace("options", "flags")
    old = old.replace("defaults:", "overrides:")
    new = kuberc_file.decoded(GET_WIDE.encode(), "f").preference
    found = kuberc_file.decoded(old.encode(), "f")
    assert found.complaint == ""
    assert found.preference["defaults"] == new["defaults"]
