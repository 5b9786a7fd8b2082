"""docs/flows/exec.md, followed: the files that its steps name are entered, in order, no others."""

import asyncio
from pathlib import Path

import pytest

from sampan.client import kubeconfig
from sampan.client.blocking import BlockingClient
from sampan.cmd.cluster.data_dir import open_data_dir
from tests.support.worlds import followed_stories as stories
from tests.support.worlds import followed_way as way

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "flows" / "exec.md"
STEPS = way.steps_in(PAGE.read_text().partition("What can go wrong")[0])
ELSEWHERE = {
    "apiserver/proxy/port_translation.py": "of port-forward",
    "kubelet/native/streams/remote_command.py": "the container is simulated",
}
FOLDERS = ("apiserver/proxy/", "kubelet/server/", "kubelet/streams/", "kubelet/simulated/streams")
# It reads the options of a log, and whether the path is one of the machine's logs, which logs and
# streams have in one table of paths; exec and port-forward of simulated pods are in one module.
BESIDE = (
    "kubelet/server/logs.py",
    "kubelet/server/node_log",
    "kubelet/streams/port_forward.py",
)


def execute(folder: Path) -> list[tuple[int, bytes]]:
    """As kubectl: a WebSocket, in a thread of its own, which nobody follows."""
    connection = kubeconfig.load(str(open_data_dir(str(folder)).kubeconfig), {}, "").connection()
    client = BlockingClient(connection)
    query = [("command", "hostname"), ("stdout", "true"), ("stderr", "true")]
    path = "/api/v1/namespaces/default/pods/web/exec"
    stream = client.websocket(path, query, "v5.channel.k8s.io")
    found: list[tuple[int, bytes]] = []
    while messages := stream.messages():
        found += messages
        if any(channel == 3 for channel, _ in found):
            break
    stream.close()
    client.close()
    return found


@pytest.fixture(scope="module")
def entered(tmp_path_factory) -> way.Entries:
    folder = tmp_path_factory.mktemp("cluster")

    async def story(_client) -> None:
        [*_, (channel, status)] = await asyncio.to_thread(execute, folder)
        assert channel == 3
        assert b'"status":"Success"' in status.replace(b" ", b"")

    return asyncio.run(way.followed(folder, story, stories.running_pod))


def test_every_file_that_a_step_names_is_entered(entered):
    assert way.missing(STEPS, entered, set(ELSEWHERE)) == []


def test_the_steps_come_in_their_order(entered):
    order = way.order_of_steps(STEPS[:7], entered, set(ELSEWHERE))
    assert order == sorted(order)


def test_no_file_of_streams_is_left_out(entered):
    left = way.left_out(STEPS, entered, *BESIDE)
    assert [path for path in left if path.startswith(FOLDERS)] == []
