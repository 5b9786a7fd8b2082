"""Several real nodes on one machine: they join, fail and go, and their pods are one network."""

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest

from sampan.kubelet.cgroups.limits import root_of
from sampan.network import node_lan
from tests.support.parts.kubectl import KubectlFailure
from tests.support.parts.leftovers import CGROUPS, NET
from tests.support.parts.native_runtime import why_not
from tests.support.parts.network_pods import apply, ask_from_pod, cluster_ip, server, service
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()) or os.geteuid() != 0, reason=why_not() or "needs root"),
]
NAMES = ("one", "two", "three")
FLAGS = ("--runtime", "native", "--node-names", ",".join(NAMES))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, archive):
    sampan = SampanProcess(tmp_path_factory.mktemp("nodes"), *FLAGS).up()
    lan = bridges(sampan)
    try:
        sampan.run("image", "import", str(archive))
        yield sampan
    finally:
        sampan.stop()
        places = [sampan.data_dir / "nodes" / name for name in NAMES[1:]]
        sampan.reset()
        assert sampan.leftovers() == {}
        assert [name for name in lan if (NET / name).exists()] == []
        assert [cgroup for place in places for cgroup in cgroups(place)] == []


def bridges(sampan):
    """Between its nodes, not those of another cluster of this machine."""
    found = node_lan.record(sampan.data_dir)
    return [] if found is None else [found.bridge]


def cgroups(data_dir):
    return [str(path) for path in CGROUPS.glob(f"*/{root_of(data_dir)[1:]}")]


def node(cluster, *words):
    done = subprocess.run(
        sampan_command("node", *words, "--kubeconfig", str(cluster.kubeconfig)),
        env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else done.stderr


def nodes(cluster):
    return {each["metadata"]["name"]: each for each in cluster.kubectl.get("nodes")["items"]}


@pytest.fixture
def servers(cluster):
    """One on each node, and a Service of all."""
    labels = {"app": "spread"}
    pods = [server(f"on-{name}", labels, nodeName=name) for name in NAMES]
    spread = service("spread", [{"port": 80, "targetPort": 8080}], labels)
    apply(cluster.kubectl, *pods, spread)
    yield {name: cluster.kubectl.get("pod", f"on-{name}")["status"]["podIP"] for name in NAMES}
    cluster.kubectl("delete", "service/spread", *(f"pod/on-{name}" for name in NAMES), "--now")


def test_each_has_an_address_a_range_and_an_agent_of_its_own(cluster):
    found = nodes(cluster)
    assert sorted(found) == sorted(NAMES)
    addresses = {each["status"]["addresses"][0]["address"] for each in found.values()}
    ranges = {each["spec"]["podCIDR"] for each in found.values()}
    assert len(addresses) == len(ranges) == 3
    text = cluster.run("status")
    assert "nodes:        3 of 3 ready" in text
    assert all(f"processes:    {name} " in text for name in NAMES[1:])


def test_their_pods_are_one_network_and_the_api_reaches_all_of_them(cluster, servers):
    kubectl = cluster.kubectl
    for name in NAMES:
        for other, address in servers.items():
            assert ask_from_pod(kubectl, f"on-{name}", address, 8080) == f"on-{other}"
        seen = set()
        eventually(
            lambda name=name, seen=seen: (
                seen.add(ask_from_pod(kubectl, f"on-{name}", cluster_ip(kubectl, "spread"), 80))
                or seen == {f"on-{each}" for each in NAMES}
            ),
            30,
        )
        assert kubectl("exec", f"on-{name}", "--", "echo", "here") == "here\n"


def test_a_nodes_port_leads_back_to_the_node_that_asks(cluster, servers):
    kubectl = cluster.kubectl
    back = service("back", [{"port": 80, "targetPort": 8080}], {"on": "two"}, type="NodePort")
    apply(kubectl, back)
    kubectl("label", "pod/on-two", "on=two")
    [port] = kubectl.get("service", "back")["spec"]["ports"]
    for name in NAMES:
        address = nodes(cluster)[name]["status"]["addresses"][0]["address"]
        told = partial(ask_from_pod, kubectl, "on-two", address, port["nodePort"])
        eventually(lambda told=told: told() == "on-two", 30)
    kubectl("delete", "service/back")


def test_a_node_that_is_cut_off_is_not_reached_and_comes_back(cluster, servers):
    kubectl = cluster.kubectl
    assert "two: cut off" in node(cluster, "cut", "two")
    with pytest.raises((KubectlFailure, AssertionError)):
        assert ask_from_pod(kubectl, "on-one", servers["two"], 8080) == "on-two"
    assert "two: connected" in node(cluster, "mend", "two")
    eventually(lambda: ask_from_pod(kubectl, "on-one", servers["two"], 8080) == "on-two", 30)


def test_a_node_whose_power_fails_starts_its_pods_again(cluster, servers):
    kubectl = cluster.kubectl
    before = kubectl.get("pod", "on-three")["status"]["containerStatuses"][0]["containerID"]
    assert "three: killed" in node(cluster, "kill", "three")
    assert not _runs(cluster, "three")
    assert "three: Ready" in node(cluster, "start", "three")

    def came_back():
        [status] = kubectl.get("pod", "on-three")["status"]["containerStatuses"]
        return status["ready"] and status["containerID"] != before

    eventually(came_back, 60)
    assert "node three runs" in node(cluster, "start", "three")


def _runs(cluster, name):
    """Whether anything has a container of that node for its cgroup."""
    place = root_of(cluster.data_dir / "nodes" / name)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{place}/" in (process / "cgroup").read_text():
                return True
        except OSError:
            continue
    return False


def test_a_drained_node_is_empty_and_goes_and_another_one_joins(cluster):
    kubectl = cluster.kubectl
    assert "node four: Ready" in node(cluster, "add", "four")
    try:
        assert nodes(cluster)["four"]["spec"]["podCIDR"]
        cluster.run("image", "list")
        kubectl("create", "deployment", "web", "--image=localhost/sampan/hello:1", "--replicas=8")
        eventually(lambda: _on(kubectl, "four"), 30)
        kubectl("drain", "four", "--ignore-daemonsets", "--timeout=60s")
        assert _on(kubectl, "four") == []
    finally:
        assert "node four: removed" in node(cluster, "remove", "four")
        kubectl("delete", "deployment", "web")
    assert "four" not in nodes(cluster)
    place = cluster.data_dir / "nodes" / "four"
    assert not place.exists()
    assert cgroups(place) == []


def _on(kubectl, name):
    pods = kubectl.get("pods", "-l", "app=web", f"--field-selector=spec.nodeName={name}")["items"]
    return [each["metadata"]["name"] for each in pods]


def test_what_cannot_be_asked_is_said(cluster):
    assert "node one is the machine itself" in node(cluster, "kill", "one")
    assert "there is no node 'none' of its own" in node(cluster, "cut", "none")
    assert "cannot be a new node's name" in node(cluster, "add", "two")
    assert "cannot be a new node's name" in node(cluster, "add", "No_Name")


def test_a_restart_finds_the_nodes_and_their_pods_again(cluster, servers):
    kubectl = cluster.kubectl
    addresses = {name: each["status"]["addresses"] for name, each in nodes(cluster).items()}
    assert cluster.stop() == 0
    cluster.up()
    assert {name: each["status"]["addresses"] for name, each in nodes(cluster).items()} == addresses
    for name in NAMES:
        eventually(
            lambda name=name: (
                ask_from_pod(
                    kubectl, f"on-{name}", kubectl.get("pod", "on-two")["status"]["podIP"], 8080
                )
                == "on-two"
            ),
            60,
        )


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--processes",), "several real nodes are for `sampan up`, in one process"),
        (("--network", "none"), "--network none is for one real node on a machine"),
        (("--cri-socket", "/nowhere.sock"), "--cri-socket is one runtime for one node"),
    ],
)
def test_several_nodes_are_never_silently_one(tmp_path, flags, says):
    done = subprocess.run(
        [*sampan_command("up"), "--data-dir", str(tmp_path / "data"), "--nodes", "3",
         *(() if "--cri-socket" in flags else ("--runtime", "native")), *flags],
        env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert says in done.stderr


def test_with_containerd_on_each(tmp_path, archive):
    sampan = SampanProcess(tmp_path, "--runtime", "cri", "--nodes", "2").up()
    try:
        sampan.run("image", "import", str(archive))
        first, second = sorted(nodes(sampan))
        assert second == f"{first}-2"
        labels = {"app": "spread"}
        pods = [server(f"on-{n}", labels, nodeName=name) for n, name in enumerate((first, second))]
        apply(sampan.kubectl, *pods)
        address = sampan.kubectl.get("pod", "on-1")["status"]["podIP"]
        eventually(lambda: ask_from_pod(sampan.kubectl, "on-0", address, 8080) == "on-1", 30)
    finally:
        sampan.stop()
        sampan.reset()
        assert sampan.leftovers() == {}
