"""[N18] Where collectors of logs look, and whose logs are whose."""

import os

import pytest

from sampan.kubelet.runtime.pod_logs import PodLogs, link_name, remove_all

POD = {"metadata": {"name": "web", "namespace": "shop"}}


class Machine:
    def __init__(self, root):
        self.pods, self.containers, self.own = root / "pods", root / "containers", root / "own"
        self.pods.mkdir()

    def logs(self):
        made = PodLogs(str(self.pods), str(self.own), str(self.containers))
        made.start()
        return made

    def written(self, pod="shop_web_u1", container="main"):
        path = self.pods / pod / container / "0.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("hello\n")
        return str(path)

    def links(self):
        return sorted(os.listdir(self.containers)) if self.containers.exists() else []


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_link_comes_and_goes_with_its_container(machine):
    logs, path = machine.logs(), machine.written()
    logs.started(POD, "main", "abc", path)
    assert machine.links() == ["web_shop_main-abc.log"]
    assert (machine.containers / "web_shop_main-abc.log").read_text() == "hello\n"
    logs.started(POD, "main", "abc", path)
    logs.removed("abc")
    assert machine.links() == []
    logs.removed("abc")


def test_a_container_without_a_log_has_no_link(machine):
    machine.logs().started(POD, "main", "abc", str(machine.pods / "none"))
    assert machine.links() == []


def test_a_restarted_agent_knows_its_links_and_drops_those_that_lead_nowhere(machine):
    logs = machine.logs()
    logs.begin(str(machine.pods / "shop_web_u1"))
    logs.started(POD, "main", "abc", machine.written())
    gone = machine.written(container="gone")
    logs.started(POD, "gone", "def", gone)
    os.unlink(gone)
    foreign = machine.containers / "other_shop_main-ghi.log"
    foreign.symlink_to(machine.pods / "shop_other_u2/main/0.log")
    again = machine.logs()
    assert machine.links() == ["other_shop_main-ghi.log", "web_shop_main-abc.log"]
    again.removed("abc")
    assert machine.links() == ["other_shop_main-ghi.log"]


def test_the_logs_of_a_cluster_go_with_it_and_no_others(machine):
    logs = machine.logs()
    logs.begin(str(machine.pods / "shop_web_u1"))
    logs.started(POD, "main", "abc", machine.written())
    other = machine.written("shop_other_u2")
    remove_all(machine.own, str(machine.containers))
    assert machine.links() == []
    assert os.listdir(machine.pods) == ["shop_other_u2"]
    assert os.path.exists(other)
    assert os.listdir(machine.own) == []


def test_a_pod_that_goes_is_no_longer_ours(machine):
    logs = machine.logs()
    logs.begin(str(machine.pods / "shop_web_u1"))
    assert os.listdir(machine.own) == ["shop_web_u1"]
    assert logs.places("shop_web_u1") == [str(machine.pods / "shop_web_u1")]
    assert os.listdir(machine.own) == []


def test_a_pod_whose_sandbox_was_never_made_leaves_no_link(machine):
    logs = machine.logs()
    for name in ("shop_web_u1", "shop_web_u2"):
        logs.begin(str(machine.pods / name))
    assert logs.left_of("u1") == [str(machine.pods / "shop_web_u1")]
    assert os.listdir(machine.own) == ["shop_web_u2"]
    assert logs.left_of("u1") == []
    assert PodLogs(str(machine.pods)).left_of("u1") == []


def test_without_places_nothing_is_linked(tmp_path):
    logs = PodLogs(str(tmp_path))
    logs.start()
    logs.begin(str(tmp_path / "p"))
    logs.started(POD, "main", "abc", str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_names_are_no_longer_than_a_file_system_takes():
    name = link_name("p" * 253, "n" * 63, "c" * 63, "f" * 64)
    assert len(name) == 255
    assert name.endswith(".log")
