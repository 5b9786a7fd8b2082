"""[N12] last words."""

from dataclasses import replace
from pathlib import Path

from sampan.kubelet.contracts import paths
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.status.termination_message import FILE_BYTES, log_tail, with_messages
from sampan.testing.worlds.observed_pods import UID, exited, observed
from sampan.testing.worlds.simulated_node import pod_named


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


def test_the_file_is_read_up_to_its_limit(tmp_path):
    settings = written(tmp_path, "x" * (FILE_BYTES + 10))
    told = with_messages(pod(), observed(exited(exit_code=1)), settings)
    assert told.containers[0].message == "x" * FILE_BYTES


def test_by_policy_the_tail_of_the_log_stands_in_for_an_empty_file(tmp_path):
    settings = written(tmp_path, "")
    log = tmp_path / "0.log"
    log.write_text("".join(f"2026-01-01T00:00:00Z stderr F line {n}\n" for n in range(100)))
    ended = replace(exited(exit_code=1), log_path=str(log))
    told = with_messages(pod("FallbackToLogsOnError"), observed(ended), settings)
    message = told.containers[0].message
    assert message.startswith("line 20\n")
    assert message.endswith("line 99\n")
    assert with_messages(pod(), observed(ended), settings).containers[0].message == ""


def test_a_missing_log_has_no_tail(tmp_path):
    assert log_tail(str(tmp_path / "none")) == ""
