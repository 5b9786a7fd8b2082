"""cli/flags.py: flags as pflag reads them."""

import pytest

from sampan.cli.errors import FlagError
from sampan.cli.flags import Flag, HelpAsked, duration, integer, parse

FLAGS = (
    Flag("namespace", short="n"),
    Flag("stdin", "bool", False, short="i", bare="true"),
    Flag("tty", "bool", False, short="t", bare="true"),
    Flag("image", "slice", []),
    Flag("env", "array", []),
    Flag("replicas", "int32", 1, short="r"),
    Flag("timeout", "duration", 0.0),
    Flag("old", "bool", False, bare="true", deprecated="use new"),
)


@pytest.mark.parametrize("words", [["-n", "x"], ["-nx"], ["--namespace=x"], ["--namespace", "x"]])
def test_a_value_may_be_given_in_four_ways(words):
    """[C1]"""
    assert parse(FLAGS, words)["namespace"] == "x"


def test_short_switches_may_be_joined_and_mixed_with_arguments():
    values = parse(FLAGS, ["pod", "-it", "web", "-nx", "--", "sh", "-c"])
    assert (values["stdin"], values["tty"], values["namespace"]) == (True, True, "x")
    assert values.arguments == ["pod", "web", "sh", "-c"]
    assert values.dash == 2


def test_a_switch_takes_its_value_only_with_an_equals_sign():
    values = parse(FLAGS, ["-i", "false", "--tty=false"])
    assert (values["stdin"], values["tty"], values.arguments) == (True, False, ["false"])


def test_lists_grow_by_commas_or_by_repetition():
    values = parse(FLAGS, ["--image=a,b", "--image", "c", "--env=A=1,2", "--env=B=3"])
    assert values["image"] == ["a", "b", "c"]
    assert values["env"] == ["A=1,2", "B=3"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nope"], "unknown flag: --nope"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["-ix"], "unknown shorthand flag: 'x' in -x"),
        (["--image"], "flag needs an argument: --image"),
        (["-n"], "flag needs an argument: 'n' in -n"),
        (["--=x"], "bad flag syntax: --=x"),
        (
            ["--replicas=abc"],
            'invalid argument "abc" for "-r, --replicas" flag: strconv.ParseInt: parsing "abc": '
            "invalid syntax",
        ),
        (
            ["--stdin=maybe"],
            'invalid argument "maybe" for "-i, --stdin" flag: strconv.ParseBool: parsing "maybe": '
            "invalid syntax",
        ),
        (
            ["--timeout=5"],
            'invalid argument "5" for "--timeout" flag: time: missing unit in duration "5"',
        ),
    ],
)
def test_what_is_wrong_is_said_in_pflags_words(words, message):
    """[C1]"""
    with pytest.raises(FlagError) as failure:
        parse(FLAGS, words)
    assert str(failure.value) == message


def test_help_is_asked_for_anywhere():
    with pytest.raises(HelpAsked):
        parse(FLAGS, ["pod", "-nx", "--help"])


def test_a_deprecated_flag_is_said_so():
    assert parse(FLAGS, ["--old"]).notices == ["Flag --old has been deprecated, use new"]


def test_what_was_given_is_known():
    values = parse(FLAGS, ["--tty", "-n", "x"])
    assert values.given() == ["tty", "namespace"]
    assert not values.is_set("stdin")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("1s", 1), ("1h2m", 3720), ("1.5m", 90), ("-1s", -1), ("10ms", 0.01)],
)
def test_durations_are_gos(text, seconds):
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "bad", "1x", "s", "1s2", "."])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="time: "):
        duration(text)


def test_integers_have_a_size():
    with pytest.raises(ValueError, match="out of range"):
        integer("99999999999", 32)
