"""docs/production.md, word for word: its units are started, its commands are run [E3, W6].

Three machines with etcd and an API server each, scheduler and controllers on two of them, two nodes
and a load balancer, as network namespaces on a bridge of the test's own. systemd is this file: it
starts what ExecStart says and believes READY=1. Paths are moved below a directory of the test.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.parts.kubectl import Kubectl, KubectlFailure
from tests.support.parts.machines import machines
from tests.support.parts.processes import Program, eventually
from tests.support.parts.sampan_process import environment

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

DOCUMENT = Path(__file__).parents[2] / "docs" / "production.md"
NAMES = ("one", "two", "three", "four", "five")
CONTROL, LEADING, NODES = NAMES[:3], NAMES[:2], NAMES[3:]
PATIENCE = 60.0


def blocks():
    """Title → text of every fenced block that has one: `sh TITLE` or `ini UNIT`."""
    found = re.findall(r"^```(?:sh|ini) (.+?)\n(.*?)^```$", DOCUMENT.read_text(), re.M | re.S)
    assert len({title for title, _ in found}) == len(found), "two blocks have one title"
    return dict(found)


class Machine:
    """One of the document's machines: its files, its services, its shell."""

    def __init__(self, root, name, place):
        self.name, self.place, self._root = name, place, root
        self.files = root / name
        (self.files / "etc").mkdir(parents=True)
        (self.files / "bin").mkdir()
        sampan = self.files / "bin" / "sampan"
        sampan.write_text(f'#!/bin/sh\nexec {sys.executable} -m sampan "$@"\n')
        sampan.chmod(0o755)
        self._blocks = blocks()
        text = self._blocks["env"].replace("NAME=one", f"NAME={name}")
        text = text.replace("ADDRESS=198.51.100.1\n", f"ADDRESS={place.address}\n")
        (self.files / "etc" / "env").write_text(text)
        self.environment = dict(line.split("=", 1) for line in text.split())
        self.services, self.used = {}, set()
        self.more = {}  # unit → flags that are the test's

    def moved(self, text):
        """The document's paths, in this machine's own directory."""
        for path, here in (
            ("/etc/sampan", f"{self.files}/etc"),
            ("/usr/local/bin", f"{self.files}/bin"),
            ("/var/lib/", f"{self.files}/"),
            ("/var/backups", f"{self._root}/backups"),  # carried from machine to machine
        ):
            text = text.replace(path, here)
        return text

    def run(self, title, **more):
        """Every line of a block; what `systemctl` says is done here."""
        printed = ""
        self.used.add(title)
        for line in self._blocks[title].splitlines():
            words = line.split()
            if words[0] == "systemctl":
                self._systemctl(*words[1:])
            else:
                printed += self.shell(line, **more)
        return printed

    def shell(self, line, **more):
        path = f"{self.files}/bin:{os.environ['PATH']}"
        variables = {**environment(), **self.environment, **more, "PATH": path}
        command = [*self.place.where, "sh", "-euc", self.moved(line)]
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, f"{self.name}: {line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _systemctl(self, verb, *words):
        units = [word for word in words if not word.startswith("-")]
        for unit in units:
            if verb in ("stop", "restart") and unit in self.services:
                self.services.pop(unit).stop(PATIENCE)
            if verb in ("enable", "restart"):
                self.services[unit] = Service(self, unit)
        if verb != "stop" and "--no-block" not in words:
            for unit in units:
                self.services[unit].wait()

    def command_of(self, unit):
        self.used.add(f"{unit}.service")
        text = self._blocks[f"{unit}.service"].replace("\\\n", " ")
        [line] = re.findall(r"^ExecStart=(.*)$", text, re.M)
        line = re.sub(r"\$\{(\w+)\}", lambda found: self.environment[found[1]], line)
        return [*shlex.split(self.moved(line)), *self.more.get(unit, ())]

    def kill(self, *units):
        for unit in units:
            self.services.pop(unit).kill()

    def end(self):
        for service in self.services.values():
            service.kill()

    @property
    def kubectl(self):
        home = self.files / "home"
        home.mkdir(exist_ok=True)
        return Kubectl(self.files / "etc/pki/admin.conf", home, where=self.place.where)


class Service:
    """A unit with Type=notify."""

    def __init__(self, machine, unit):
        self.unit, self._ready = unit, False
        path = machine.files / f"{unit}.notify"
        path.unlink(missing_ok=True)
        self._manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._manager.bind(str(path))
        self._manager.setblocking(False)
        command = [*machine.place.where, *machine.command_of(unit)]
        variables = {**environment(), "NOTIFY_SOCKET": str(path)}
        self.program = Program(command, machine.files / f"{unit}.out", variables)

    def wait(self):
        self.program.wait_until(self._is_ready, PATIENCE)

    def stop(self, seconds):
        code = self.program.stop(seconds)
        self._manager.close()
        assert code in (0, -15), self.program.tail()  # etcd raises its own signal at its end

    def kill(self):
        self.program.kill()
        self._manager.close()

    def _is_ready(self):
        try:
            self._ready = self._ready or b"READY=1" in self._manager.recv(4096)
        except BlockingIOError:
            return False
        return self._ready


@pytest.fixture
def fleet():
    root = Path(tempfile.mkdtemp(prefix="sampan-prod-"))
    (root / "backups").mkdir()
    with machines(len(NAMES) + 1) as [*places, door]:
        found = {
            name: Machine(root, name, place) for name, place in zip(NAMES, places, strict=True)
        }
        assert door.address == found["one"].environment["API"]
        servers = [f"{place.address}:6443" for place in places[: len(CONTROL)]]
        command = [sys.executable, "-m", "tests.support.parts.tcp_balancer", "6443", *servers]
        balancer = Program([*door.where, *command], root / "balancer.out", environment())
        try:
            yield found
        finally:
            balancer.kill()
            for machine in found.values():
                machine.end()
    shutil.rmtree(root)


def fleet_used(fleet):
    """Titles of the document's blocks that some machine has run or started."""
    return set().union(*(machine.used for machine in fleet.values()))


def control_plane(fleet):
    return [fleet[name] for name in CONTROL]


def start_control_plane(fleet):
    for machine in control_plane(fleet):
        machine.run("start etcd")
    for machine in control_plane(fleet):
        machine.services["sampan-etcd"].wait()
        machine.run("start")
    for name in LEADING:
        fleet[name].run("start on two")


def endpoints(machine):
    found = machine.kubectl.get("endpoints", "kubernetes")
    return {item["ip"] for subset in found["subsets"] for item in subset["addresses"]}


def holder(machine, lease):
    try:
        return machine.kubectl.get("lease", lease, "-n", "kube-system")["spec"]["holderIdentity"]
    except KubectlFailure:
        return ""


def join(fleet, name):
    """As the document says: the printed line once, then the unit."""
    line = fleet["one"].run("token").strip()
    assert line.startswith("sampan join https://198.51.100.6:6443 --token ")
    machine = fleet[name]
    flags = ["--runtime", "simulated", "--node-name", name, "--node-ip", machine.place.address]
    ready = machine.files / "joined"
    words = shlex.split(line)[1:] + shlex.split(machine.moved("--data-dir /var/lib/sampan/node"))
    command = [sys.executable, "-m", "sampan", *words, *flags, "--ready-file", str(ready)]
    first = Program([*machine.place.where, *command], machine.files / "join.out", environment())
    first.wait_until(ready.exists, PATIENCE)
    assert first.stop(PATIENCE) == 0
    machine.more["sampan-node"] = flags
    machine.run("start a node")
    eventually(lambda: is_ready(fleet["one"], name), PATIENCE)


def is_ready(machine, node):
    path = '{.status.conditions[?(@.type=="Ready")].status}'
    asked = ("get", "node", node, "--ignore-not-found", "-o", f"jsonpath={path}")
    return machine.kubectl(*asked) == "True"


def has_logs(machine, pod):
    try:
        machine.kubectl("logs", pod["metadata"]["name"])
    except KubectlFailure:
        return False
    return True


def deploy(machine, name, replicas=2):
    kubectl = machine.kubectl
    kubectl("create", "deployment", name, "--image=anything:1", f"--replicas={replicas}")
    done = kubectl("rollout", "status", f"deployment/{name}", "--timeout=100s", seconds=120.0)
    assert "successfully rolled out" in done


def test_the_units_are_units():
    """As far as systemd itself can tell, where it is installed."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    with tempfile.TemporaryDirectory() as directory:
        for title, text in blocks().items():
            if title.endswith(".service"):
                here = Path(directory, title)
                here.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text))
                command = ["systemd-analyze", "verify", "--man=no", str(here)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                said = [line for line in done.stderr.splitlines() if title in line]
                assert done.returncode == 0, done.stderr
                assert said == []


def three_servers_two_leaders_and_nodes(fleet):
    """Started as documented; each server is the whole cluster."""
    fleet["one"].run("first")
    for name in CONTROL[1:]:
        fleet[name].run("others")
    start_control_plane(fleet)
    addresses = {machine.place.address for machine in control_plane(fleet)}
    for machine in control_plane(fleet):
        eventually(lambda machine=machine: endpoints(machine) == addresses, PATIENCE)
        printed = machine.run("look")
        assert printed.startswith("ok")
        assert "198.51.100.3:6443" in printed
        assert "kube-controller-manager" in printed
    for name in NODES:
        join(fleet, name)
    deploy(fleet["one"], "web")
    pods = fleet["two"].kubectl.get("pods", "-l", "app=web")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == set(NODES)
    for machine in control_plane(fleet):
        # By way of the node's own server, whose certificate the controllers sign after it came.
        eventually(lambda machine=machine: has_logs(machine, pods[0]), PATIENCE)
    token = fleet["one"].kubectl("create", "token", "default").strip()
    asked = f"sampan auth whoami --token {token} --server https://$ADDRESS:6443"
    said = fleet["three"].shell(f"{asked} --certificate-authority /etc/sampan/pki/ca.crt")
    assert "system:serviceaccount:default:default" in said, "servers share the key of tokens"


def leaders_that_die_are_followed(fleet):
    """kill -9 of scheduler, controllers and API server of the machine that leads."""
    leases = ("kube-scheduler", "kube-controller-manager")
    before = {lease: holder(fleet["three"], lease) for lease in leases}
    assert all(before.values())
    victim = next(name for name in LEADING if leads(fleet[name]))
    [heir] = set(LEADING) - {victim}
    fleet[victim].kill("sampan-scheduler", "sampan-controllers", "sampan-apiserver")
    deploy(fleet["three"], "after")
    assert holder(fleet["three"], "kube-controller-manager") != before["kube-controller-manager"]
    gone = fleet[victim].place.address
    eventually(lambda: gone not in endpoints(fleet[heir]), PATIENCE)
    fleet[victim].run("start")
    fleet[victim].run("start on two")
    eventually(lambda: gone in endpoints(fleet[heir]), PATIENCE)


def leads(machine):
    """As its own port says: health for everybody, figures for whom the API allows them."""
    url = "https://127.0.0.1:10257"
    script = (
        "import ssl, sys, urllib.request as u; c = ssl._create_unverified_context(); "
        "assert u.urlopen(sys.argv[1] + '/healthz', context=c).read() == b'ok'; "
        "who = {'Authorization': 'Bearer ' + sys.argv[2]}; "
        "asked = u.Request(sys.argv[1] + '/metrics', headers=who); "
        "print(u.urlopen(asked, context=c).read().decode())"
    )
    kubectl = machine.kubectl
    if not kubectl.exists("clusterrolebinding", "scrape"):
        kubectl("create", "clusterrole", "scrape", "--verb=get", "--non-resource-url=/metrics")
        kubectl("create", "clusterrolebinding", "scrape", "--clusterrole=scrape",
                "--serviceaccount=default:default")  # fmt: skip
    token = kubectl("create", "token", "default").strip()
    text = machine.place.run(sys.executable, "-c", script, url, token, seconds=PATIENCE)
    return 'leader_election_master_status{name="kube-controller-manager"} 1' in text


def an_upgrade_goes_through_machine_by_machine(fleet):
    """Who goes to another server when one does not answer loses nothing."""
    written = []

    def write():
        """Through whichever server answers."""
        name = f"w{len(written)}"
        for machine in control_plane(fleet):
            try:
                machine.kubectl("create", "configmap", name)
            except KubectlFailure:
                continue
            written.append(name)
            return
        raise AssertionError("no server answered")

    for machine in control_plane(fleet):
        write()
        service = machine.services["sampan-apiserver"]
        service.program.process.terminate()
        write()
        machine.run("upgrade")
        write()
    for name in LEADING:
        fleet[name].run("upgrade the rest")
    for name in NODES:
        fleet["one"].run("upgrade a node", NODE=name)
        fleet[name]._systemctl("restart", "sampan-node")
    deploy(fleet["two"], "upgraded")
    for machine in control_plane(fleet):
        found = {item["metadata"]["name"] for item in machine.kubectl.get("configmaps")["items"]}
        assert set(written) <= found


def a_backup_is_the_cluster_again(fleet):
    kubectl = fleet["two"].kubectl
    kubectl("create", "configmap", "in-the-backup")
    fleet["one"].run("backup")
    kubectl("create", "configmap", "too-late")
    for machine in control_plane(fleet):
        machine.run("stop")
    for machine in control_plane(fleet):
        machine.run("restore")
    start_control_plane(fleet)
    for name in NODES:
        fleet[name]._systemctl("restart", "sampan-node")
    for machine in control_plane(fleet):
        assert machine.kubectl.exists("configmap", "in-the-backup")
        assert not machine.kubectl.exists("configmap", "too-late")
    deploy(fleet["three"], "restored")


def test_every_unit_and_command_of_the_document(fleet):
    """One life of one cluster: each story begins where the one before it ended."""
    three_servers_two_leaders_and_nodes(fleet)
    leaders_that_die_are_followed(fleet)
    an_upgrade_goes_through_machine_by_machine(fleet)
    a_backup_is_the_cluster_again(fleet)
    unused = set(blocks()) - fleet_used(fleet) - {"env"}
    assert not unused, f"nobody has run {unused}"
