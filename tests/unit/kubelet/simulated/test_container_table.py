"""kubelet/simulated/container_table.py: what is there, and what is told of it."""

import pytest

from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, SandboxStatus
from sampan.kubelet.simulated.container_table import ContainerTable
from sampan.kubelet.simulated.images import SimulatedImages
from sampan.kubelet.simulated.parts import SimulatedContainer
from sampan.kubelet.simulated.scenario import NOTHING
from sampan.kubelet.simulated.script import Script
from tests.support.manual_clock import ManualClock


@pytest.fixture
def table():
    table = ContainerTable(ManualClock(), "n", ("10.244.0.0/24",), SimulatedImages(()), NOTHING)
    table.add_sandbox(SandboxStatus("s", "web", "default", "u", 0, True, 0.0))
    status = ContainerStatus("c", "s", "main", 0, ContainerState.CREATED, "app:1", "", 0.0)
    table.add_container(table.sandboxes["s"], SimulatedContainer(status, Script({}, "main")))
    return table


def listen(table):
    told = []
    table.tell = lambda event: told.append((event.container_id, event.state))
    return told


def test_an_end_is_told_once_and_what_is_gone_ends_no_more(table):
    told = listen(table)
    table.start("c")
    table.end("c", 7, message="why")
    table.end("c", 0)
    [ended] = table.observed("u").containers
    assert (ended.exit_code, ended.reason, ended.message) == (7, "Error", "why")
    table.remove_container("c")
    table.end("c", 0)
    assert told == [("c", ContainerState.RUNNING), ("c", ContainerState.EXITED)]


def test_who_looks_sees_the_state_of_this_moment(table):
    def states():
        return [container.state for container in table.observed("u").containers]

    assert states() == [ContainerState.CREATED]
    table.start("c")
    assert states() == [ContainerState.RUNNING]
    table.stop_sandbox(table.sandboxes["s"])
    assert states() == [ContainerState.EXITED]
    assert not table.observed("u").sandboxes[0].ready
    table.remove_container("c")
    assert states() == []
    table.remove_sandbox(table.sandboxes["s"])
    assert not table.uids()


def test_what_is_there_keeps_its_id(table):
    following = ContainerTable(
        ManualClock(), "n", ("10.244.0.0/24",), SimulatedImages(()), NOTHING
    ).new_id("main")
    status = ContainerStatus(following, "s", "old", 0, ContainerState.EXITED, "app:1", "", 0.0)
    table.add_container(table.sandboxes["s"], SimulatedContainer(status, Script({}, "old")))
    assert table.new_id("main") != following
