"""The test kit with a real node: the same helpers, real containers."""

import subprocess
import sys

import pytest

from sampan.api.errors import BadRequest, InternalError
from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import load
from sampan.testing import cluster
from sampan.testing.kit.launcher import Refused
from sampan.testing.kit.spec import CannotStart
from tests.support.parts.leftovers import leftovers, network_of
from tests.support.parts.sampan_process import environment

pytestmark = [pytest.mark.slow, pytest.mark.containerd]
IMAGE = "localhost/test/busybox:1"
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [
                {"name": "c", "image": IMAGE, "command": ["sh", "-c", "echo hello; sleep 1000"]}]},
        },
    },
}  # fmt: skip
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}
LATE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "late"},
    "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": IMAGE}]},
}


def restarts(pod) -> int:
    return sum(item["restartCount"] for item in pod["status"].get("containerStatuses", ()))


def no_secrets(request):
    return "no secrets here"


@pytest.fixture(scope="module")
def real(archive):
    with cluster(real=True, webhooks={"secrets": no_secrets}) as c:
        assert c.load_image(archive) == [IMAGE]
        c.apply(WEB)
        c.assert_ready("deploy/web", timeout=60)
        network = network_of(c.directory / "data")
        yield c
    assert not c.directory.exists()
    assert leftovers(c.directory / "data", network) == {}


def test_containers_of_a_real_node_run_and_fail(real):
    [pod] = real.pods.names("app=web")
    real.eventually(lambda: real.pods.log(pod) == "hello\n", "its log", timeout=60)
    assert real.get(f"pod/{pod}")["status"]["containerStatuses"][0]["imageID"]
    real.pods.fail(pod)
    seen = real.wait_for(f"pod/{pod}", lambda pod: restarts(pod) == 1, timeout=60)
    ended = seen["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "Error")
    assert "back-off of c (restart 1)" in real.trace(pod)
    with pytest.raises(Refused, match="exit_code= and reason= are for simulated nodes"):
        real.pods.fail(pod, exit_code=3)


def test_the_rest_of_the_kit_is_the_same(real):
    [node] = real.nodes.names()
    real.nodes.cut(node)
    real.apply(LATE)
    real.wait_for("pod/late", "PodScheduled", timeout=60)
    real.settle()
    assert "startTime" not in real.get("pod/late")["status"], "nobody on the node heard of it"
    real.nodes.mend(node)
    real.wait_for("pod/late", lambda pod: "startTime" in pod["status"], timeout=60)
    other = BlockingClient(load(str(real.kubeconfig), {}, "").connection(), user_agent="other")
    with real.faults(seed=1, rate=1.0, kinds=["error"]), pytest.raises(InternalError):
        other.json("GET", "/api/v1/namespaces/default/pods")
    other.close()
    with pytest.raises(BadRequest, match="no secrets here"):
        real.apply({**CONFIG, "kind": "Secret"})
    with pytest.raises(Refused, match="is this machine"):
        real.nodes.kill(node)
    with pytest.raises(CannotStart, match="no real node"):
        real.fork()
    with pytest.raises(ValueError, match="clock='virtual'"):
        real.clock.advance("1h")
    with pytest.raises(ValueError, match="nothing"):
        real.load_image("/nothing/here.tar")


def test_where_there_can_be_no_real_node_one_line_says_why():
    program = "from sampan.testing import cluster; cluster(real=True)"
    rights = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    done = subprocess.run(
        [*rights, sys.executable, "-c", program],
        env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1].startswith(
        "sampan.testing.kit.spec.CannotStart: a real node needs CAP_SYS_ADMIN"
    )
