"""[N12] last words."""

import asyncio
from dataclasses import replace
from pathlib import Path

from sampan.kubelet.contracts import paths
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.status.termination_message import (
    FILE_BYTES,
    awaits_log,
    log_tail,
    with_messages,
)
from tests.support.worlds.observed_pods import UID, exited_container, observed_pod
from tests.support.worlds.simulated_node import pod_named


def messages(*about):
    return asyncio.run(with_messages(*about))


def awaits(*about):
    return asyncio.run(awaits_log(*about))


def pod(policy="File"):
    made = pod_named(
        "web", containers=[{"name": "main", "image": "a", "terminationMessagePolicy": policy}]
    )
    made["metadata"]["uid"] = UID
    return made


def written(tmp_path, text):
    path = Path(paths.termination_log(pod(), "main", attempt=0, root_dir=str(tmp_path)))
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return KubeletSettings("n", root_dir=str(tmp_path))


def test_of_a_file_that_is_too_long_the_end_is_told(tmp_path):
    """The error is its last line."""
    settings = written(tmp_path, "much ado" * FILE_BYTES + "out of memory")
    told = messages(pod(), observed_pod(exited_container(exit_code=1)), settings)
    assert len(told.containers[0].message) == FILE_BYTES
    assert told.containers[0].message.endswith("much adoout of memory")


def test_what_the_runtime_says_goes_before_what_the_container_says(tmp_path):
    settings = written(tmp_path, "bye")
    ended = replace(exited_container(exit_code=1), message="from the runtime")
    told = messages(pod(), observed_pod(ended), settings)
    assert told.containers[0].message == "from the runtime: bye"


def test_by_policy_the_tail_of_the_log_stands_in_for_an_empty_file(tmp_path):
    settings = written(tmp_path, "")
    log = tmp_path / "0.log"
    log.write_text("".join(f"2026-01-01T00:00:00Z stderr F line {n}\n" for n in range(100)))
    ended = replace(exited_container(exit_code=1), log_path=str(log))
    told = messages(pod("FallbackToLogsOnError"), observed_pod(ended), settings)
    message = told.containers[0].message
    assert message.startswith("line 20\n")
    assert message.endswith("line 99\n")
    assert messages(pod(), observed_pod(ended), settings).containers[0].message == ""


def test_a_missing_log_has_no_tail(tmp_path):
    assert log_tail(str(tmp_path / "none")) == ""


def test_what_was_printed_without_a_newline_is_told_without_one(tmp_path):
    path = tmp_path / "log"
    path.write_text(
        "2026-01-01T00:00:00.1Z stdout F one\n"
        "2026-01-01T00:00:00.2Z stdout P tw\n"
        "2026-01-01T00:00:00.2Z stdout P o\n"
    )
    assert log_tail(str(path)) == "one\ntwo"
    with path.open("a") as log:
        log.write("2026-01-01T00:00:00.3Z stdout F \n")
    assert log_tail(str(path)) == "one\ntwo\n"


def test_a_last_word_in_a_log_that_is_still_written_is_waited_for(tmp_path):
    settings = KubeletSettings("n", root_dir=str(tmp_path))
    ended = replace(exited_container(exit_code=1), settled=False)
    assert awaits(pod("FallbackToLogsOnError"), observed_pod(ended), settings)
    assert not awaits(pod("File"), observed_pod(ended), settings)
    assert not awaits(
        pod("FallbackToLogsOnError"), observed_pod(exited_container(exit_code=1)), settings
    )
    succeeded = replace(exited_container(exit_code=0), settled=False)
    assert not awaits(pod("FallbackToLogsOnError"), observed_pod(succeeded), settings)
