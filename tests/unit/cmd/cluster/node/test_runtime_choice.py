"""cmd/cluster/node/runtime_choice.py: what `auto` comes to, and that no container is left."""

import subprocess
from dataclasses import replace

import pytest

from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.cluster.node import runtime_choice
from sampan.cmd.cluster.node.runtime_choice import chosen_runtime, runtime_before
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import UpSettings
from sampan.kubelet.containerd.config import layout

AUTO = UpSettings(data_dir="unused")


@pytest.fixture
def data(tmp_path):
    return DataDir(tmp_path)


@pytest.mark.parametrize(
    ("there", "before", "chosen"),
    [
        ("cri native crun", "", "native"),
        ("cri native", "", "cri"),  # by runc, which containerd uses
        ("cri", "", "cri"),
        ("native", "", "native"),
        ("", "", "native"),  # and then it says what that needs
        ("", "cri", "cri"),
        ("cri native crun", "native", "native"),
        ("cri native", "native", "native"),
        ("cri native crun", "cri", "cri"),
        ("native crun", "cri", "native"),
        ("cri", "native", "cri"),
    ],
)
def test_auto_is_what_the_cluster_ran_on_else_what_the_machine_has(
    there, before, chosen, data, monkeypatch
):
    monkeypatch.setattr(
        runtime_choice, "what_a_node_misses",
        lambda settings, **_: [] if settings.runtime in there.split() else ["something"],
    )  # fmt: skip
    monkeypatch.setattr(runtime_choice, "_has_crun", lambda: "crun" in there.split())
    if before:
        data.remember(runtime=before)
    assert chosen_runtime(AUTO, data) == chosen


def test_a_flag_or_a_socket_says_more_than_what_was_before(data):
    data.remember(runtime="native")
    assert chosen_runtime(replace(AUTO, runtime="cri"), data) == "cri"
    assert chosen_runtime(replace(AUTO, cri_socket="/run/x.sock"), data) == "cri"


@pytest.mark.parametrize(("home", "runtime"), [("containerd", "cri"), ("native", "native")])
def test_clusters_that_wrote_nothing_down_are_known_by_what_they_kept(home, runtime, data):
    assert runtime_before(data) == ""
    (data.root / home).mkdir()
    assert runtime_before(data) == runtime
    data.remember(runtime="simulated")
    assert runtime_before(data) == "simulated"


@pytest.mark.parametrize("before", ["native", "cri"])
def test_containers_that_still_run_are_not_left_to_nobody(before, data):
    monitor, word = {
        "native": ("conmon", f"{data.root}/native/containers/x"),
        "cri": ("containerd-shim-runc-v2", str(layout(data.root).socket)),
    }[before]
    data.remember(runtime=before)
    other = replace(AUTO, runtime="native" if before == "cri" else "cri")
    assert chosen_runtime(other, data) == other.runtime
    # A shell that waits, by the name of what waits for a container.
    waits = subprocess.Popen(
        [monitor, "-c", "echo there; read line", word],
        executable="/bin/sh", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert waits.stdout.readline() == b"there\n"
        with pytest.raises(CannotStart, match=f"still run, with --runtime {before}"):
            chosen_runtime(other, data)
        assert chosen_runtime(replace(AUTO, runtime=before), data) == before
    finally:
        waits.communicate(b"\n")
    assert chosen_runtime(other, data) == other.runtime
