"""What goes wrong with real containers, and what the user is told [N10] [N16].

All pods of a test are made first and looked at afterwards, so that they fail side by side. What is
wrong with volumes is in test_volumes.py, with memory and processes in test_node_cgroups.py.
"""

import json
import platform
import shutil
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sampan.core.elf import architecture
from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
LOOP = "trap exit TERM; while :; do sleep 0.1; done"


def create(kubectl, name, container=None, image=IMAGE, **spec):
    main = {"name": "main", "image": image, **(container or {})}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"test": "bad-input"}},
        "spec": {"containers": [main], "restartPolicy": "Never",
                 "terminationGracePeriodSeconds": 1, **spec},
    }  # fmt: skip
    kubectl("create", "-f", "-", stdin=json.dumps(pod))


def shell(text):
    return {"command": ["sh", "-c", text]}


def waiting(kubectl, name):
    status = (kubectl.get("pod", name)["status"].get("containerStatuses") or [{}])[0]
    return status.get("state", {}).get("waiting", {})


def ended(kubectl, name):
    status = (kubectl.get("pod", name)["status"].get("containerStatuses") or [{}])[0]
    return status.get("state", {}).get("terminated", {})


def with_message(kubectl, name):
    found = waiting(kubectl, name)
    return found if found.get("message") else None


@pytest.fixture
def images(cluster, workspace):
    """Images that cannot run: made for another machine, and of a user that nobody knows."""
    binary = bytearray(Path(shutil.which("busybox")).read_bytes())
    users = ArchiveFile(b"root:x:0:0:root:/:/bin/sh\n")
    there = {"bin/sh": ArchiveFile(bytes(binary)), "etc/passwd": users}
    binary[18:20] = b"\xf3\x00" if binary[18:20] != b"\xf3\x00" else b"\x3e\x00"  # e_machine
    foreign = {"bin/sh": ArchiveFile(bytes(binary))}
    own = architecture(platform.machine())
    made = {
        "localhost/test/foreign:1": (foreign, ImageSettings(own, command=("/bin/sh",))),
        "localhost/test/stranger:1": (there, ImageSettings(own, command=("/bin/sh",), user="who")),
    }
    for number, (reference, (files, settings)) in enumerate(made.items()):
        archive = workspace / f"bad-{number}.tar"
        archive.write_bytes(build_archive(reference, files, settings))
        cluster.run("image", "import", str(archive))
    return list(made)


def test_containers_that_cannot_start_say_why(kubectl, images):
    foreign, stranger = images
    create(kubectl, "no-command", {"command": ["/no/such/thing"]})
    create(kubectl, "foreign", image=foreign)
    create(kubectl, "stranger", image=stranger)
    create(kubectl, "as-root", {**shell(LOOP), "securityContext": {"runAsNonRoot": True}})
    create(kubectl, "never", {"imagePullPolicy": "Never"}, image="localhost/test/absent:1")
    said = eventually(lambda: ended(kubectl, "no-command"))
    assert (said["reason"], said["exitCode"]) == ("StartError", 128)
    assert "/no/such/thing" in said["message"]
    eventually(lambda: ended(kubectl, "foreign"))
    assert "exec format error" in kubectl("logs", "foreign").lower()
    said = eventually(lambda: with_message(kubectl, "stranger"))
    assert said["reason"] in ("CreateContainerError", "CreateContainerConfigError")
    assert "user" in said["message"]
    said = eventually(lambda: with_message(kubectl, "as-root"))
    assert said["reason"] == "CreateContainerConfigError"
    assert "container has runAsNonRoot and image will run as root" in said["message"]
    eventually(lambda: waiting(kubectl, "never").get("reason") == "ErrImageNeverPull")
    kubectl("delete", "pod", "-l", "test=bad-input")


def test_an_environment_that_is_not_there_yet_is_waited_for(kubectl):
    """A config map, a secret and a key, each named when it is what is missing"""
    one_key = [
        {"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": "env-words", "key": "word"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "env-keys", "key": "key"}}},
        {"name": "MAYBE", "valueFrom": {"secretKeyRef": {
            "name": "nobody", "key": "key", "optional": True}}},
    ]  # fmt: skip
    whole = [{"configMapRef": {"name": "env-words"}, "prefix": "ALL_"}]
    create(kubectl, "env", {**shell("echo $WORD $KEY $ALL_word $MAYBE."), "env": one_key,
                            "envFrom": whole})  # fmt: skip

    def says(text):
        eventually(lambda: text in waiting(kubectl, "env").get("message", ""))
        assert waiting(kubectl, "env")["reason"] == "CreateContainerConfigError"

    says('configmap "env-words" not found')
    kubectl("create", "configmap", "env-words", "--from-literal=other=x")
    says("couldn't find key word in ConfigMap default/env-words")
    kubectl("patch", "configmap", "env-words", "-p", '{"data":{"word":"hello"}}')
    says('secret "env-keys" not found')
    kubectl("create", "secret", "generic", "env-keys", "--from-literal=key=pssst")
    eventually(lambda: kubectl.phase("env") == "Succeeded")
    assert kubectl("logs", "env") == "hello pssst hello .\n"
    kubectl("delete", "pod", "-l", "test=bad-input")


def test_what_a_container_may_not_write_it_cannot(kubectl):
    create(kubectl, "read-only", {**shell("echo x >/file"),
           "securityContext": {"readOnlyRootFilesystem": True}})  # fmt: skip
    volume = {"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    mount = {"volumeMounts": [{"name": "small", "mountPath": "/small"}]}
    create(kubectl, "full", {**shell("dd if=/dev/zero of=/small/file bs=1M count=2"), **mount},
           volumes=[volume])  # fmt: skip
    kubectl.wait_phase("read-only", "Failed")
    assert "Read-only file system" in kubectl("logs", "read-only")
    kubectl.wait_phase("full", "Failed")
    assert "No space left on device" in kubectl("logs", "full")
    kubectl("delete", "pod", "-l", "test=bad-input")


def test_a_host_port_has_one_owner(kubectl):
    node = kubectl.get("nodes")["items"][0]["metadata"]["name"]
    port = {"ports": [{"containerPort": 80, "hostPort": 39080}]}
    create(kubectl, "owner", {**shell(LOOP), **port})
    kubectl.wait_phase("owner", "Running")
    create(kubectl, "second", {**shell(LOOP), **port})
    create(kubectl, "forced", {**shell(LOOP), **port}, nodeName=node)
    kubectl.wait_phase("forced", "Failed")
    assert kubectl.get("pod", "forced")["status"]["reason"] == "NodePorts"
    message = "didn't have free ports for the requested pod ports"
    eventually(lambda: message in json.dumps(kubectl.get("pod", "second")["status"]))
    kubectl("delete", "pod", "owner", "forced")
    kubectl.wait_phase("second", "Running")
    kubectl("delete", "pod", "-l", "test=bad-input")


class Refuses(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.send_header("www-authenticate", 'Basic realm="registry"')
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *words):
        pass


@pytest.mark.runtime("native")
def test_only_containerd_asks_registries_on_the_node_that_nobody_named(kubectl):
    create(kubectl, "nobody", image="127.0.0.1:1/a:1")
    said = eventually(lambda: waiting(kubectl, "nobody").get("message"))
    assert "127.0.0.1:1 is an address of the node itself" in said
    kubectl("delete", "pod", "-l", "test=bad-input")


@pytest.mark.runtime("cri")  # the other does not ask them: they are addresses of the node
def test_registries_that_refuse_hang_or_have_nothing_are_told_apart(kubectl, registry_image):
    refuses = ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
    thread = threading.Thread(target=refuses.serve_forever, daemon=True)
    thread.start()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        create(kubectl, "refused", image=f"127.0.0.1:{refuses.server_port}/a:1")
        create(kubectl, "hangs", image=f"127.0.0.1:{silent.getsockname()[1]}/a:1")
        create(kubectl, "nobody", image="127.0.0.1:1/a:1")
        host = registry_image.partition("/")[0]
        create(kubectl, "no-tag", image=f"{host}/test/busybox:missing")
        create(kubectl, "no-name", image="Busybox:1")
        said = eventually(lambda: waiting(kubectl, "refused").get("message"))
        refusals = ("401", "no basic auth credentials", "pull access denied")
        assert any(text in said for text in refusals)
        said = eventually(lambda: waiting(kubectl, "nobody").get("message"))
        assert "connection refused" in said.lower()
        assert waiting(kubectl, "nobody")["reason"] in ("ErrImagePull", "ImagePullBackOff")
        said = eventually(lambda: waiting(kubectl, "no-tag").get("message"))
        assert "busybox:missing" in said
        assert "not found" in said
        eventually(lambda: waiting(kubectl, "no-name").get("reason") == "InvalidImageName")
        assert waiting(kubectl, "hangs")["reason"] == "ContainerCreating"
        kubectl("delete", "pod", "-l", "test=bad-input")  # a pull that hangs does not hold the pod
    refuses.shutdown()
    refuses.server_close()
    thread.join()
