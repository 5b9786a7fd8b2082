"""Pods for network tests: small servers and clients from busybox, and the machine's own Python.

Job: manifests as dicts; what a client in a pod or on a machine hears.
"""

import json
import sys
from pathlib import Path

from sampan.api.objects import Obj
from tests.support.parts.kubectl import Kubectl
from tests.support.parts.machines import Machine
from tests.support.places import PYTHONPATH, ROOT

IMAGE = "localhost/test/busybox:1"
_ENVIRONMENT = {"PYTHONPATH": PYTHONPATH, "PYTHONUNBUFFERED": "1", "HOME": "/", "USER": "root"}


def pod(name: str, command: str, labels: dict[str, str] | None = None, **spec: object) -> Obj:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": IMAGE, "command": ["sh", "-c", command]}],
            **spec,
        },
    }  # fmt: skip


def python_pod(name: str, code: str, **spec: object) -> Obj:
    """The Python of this machine, with the packages of these tests, from the host's directories."""
    shared = {"/usr": "/usr", "/usr/lib": "/lib", "/usr/lib64": "/lib64"}
    for directory in (sys.prefix, sys.base_prefix, str(ROOT), *map(str, _package_directories())):
        if not directory.startswith("/usr/"):
            shared[directory] = directory
    mounts = [
        {"name": f"v{number}", "mountPath": inside, "readOnly": True}
        for number, inside in enumerate(shared.values())
    ]
    volumes = [
        {"name": f"v{number}", "hostPath": {"path": outside}}
        for number, outside in enumerate(shared)
        if Path(outside).exists()
    ]
    container = {
        "name": "main", "image": IMAGE, "command": [sys.executable, "-c", code],
        "volumeMounts": mounts[: len(volumes)],
        "env": [{"name": name, "value": value} for name, value in _ENVIRONMENT.items()],
    }  # fmt: skip
    made = pod(name, "")
    made["spec"].update({"containers": [container], "volumes": volumes, **spec})
    made["spec"].setdefault("restartPolicy", "Never")
    return made


def _package_directories() -> list[Path]:
    return [Path(entry) for entry in sys.path if entry.endswith("site-packages")]


def service(name: str, ports: list[Obj], selector: dict[str, str], **spec: object) -> Obj:
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": selector, "ports": ports, **spec},
    }  # fmt: skip


_SERVER = """
import socket, socketserver, threading
name = socket.gethostname().encode() + b"\\n"
class Tcp(socketserver.BaseRequestHandler):
    def handle(self):
        client = self.client_address[0].removeprefix("::ffff:")
        self.request.sendall(name + client.encode() + b"\\n")
class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        self.request[1].sendto(name, self.client_address)
class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6  # and IPv4
    allow_reuse_address, request_queue_size = True, 128
class UdpServer(socketserver.UDPServer):
    address_family = socket.AF_INET6
for port in PORTS:
    for kind, handler in ((Server, Tcp), (UdpServer, Udp)):
        server = kind(("::", port), handler)
        threading.Thread(target=server.serve_forever).start()
"""


def server(name: str, labels: dict[str, str], *ports: int, **spec: object) -> Obj:
    """Says its own name to everybody who connects, by TCP and UDP; to TCP also who that is."""
    code = _SERVER.replace("PORTS", str(ports or (8080,)))
    made = python_pod(name, code, restartPolicy="Always", **spec)
    made["metadata"]["labels"] = labels
    return made


def apply(kubectl: Kubectl, *objects: Obj) -> None:
    """Returns when the pods among them run."""
    kubectl.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    for obj in objects:
        if obj["kind"] == "Pod" and obj["spec"].get("restartPolicy") != "Never":
            namespace = obj["metadata"].get("namespace", "default")
            kubectl.wait_phase(obj["metadata"]["name"], "Running", namespace)


def cluster_ip(kubectl: Kubectl, name: str) -> str:
    return str(kubectl.get("service", name)["spec"]["clusterIP"])


def ask_from_pod(kubectl: Kubectl, name: str, address: str, port: int) -> str:
    """The first line of what answers there, or why none does."""
    said = kubectl("exec", name, "--", "sh", "-c", _question("nc", address, port))
    return said.strip().split("\n")[0]


def ask_from(machine: Machine, address: str, port: int) -> str:
    said = machine.run("sh", "-c", _question("busybox nc", address, port))
    return said.strip().split("\n")[0]


def _question(nc: str, address: str, port: int) -> str:
    return f"{nc} -w 2 {address} {port} </dev/null 2>&1 || true"


_DATAGRAM = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
asker = socket.socket(family, socket.SOCK_DGRAM)
asker.settimeout(1)
asker.connect((sys.argv[1], int(sys.argv[2])))
try:
    asker.send(b"x")
    print(asker.recv(99).decode())
except OSError as error:
    print(error)
"""


def ask_by_udp_from_pod(kubectl: Kubectl, name: str, address: str, port: int) -> str:
    """The pod is one with Python."""
    command = (sys.executable, "-c", _DATAGRAM, address, str(port))
    return kubectl("exec", name, "--", *command).strip()


def ask_by_udp_from(machine: Machine, address: str, port: int) -> str:
    return machine.run(sys.executable, "-c", _DATAGRAM, address, str(port)).strip()
