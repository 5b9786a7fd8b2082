"""Real containers for who is not root: `sampan up` in a user namespace of its own. [R]"""

import json
import os
import shutil
import signal
import socket
import sys
import threading
from contextlib import contextmanager

import pytest

from sampan.core.fast_dataclass import replace
from sampan.kubelet.cgroups.delegation import LEAF
from tests.support.parts.delegated_cgroup import delegated_cgroup, offered
from tests.support.parts.images import busybox_archive
from tests.support.parts.kubectl import Kubectl
from tests.support.parts.machines import machines
from tests.support.parts.native_runtime import why_not
from tests.support.parts.network_pods import apply, ask_by_udp_from, pod, service
from tests.support.parts.ordinary_user import ordinary_user
from tests.support.parts.other_users import (
    open_to_others,
    reached_by_stranger,
    secrets_of,
    sockets_open_to_others,
    told_of,
)
from tests.support.parts.processes import eventually

MISSING = why_not() or next(
    (f"{name} is not there" for name in ("newuidmap", "slirp4netns") if not shutil.which(name)), ""
)
pytestmark = [
    pytest.mark.containerd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=MISSING or "needs root"),
]
IMAGE = "localhost/test/busybox:1"
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: httpd
    image: IMAGE
    command:
    - sh
    - -c
    - trap exit TERM; id -u; echo from a pod > /tmp/index.html; httpd -f -p 8080 -h /tmp & wait
    securityContext: {runAsUser: 1000, runAsGroup: 1000}
    volumeMounts: [{name: tmp, mountPath: /tmp}]
    ports: [{containerPort: 8080, hostPort: 18080}]
    readinessProbe: {httpGet: {port: 8080, path: /index.html}, periodSeconds: 1}
    resources: {limits: {memory: 64Mi, cpu: 500m}}
  volumes: [{name: tmp, emptyDir: {}}]
---
apiVersion: v1
kind: Pod
metadata: {name: shell}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: IMAGE, command: [sh, -c, "trap exit TERM; sleep 1000 & wait"]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
""".replace("IMAGE", IMAGE)


ECHO = """
import socket
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("0.0.0.0", 9000))
while True:
    said, who = here.recvfrom(99)
    here.sendto(b"heard " + said, who)
"""


@contextmanager
def listener(machine, address):
    """Somebody on the machine who says something to whoever comes; his port."""
    came = {}

    def listen():
        with open(f"/run/netns/{machine.namespace}") as namespace:
            os.setns(namespace.fileno(), 0) if hasattr(os, "setns") else _setns(namespace.fileno())
        came["socket"] = socket.create_server((address, 0))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    server = came["socket"]

    def answer():
        try:
            while True:
                with server.accept()[0] as connection:
                    connection.recv(4096)
                    connection.sendall(b"from outside\n")
        except OSError:
            return

    answering = threading.Thread(target=answer, daemon=True)
    answering.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def _setns(descriptor):
    import ctypes

    assert ctypes.CDLL(None).setns(descriptor, 0) == 0


@pytest.fixture(scope="module")
def machine():
    with machines(1) as [only]:
        yield only


@pytest.fixture(scope="module")
def user(machine):
    with ordinary_user(machine.where) as he:
        yield he
        if he.data_dir.exists():
            he.sampan("reset", "--yes")


def import_busybox(user):
    archive = busybox_archive(user.place / "busybox.tar", IMAGE)
    archive.chmod(0o644)
    user.sampan("image", "import", str(archive))


@pytest.fixture(scope="module")
def kubectl(machine, user):
    said = user.sampan("up", "--detach")
    assert " and conmon" in said
    assert "limits of pods have no effect" in said
    import_busybox(user)
    found = Kubectl(user.data_dir / "kubeconfig", user.place, where=machine.where)
    found("apply", "-f", "-", stdin=PODS)
    found("wait", "--for=condition=Ready", "pod/web", "pod/shell", "--timeout=60s", seconds=90)
    return found


def test_containers_run_as_users_of_the_namespace(kubectl, user):
    assert kubectl("logs", "web").split() == ["1000"]
    assert kubectl("exec", "shell", "--", "id", "-u").strip() == "0"
    outside = {os.stat(f"/proc/{pid}").st_uid for pid in user.processes()}
    assert {user.uid, user.first_granted + 999} <= outside  # root and 1000 inside
    assert 0 not in outside


def test_a_container_may_change_all_of_its_root(kubectl):
    """A directory that is replaced hides the image's: the overlay notes that."""
    words = "b=/busybox; cp /bin/busybox $b; $b rm -r /bin; $b mkdir /bin; $b touch /bin/new; "
    words += "$b chown 5:6 /bin/new; $b stat -c '%n %u %g' /bin/*"
    kubectl("run", "change", f"--image={IMAGE}", "--restart=Never", "--", "sh", "-c", words)
    phase = ("--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    kubectl("wait", "pod/change", *phase, seconds=90)
    assert kubectl("logs", "change") == "/bin/new 5 6\n"
    kubectl("delete", "pod", "change")


def test_pods_find_services_and_the_machine_finds_pods(kubectl, machine):
    fetch = ("exec", "shell", "--", "wget", "-qO-")
    eventually(lambda: kubectl(*fetch, "http://web.default.svc/index.html") == "from a pod\n", 60)
    node = kubectl.get("nodes")["items"][0]
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("crun://")
    for port in (30080, 18080):  # of the Service, and of the pod
        url = f"http://127.0.0.1:{port}/index.html"

        def comes(url=url):
            return machine.run("busybox", "wget", "-qO-", url, check=False) == "from a pod\n"

        eventually(comes, 60)


def test_datagrams_come_to_pods_and_back(kubectl, user, machine):
    """By the machine's own Python: busybox has nobody who listens to them."""
    python = f"{user.place}/python"
    shared = {"/usr": "/usr", "/usr/lib": "/lib", "/usr/lib64": "/lib64", python: python}
    volumes = [{"name": f"v{at}", "hostPath": {"path": each}} for at, each in enumerate(shared)]
    mounts = [{"name": f"v{at}", "mountPath": each} for at, each in enumerate(shared.values())]
    container = {
        "name": "main", "image": IMAGE,
        "command": [os.path.realpath(f"{sys.base_prefix}/bin/python3").replace(
            os.path.realpath(sys.base_prefix), python), "-c", ECHO],
        "env": [{"name": "LD_LIBRARY_PATH", "value": f"{python}/lib"}],
        "volumeMounts": mounts,
        "ports": [{"containerPort": 9000, "hostPort": 19000, "protocol": "UDP"}],
    }  # fmt: skip
    echo = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": "echo", "labels": {"app": "echo"}},
           "spec": {"containers": [container], "volumes": volumes,
                    "terminationGracePeriodSeconds": 0}}  # fmt: skip
    ports = [{"port": 9000, "nodePort": 30090, "protocol": "UDP"}]
    apply(kubectl, echo, service("echo", ports, {"app": "echo"}, type="NodePort"))
    for port in (30090, 19000):
        eventually(lambda port=port: ask_by_udp_from(machine, "127.0.0.1", port) == "heard x", 60)
    kubectl("delete", "pod/echo", "service/echo")


def test_pods_reach_the_network_but_not_the_machines_loopback(kubectl, machine):
    _reaches_the_network_but_not_the_machines_loopback(kubectl, machine)


def _reaches_the_network_but_not_the_machines_loopback(kubectl, machine):
    def said_at(address, port):
        # A pasta of 2023 may forget to tell that the other side has closed.
        words = f"echo | timeout 2 nc {address} {port} || echo nobody"
        return kubectl("exec", "shell", "--", "sh", "-c", words).splitlines()[0]

    with listener(machine, machine.address) as port:
        eventually(lambda: said_at(machine.address, port) == "from outside", 60)
    with listener(machine, "127.0.0.1") as port:
        assert said_at("10.0.2.2", port) == "nobody"


def test_other_users_of_the_machine_get_at_nothing_of_it(kubectl, user):
    assert kubectl.get("pods")["items"]
    assert open_to_others(user.data_dir) == []
    assert reached_by_stranger(user.place, user.data_dir) == []
    pids = list(user.processes())
    assert sockets_open_to_others(pids) == []
    secrets, told = set(secrets_of(user.data_dir)), told_of(pids)
    assert secrets
    assert not [secret for secret in secrets if secret in told]


def test_containers_survive_a_kill_of_sampan_and_are_found_again(kubectl, user):
    def containers():
        pods = kubectl.get("pods")["items"]
        return {
            status["containerID"]: status["restartCount"]
            for pod in pods
            for status in pod["status"]["containerStatuses"]
        }

    before = containers()
    os.kill(int((user.data_dir / "lock").read_text()), signal.SIGKILL)
    # Somebody kills what keeps the namespaces, too.
    kept = json.loads((user.data_dir / "rootless.json").read_text())
    for pid, _ in kept.values():
        os.kill(pid, signal.SIGKILL)
    user.sampan("up", "--detach")
    kubectl("wait", "--for=condition=Ready", "pod/web", "pod/shell", "--timeout=60s", seconds=90)
    assert containers() == before
    assert kubectl("exec", "shell", "--", "id", "-u").strip() == "0"


def test_nothing_is_left_after_a_reset(kubectl, user):
    user.sampan("reset", "--yes")
    eventually(lambda: not user.processes())
    assert not user.data_dir.exists()


@pytest.mark.skipif("hugetlb" not in offered(), reason="no controller is left to version 2")
def test_pods_of_a_user_who_was_given_a_cgroup_have_cgroups_below_it(machine):
    """With the one controller that no tree of version 1 has."""
    with (
        ordinary_user(machine.where) as user,
        delegated_cgroup(user.uid) as given,
    ):
        user = replace(user, where=[*machine.where, *given.where])
        said = user.sampan("up", "--detach", "--port", "0")
        assert "limits and requests of cpu, memory, pids have no effect: the cgroup /" in said
        try:
            import_busybox(user)
            found = Kubectl(user.data_dir / "kubeconfig", user.place, where=machine.where)
            limits = {"hugepages-2Mi": "2Mi", "memory": "64Mi", "cpu": "500m"}
            paged = pod("paged", "trap exit TERM; sleep 1000 & wait")
            paged["spec"]["containers"][0]["resources"] = {"limits": limits}
            found.apply(json.dumps(paged))
            found("wait", "--for=condition=Ready", "pod/paged", "--timeout=60s", seconds=90)
            uid = found.get("pod", "paged")["metadata"]["uid"]
            [folder] = given.folder.rglob(f"pod{uid}")
            assert (folder / "hugetlb.2MB.max").read_text() == f"{2 << 20}\n"
            [inner] = [each for each in folder.iterdir() if each.is_dir()]
            assert (inner / "hugetlb.2MB.max").read_text() == f"{2 << 20}\n"
            [pid, *_] = (inner / "cgroup.procs").read_text().split()
            assert int(pid) in user.processes()
            own = (user.data_dir / "lock").read_text().strip()
            assert own in (given.folder / LEAF / "cgroup.procs").read_text().split()
            # Another one finds them again.
            os.kill(int(own), signal.SIGKILL)
            user.sampan("up", "--detach", "--port", "0")
            found("wait", "--for=condition=Ready", "pod/paged", "--timeout=60s", seconds=90)
            assert (inner / "cgroup.procs").read_text().split()[0] == pid
            found("delete", "pod", "paged")
            eventually(lambda: not folder.exists(), 60)
        finally:
            user.sampan("reset", "--yes")
        eventually(lambda: [each.name for each in given.folder.glob("*/")] == [LEAF], 60)


@pytest.mark.skipif(not shutil.which("pasta"), reason="pasta is not there")
def test_with_one_id_containers_run_as_the_user_alone_and_reach_the_network_by_pasta(machine):
    with ordinary_user(machine.where, granted=False, hidden=["slirp4netns"]) as user:
        said = user.sampan("up", "--detach", "--port", "0")
        assert "there is one user for all containers" in said
        try:
            assert any("pasta " in words for words in user.processes().values())
            import_busybox(user)
            found = Kubectl(user.data_dir / "kubeconfig", user.place, where=machine.where)
            found.apply(json.dumps(pod("shell", "trap exit TERM; sleep 1000 & wait")))
            image, other = "--image=localhost/sampan/hello:1", '{"runAsNonRoot": true}'
            root = '{"runAsUser": 0, "runAsGroup": 0}'
            found("run", "hello", image)  # its image names a user, and nobody else does
            found("run", "nobody", image, f'--overrides={{"spec": {{"securityContext": {other}}}}}')
            found("run", "root", image, f'--overrides={{"spec": {{"securityContext": {root}}}}}')
            ready = ("pod/root", "pod/hello")
            found("wait", "--for=condition=Ready", *ready, "--timeout=60s", seconds=90)
            eventually(
                lambda: "there is one user for all" in found("events", "--for=pod/nobody"), 60
            )
            found("wait", "--for=condition=Ready", "pod/shell", "--timeout=60s", seconds=90)
            _reaches_the_network_but_not_the_machines_loopback(found, machine)
        finally:
            user.sampan("reset", "--yes")
        eventually(lambda: not user.processes())
