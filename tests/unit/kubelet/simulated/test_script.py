import pytest

from sampan.kubelet.contracts.runtime import Role
from sampan.kubelet.simulated.script import PREFIX, Script, problem_of


def script(**words):
    return Script({PREFIX + key.replace("_", "-"): value for key, value in words.items()}, "main")


def test_a_word_for_one_container_goes_before_the_word_for_all():
    both = Script({f"{PREFIX}exit-code": "1", f"{PREFIX}exit-code.main": "2"}, "main")
    assert both.exit_code(0) == 2


def test_exit_codes_count_attempts_and_the_last_one_stays():
    assert [script(exit_code="1,2,0").exit_code(attempt) for attempt in range(4)] == [1, 2, 0, 0]


def test_what_is_no_number_counts_as_not_said():
    assert script(start_seconds="soon").seconds("start-seconds") == 0
    assert script().number("exit-after-seconds") is None


def test_what_is_said_of_a_whole_pod_does_not_end_what_serves_its_containers():
    for_all = Script({f"{PREFIX}exit-after-seconds": "5"}, "side")
    named = Script({f"{PREFIX}exit-after-seconds.side": "5"}, "side")
    ends = {role: for_all.exit_after_seconds(role) for role in Role}
    assert ends == {Role.INIT: 5, Role.NORMAL: 5, Role.SIDECAR: None, Role.EPHEMERAL: None}
    assert {named.exit_after_seconds(role) for role in Role} == {5}
    silent = {role: script().exit_after_seconds(role) for role in Role}
    assert silent == dict.fromkeys(Role) | {Role.INIT: 0}
    assert {script(exit_after_seconds="never").exit_after_seconds(role) for role in Role} == {None}


def test_a_container_may_never_obey():
    assert script(stop_seconds="never").stop_seconds() is None
    assert script().stop_seconds() == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({}, 0),
        ({"exit-after-seconds": "never"}, 0),
        ({"exit-after-seconds": "60"}, 143),
        ({"exit-after-seconds": "60", "stop-exit-code": "0"}, 0),
        ({"stop-exit-code": "7"}, 7),
    ],
)
def test_work_that_is_stopped_before_its_end_is_not_done(words, code):
    assert script(**words).stop_exit_code(Role.NORMAL) == code


def test_what_serves_others_is_done_when_it_is_stopped():
    assert script(**{"exit-after-seconds": "60"}).stop_exit_code(Role.SIDECAR) == 0


def test_failures_are_named_by_step_with_count_and_message():
    words = script(fail="run_sandbox:2:no network;start_container")
    assert words.failure("run_sandbox") == (2, "no network")
    assert words.failure("start_container") == (None, "start_container fails by script")
    assert words.failure("stop_container") is None


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("start-seconds", "1.5", ""),
        ("start-seconds.main", "2", ""),
        ("start-seconds", "-1", "start-seconds: '-1' is no number"),
        ("stop-seconds", "never", ""),
        ("start-seconds", "never", "start-seconds: 'never' is no number"),
        ("exit-code", "1,1,0", ""),
        ("exit-code", "one", "exit-code: 'one' is no list of exit codes"),
        ("log", "anything: at all", ""),
        ("readiness-probe", "fail,ok", ""),
        ("readiness-probe", "maybe", "readiness-probe: 'maybe' is no list of ok, fail and error"),
        ("fail", "run_sandbox:1:no;stop_container", ""),
        ("fail.main", "run_sandbox", "fail.main: fail is of the whole pod"),
        ("colour", "red", "colour: unknown"),
    ],
)
def test_a_word_that_means_nothing_is_found(name, text, problem):
    assert problem_of(name, text) == problem
    if name == "fail":
        assert "names no step" in problem_of("fail", "fly:1:no")
