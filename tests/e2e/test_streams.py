"""exec, attach, cp and port-forward over every protocol that clients speak [A11, N19]."""

import fcntl
import hashlib
import os
import pty
import random
import select
import socket
import struct
import subprocess
import sys
import termios
import time
import urllib.request

import pytest

from tests.support.parts.kubectl import Kubectl
from tests.support.parts.processes import eventually

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.kubectl,
    pytest.mark.slow,
    pytest.mark.runtime("native", "cri"),
]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: streams}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: localhost/test/busybox:1
    stdin: true
    command:
    - sh
    - -c
    - "mkdir /www; head -c 2000000 /dev/zero >/www/big; httpd -p 8080 -h /www; exec cat"
  - name: side
    image: localhost/test/busybox:1
    command: [sh, -c, "echo side started; sleep 1000"]
"""


@pytest.fixture(scope="module", autouse=True)
def pod(cluster):
    cluster.kubectl.apply(POD)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/streams", "--timeout=50s")
    yield
    cluster.kubectl("delete", "pod", "streams", "--now")


@pytest.fixture(params=["websocket", "spdy"])
def speaking(request, cluster, monkeypatch):
    """kubectl as it is, and as it was before 1.31."""
    wanted = "true" if request.param == "websocket" else "false"
    monkeypatch.setenv("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", wanted)
    monkeypatch.setenv("KUBECTL_PORT_FORWARD_WEBSOCKETS", wanted)
    return Kubectl(cluster.kubeconfig, cluster.root / "home")


def test_exit_codes_and_both_outputs(speaking):
    said = speaking.fails("exec", "streams", "-c", "main", "--", "sh", "-c", "echo e >&2; exit 3")
    assert said == "e\ncommand terminated with exit code 3\n"
    missing = speaking.fails("exec", "streams", "-c", "main", "--", "nosuch")
    assert 'exec: "nosuch": executable file not found in $PATH' in missing


def test_megabytes_survive_the_way_there_and_back(speaking, tmp_path):
    content = random.Random(7).randbytes(3_000_000)
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(content)
    speaking("cp", str(there), "streams:/www/copy", "-c", "main")
    summed = speaking("exec", "streams", "-c", "main", "--", "md5sum", "/www/copy")
    assert summed.split()[0] == hashlib.md5(content).hexdigest()
    speaking("cp", "streams:/www/copy", str(back), "-c", "main")
    assert back.read_bytes() == content


def test_attach_reaches_the_running_process(speaking):
    word = f"attached {time.monotonic_ns()}\n"
    # The end of our input ends attach, perhaps before the answer; but not the process, because
    # stdinOnce is not set.
    speaking("attach", "-i", "streams", "-c", "main", stdin=word)
    eventually(lambda: word in speaking("logs", "streams", "-c", "main"))


def test_a_terminal_is_told_its_size(speaking):
    pid, terminal = pty.fork()
    if pid == 0:
        command = [*speaking._command, "exec", "-it", "streams", "-c", "main", "--", "sh"]
        os.execve(command[0], command, speaking._env)
    try:
        resize(terminal, 31, 77)
        type_until(terminal, b"stty size\n", b"31 77")
        resize(terminal, 40, 100)
        type_until(terminal, b"stty size\n", b"40 100")
        os.write(terminal, b"exit 7\n")
        listen(terminal, b"exit code 7")
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 7


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def type_until(terminal, line, answer):
    """The new size travels on a stream of its own: ask again until it has arrived."""
    for _ in range(30):
        os.write(terminal, line)
        if listen(terminal, answer, seconds=0.5, must=False):
            return
    raise AssertionError(answer)


def listen(terminal, answer, seconds=10.0, must=True):
    heard, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                heard += os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
        if answer in heard:
            return True
    assert not must, heard
    return False


def test_port_forward_carries_several_connections_at_once(speaking, tmp_path):
    port = free_port()
    output = tmp_path / "forward"
    forward = speaking.background("port-forward", "pod/streams", f"{port}:8080", output=output)
    try:
        eventually(lambda: "Forwarding from 127.0.0.1" in output.read_text())
        answers = [urllib.request.urlopen(f"http://127.0.0.1:{port}/big") for _ in range(4)]
        assert [len(answer.read()) for answer in answers] == [2_000_000] * 4
        for answer in answers:
            answer.close()
    finally:
        forward.terminate()
        forward.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_words_of_what_cannot_be_had(kubectl):
    assert "container nope is not valid for pod streams" in kubectl.fails(
        "logs", "streams", "-c", "nope"
    )
    previous = kubectl.fails("logs", "-p", "streams", "-c", "side")
    assert 'previous terminated container "side" in pod "streams" not found' in previous
    raw = "/api/v1/namespaces/default/pods/streams/log"
    assert "choose one of: [main side]" in kubectl.fails("get", "--raw", raw)
    assert kubectl("get", "--raw", f"{raw}?container=side") == "side started\n"


def test_a_client_that_leaves_leaves_nothing_running_behind_it(kubectl, tmp_path):
    follow = kubectl.background("logs", "-f", "streams", "-c", "side", output=tmp_path / "log")
    eventually(lambda: "side started" in (tmp_path / "log").read_text())
    follow.terminate()
    follow.wait()
    with pytest.raises(subprocess.TimeoutExpired):
        kubectl("exec", "-i", "streams", "-c", "main", "--", "cat", "/dev/zero", seconds=1.0)
    assert kubectl("exec", "streams", "-c", "main", "--", "echo", "fine") == "fine\n"


# A process of its own: the client leaves its sockets to the garbage collector.
PYTHON_CLIENT = """
import sys
from kubernetes import client, config
from kubernetes.stream import portforward, stream

config.load_kube_config(sys.argv[1])
api = client.CoreV1Api()
session = stream(
    api.connect_get_namespaced_pod_exec, "streams", "default", container="main",
    command=["sh", "-c", "read word; echo got $word; exit 4"],
    stdin=True, stdout=True, stderr=True, tty=False, _preload_content=False,
)
session.write_stdin("abc\\n")
session.run_forever(timeout=60)
assert (session.read_stdout(), session.returncode) == ("got abc\\n", 4)
forward = portforward(
    api.connect_get_namespaced_pod_portforward, "streams", "default", ports="8080"
)
connection = forward.socket(8080)
connection.setblocking(True)
connection.sendall(b"GET /nothing HTTP/1.0\\r\\n\\r\\n")
answer = b""
while part := connection.recv(4096):
    answer += part
assert b" 404 " in answer, answer
"""


def test_the_python_client_streams_over_websocket_channels(cluster):
    """v4.channel.k8s.io for exec, and for port-forward"""
    command = [sys.executable, "-c", PYTHON_CLIENT, str(cluster.kubeconfig)]
    subprocess.run(command, check=True, timeout=60)
