"""[N10] [N11]"""

import pytest

from sampan.kubelet.hooks import HookFailure, handler_of, run_hook
from sampan.kubelet.runtime import ExecResult, RuntimeFailure
from sampan.testing import virtual_time
from sampan.testing.virtual_time import LoopClock


class Answering:
    def __init__(self, answer):
        self._answer = answer

    async def exec_sync(self, container_id, command, timeout_seconds):
        if isinstance(self._answer, Exception):
            raise self._answer
        return ExecResult(self._answer, b"", b"")


def ran(handler, answer=0, timeout=30.0):
    """How long it took, in virtual seconds."""

    async def story():
        clock = LoopClock()
        await run_hook(
            handler, "id", runtime=Answering(answer), clock=clock, timeout_seconds=timeout
        )
        return clock.monotonic()

    return virtual_time.run(story())


def test_a_command_that_succeeds_is_enough():
    ran({"exec": {"command": ["true"]}})


def test_a_command_that_fails_or_cannot_be_run_is_a_failure():
    for answer in (1, RuntimeFailure("gone")):
        with pytest.raises(HookFailure):
            ran({"exec": {"command": ["false"]}}, answer)


def test_a_sleep_takes_its_time_but_not_more_than_there_is():
    assert ran({"sleep": {"seconds": 5}}) == 5
    assert ran({"sleep": {"seconds": 50}}) == 30


def test_what_cannot_be_run_is_a_failure_that_names_it():
    with pytest.raises(HookFailure, match="httpGet"):
        ran({"httpGet": {"port": 80}})


def test_a_container_without_hooks_has_none():
    assert handler_of({"name": "main"}, "preStop") is None
