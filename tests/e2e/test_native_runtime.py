"""A node without containerd: crun, conmon, and images of sampan's own. [R]"""

import http.client
import json
import os
import platform
import signal
import socket
import ssl
from pathlib import Path

import pytest

from sampan.kubelet.native.mapped_mounts import is_possible as maps_users
from tests.support.parts.certificates import Authority
from tests.support.parts.images import busybox_archive
from tests.support.parts.native_runtime import why_not
from tests.support.parts.processes import eventually
from tests.support.parts.registry import free_port
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()) or os.geteuid() != 0, reason=why_not() or "needs root"),
]
IMAGE = "localhost/test/busybox:1"
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: init, image: IMAGE, command: [sh, -c, "echo made by init > /shared/index.html"],
     volumeMounts: [{name: shared, mountPath: /shared}]}
  containers:
  - name: httpd
    image: IMAGE
    command: [sh, -c, "httpd -f -p 8080 -h /shared & wait"]
    volumeMounts:
    - {name: shared, mountPath: /shared}
    - {name: image, mountPath: /image}
    - {name: image, mountPath: /programs, subPath: bin}
    readinessProbe: {httpGet: {port: 8080, path: /index.html}, periodSeconds: 1}
  volumes:
  - {name: shared, emptyDir: {}}
  - {name: image, image: {reference: IMAGE, pullPolicy: Never}}
---
apiVersion: v1
kind: Pod
metadata: {name: astray}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: IMAGE
    command: [sleep, "1000"]
    volumeMounts: [{name: image, mountPath: /image, subPath: no/such}]
  volumes: [{name: image, image: {reference: IMAGE}}]
---
apiVersion: v1
kind: Pod
metadata: {name: strict}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: main
    image: IMAGE
    command:
    - sh
    - -c
    - id -u; grep -E 'CapEff|^Seccomp:' /proc/self/status; touch /x || echo refused; sleep 1000
    securityContext:
      {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    resources: {limits: {memory: 64Mi, cpu: 500m}}
---
apiVersion: v1
kind: Pod
metadata: {name: shared}
spec:
  shareProcessNamespace: true
  terminationGracePeriodSeconds: 1
  containers:
  - {name: one, image: IMAGE, command: [sleep, "1001"]}
  - {name: two, image: IMAGE, command: [sleep, "1002"]}
---
apiVersion: v1
kind: Pod
metadata: {name: listens}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: IMAGE, command: [cat], stdin: true}]
---
apiVersion: v1
kind: Pod
metadata: {name: hungry}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "x=a; while true; do x=$x$x; done"]
    resources: {limits: {memory: 16Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: wrong}
spec:
  restartPolicy: Never
  containers: [{name: main, image: IMAGE, command: [/nonexistent]}]
""".replace("IMAGE", IMAGE)


@pytest.fixture(scope="module")
def node(workspace, archive, registry):
    # One at an address of the node itself is asked only where it is named.
    hosts = ("registry.test", registry.address)
    mirrors = [f"--registry-mirror={host}=http://{registry.address}" for host in hosts]
    ingress = ("--ingress", "--ingress-ports", "0,0")
    process = SampanProcess(workspace / "native", "--runtime", "native", *mirrors, *ingress)
    process.up()
    process.run("image", "import", str(archive))
    yield process
    code = process.stop()
    process.reset()
    assert code == 0, process.output.read_text()
    assert process.leftovers() == {}


def status(kubectl, pod):
    found = json.loads(kubectl("get", "pod", pod, "-o", "json"))["status"]
    return found["phase"], found.get("containerStatuses", [{}])[0]


def test_an_ingress_leads_to_a_pod(node, tmp_path):
    kubectl = node.kubectl
    kubectl("run", "hello", "--image=localhost/sampan/hello:1")
    kubectl("wait", "--for=condition=Ready", "pod/hello", "--timeout=60s")
    kubectl("expose", "pod", "hello", "--name=hello", "--port=80", "--target-port=8080")
    authority = Authority(tmp_path)
    pair = authority.issue("shop", names=["shop.localhost"])
    kubectl("create", "secret", "tls", "shop", f"--cert={pair.cert_path}", f"--key={pair.key_path}")
    kubectl("create", "ingress", "shop", "--rule=shop.localhost/*=hello:80,tls=shop")
    kubectl(
        "wait", "--for=jsonpath={.status.loadBalancer.ingress}", "ingress/shop", "--timeout=50s"
    )
    [served] = kubectl.get("ingress", "shop")["status"]["loadBalancer"]["ingress"]
    plain, encrypted = (port["port"] for port in served["ports"])
    trusting = ssl.create_default_context(cafile=authority.ca_path)

    def answered(link):
        link.request("GET", "/", headers={"Host": "shop.localhost"})
        answer = link.getresponse()
        text = answer.read()
        link.close()
        return answer.status, text

    def greeted():
        return answered(http.client.HTTPConnection("127.0.0.1", plain, timeout=60))

    eventually(lambda: greeted() == (200, b"hello from sampan\n"))
    inner = socket.create_connection(("127.0.0.1", encrypted), timeout=60)
    with trusting.wrap_socket(inner, server_hostname="shop.localhost") as secure:
        link = http.client.HTTPConnection("shop.localhost", encrypted)
        link.sock = secure
        assert answered(link) == (200, b"hello from sampan\n")
    kubectl("delete", "ingress/shop", "service/hello", "pod/hello", "secret/shop", "--now")


def test_pods_live_as_on_containerd(node):
    kubectl = node.kubectl
    kubectl("apply", "-f", "-", stdin=PODS)
    ready = ("pod/web", "pod/strict", "pod/shared", "pod/listens")
    kubectl("wait", "--for=condition=Ready", *ready, "--timeout=60s")
    # The end of our input lets us go, and does not end the container: stdinOnce is not set.
    kubectl("attach", "-i", "listens", stdin="heard\n")
    eventually(lambda: "heard\n" in kubectl("logs", "listens"), 60)
    assert kubectl("exec", "web", "--", "cat", "/shared/index.html") == "made by init\n"
    script = "ls /image/bin /programs; touch /image/x; /image/bin/busybox true; echo $?"
    seen = kubectl("exec", "web", "--", "sh", "-c", f"({script}) 2>&1")
    assert seen.count("busybox\n") == 2
    assert "Read-only file system" in seen
    assert seen.endswith("126\n"), "programs of an image volume do not run"
    eventually(lambda: status(kubectl, "astray")[1]["state"]["waiting"]["reason"]
               == "ImageVolumeMountFailed", 60)  # fmt: skip
    assert "Seccomp:\t2" in kubectl("logs", "strict")
    assert kubectl("logs", "strict").startswith("1000\n")
    assert "CapEff:\t0000000000000000" in kubectl("logs", "strict")
    assert "refused" in kubectl("logs", "strict")
    assert "Seccomp:\t2" in kubectl("exec", "strict", "--", "cat", "/proc/self/status")
    (node_name,) = (item["metadata"]["name"] for item in kubectl.get("nodes")["items"])
    figures = kubectl("get", "--raw", f"/api/v1/nodes/{node_name}/proxy/metrics/cadvisor")
    assert 'interface="eth0"' in figures
    seen = kubectl("exec", "shared", "-c", "one", "--", "ps")
    assert "sleep 1001" in seen
    assert "sleep 1002" in seen
    assert "/pause" in seen
    kubectl.wait_phase("hungry", "Failed")
    ended = status(kubectl, "hungry")[1]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    kubectl.wait_phase("wrong", "Failed")
    ended = status(kubectl, "wrong")[1]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    kubectl("delete", "pod", "--all", "--wait")
    containers = node.data_dir / "native" / "containers"
    eventually(lambda: not list(containers.iterdir()), 60)
    # Each step of a pod is seen here, too.
    asked = "/sampan/v1/trace/pods/default/web"
    [trace] = json.loads(node.kubectl("get", "--raw", asked))["traces"]
    assert {span["name"] for span in trace["spans"]} >= {
        "create pods", "filter and score", "bind", "pod worker starts", "cgroups", "volumes",
        "sandbox and network", "CNI ADD", "create httpd", "start httpd", "init ran",
    }  # fmt: skip


OTHERWISE_RUNTIMES_DO = """
apiVersion: v1
kind: Pod
metadata: {name: low}
spec:
  terminationGracePeriodSeconds: 1
  securityContext:
    {runAsUser: 1000, runAsGroup: 1000, seLinuxOptions: {level: "s0:c1,c2"}}
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "ls -d /made; cat /proc/sys/net/ipv4/ping_group_range; exec httpd -f -p 80"]
    securityContext: {capabilities: {drop: [ALL]}}
    ports: [{containerPort: 80, hostPort: PORT, hostIP: 0.0.0.0}]
    volumeMounts: [{name: made, mountPath: /made}]
  volumes: [{name: made, hostPath: {path: PLACE}}]
---
apiVersion: v1
kind: Pod
metadata: {name: outside}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: IMAGE, command: [sh, -c, "cat /etc/hosts; sleep 1000"]}]
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: crun}
handler: crun
---
apiVersion: v1
kind: Pod
metadata: {name: classed}
spec:
  runtimeClassName: crun
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: IMAGE, command: [sleep, "1000"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: confined}
spec:
  securityContext: {appArmorProfile: {type: RuntimeDefault}}
  containers: [{name: main, image: IMAGE, command: [sleep, "1000"]}]
""".replace("IMAGE", IMAGE)


def test_what_runtimes_do_for_pods_beside_starting_them(node, tmp_path):
    """Labels without SELinux, low ports and ping for any user, a hostPath that is not there yet, a
    host port on every address, the node's /etc/hosts, a class of the runtime's own name, and
    AppArmor that is missing."""
    kubectl, port, place = node.kubectl, free_port(), tmp_path / "not" / "yet"
    pods = OTHERWISE_RUNTIMES_DO.replace("PORT", str(port)).replace("PLACE", str(place))
    kubectl("apply", "-f", "-", stdin=pods)
    kubectl(
        "wait", "--for=condition=Ready", "pod/low", "pod/outside", "pod/classed", "--timeout=60s"
    )
    assert place.is_dir()
    eventually(lambda: "/made\n0\t2147483647\n" in kubectl("logs", "low"))
    [item] = kubectl.get("nodes")["items"]
    addresses = {entry["type"]: entry["address"] for entry in item["status"]["addresses"]}
    with socket.create_connection((addresses["InternalIP"], port), 10):
        pass
    said = kubectl("logs", "outside")
    assert said.startswith("# Kubernetes-managed hosts file (host network).\n")
    assert "localhost" in said
    if not Path("/sys/kernel/security/apparmor").exists():
        kubectl.wait_phase("confined", "Failed")
        assert kubectl.get("pod", "confined")["status"]["reason"] == "AppArmor"
    kubectl("delete", "pod", "--all", "--wait")


OWN_USERS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: told}
data: {word: hello}
---
apiVersion: v1
kind: Pod
metadata: {name: mapped}
spec:
  hostUsers: false
  shareProcessNamespace: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "touch /own /kept/own; cat /told/word; mkdir /bin/new; sleep 1000"]
    volumeMounts: [{name: kept, mountPath: /kept}, {name: told, mountPath: /told}]
  - name: other
    image: IMAGE
    command: [sh, -c, "until touch /kept/other; do sleep 0.1; done; sleep 1000"]
    securityContext: {runAsUser: 1000, runAsGroup: 1000}
    volumeMounts: [{name: kept, mountPath: /kept}]
  volumes: [{name: kept, emptyDir: {}}, {name: told, configMap: {name: told}}]
""".replace("IMAGE", IMAGE)


@pytest.mark.skipif(not maps_users(platform.release(), "crun"), reason="an old kernel")
def test_a_pod_with_users_of_its_own_has_nobody_elses_on_the_node(node):
    kubectl = node.kubectl
    kubectl("apply", "-f", "-", stdin=OWN_USERS)
    kubectl("wait", "--for=condition=Ready", "pod/mapped", "--timeout=60s")
    inside = ("exec", "mapped", "-c", "main", "--")
    eventually(lambda: "other" in kubectl(*inside, "ls", "/kept"), 60)
    said = kubectl(*inside, "stat", "-c", "%n %u", "/bin/busybox", "/own", "/kept/own",
                   "/kept/other").split()  # fmt: skip
    assert said[1::2] == ["0", "0", "0", "1000"]
    assert kubectl("logs", "mapped", "-c", "main") == "hello"
    first, length = kubectl(*inside, "cat", "/proc/self/uid_map").split()[1:]
    assert (int(first) % 65536, int(length)) == (0, 65536)
    container = status(kubectl, "mapped")[1]["containerID"].removeprefix("crun://")
    place = node.data_dir / "native" / "containers" / container
    pid = int((place / "pid").read_text())
    assert os.stat(f"/proc/{pid}").st_uid == int(first) > 0
    # On the disk of a volume its users are as the pod sees them.
    [kept] = node.data_dir.glob("kubelet/pods/*/volumes/kubernetes.io~empty-dir/kept")
    assert {file.name: file.stat().st_uid for file in kept.iterdir()} == {"own": 0, "other": 1000}
    node.kill()
    node.up()
    assert kubectl(*inside, "id", "-u").strip() == "0"
    kubectl("delete", "pod", "mapped", "--wait")
    eventually(lambda: not place.exists(), 60)


def test_an_image_is_pulled_and_containers_outlive_the_agent(
    node, registry_image, archive, tmp_path
):
    kubectl = node.kubectl
    script = "echo before; sleep 1000 & trap 'exit 4' TERM; echo ready; wait"
    kubectl(
        "run", "pulled", f"--image={registry_image}", "--restart=Never", "--", "sh", "-c", script
    )
    kubectl("run", "ends", f"--image={registry_image}", "--restart=Never", "--", "sh", "-c",
            "while [ ! -e /end ]; do sleep 0.1; done; echo last words; exit 9")  # fmt: skip
    kubectl("wait", "--for=condition=Ready", "pod/pulled", "pod/ends", "--timeout=60s")
    before = status(kubectl, "pulled")[1]["containerID"]
    # It ends while nobody looks.
    kubectl("exec", "ends", "--", "sh", "-c", "(sleep 1; touch /end) >/dev/null 2>&1 &")
    node.kill()
    node.up()
    kubectl.wait_phase("ends", "Failed")
    assert status(kubectl, "ends")[1]["state"]["terminated"]["exitCode"] == 9
    assert kubectl("logs", "ends") == "last words\n"
    assert status(kubectl, "pulled")[1]["containerID"] == before
    assert kubectl("exec", "pulled", "--", "echo", "still here") == "still here\n"
    assert registry_image in node.run("image", "list")
    saved = tmp_path / "saved.tar"
    assert "MiB" in node.run("image", "save", registry_image, "-f", str(saved))
    node.run("image", "rm", registry_image)
    assert registry_image not in node.run("image", "list")
    assert f"imported {registry_image}" in node.run("image", "import", str(saved))
    node.run("image", "import", str(archive))  # which is the same image by another name
    assert f"removed {registry_image}" in node.run("image", "rm", registry_image)
    assert IMAGE in node.run("image", "list")
    assert "came now" in node.run("image", "pull", registry_image)
    mirrored = registry_image.replace(registry_image.split("/")[0], "registry.test")
    assert f"pulled {mirrored}" in node.run("image", "pull", mirrored)
    kubectl("delete", "pod", "pulled", "ends", "--wait")


@pytest.mark.runtime("cri")
def test_a_containerd_runs_what_was_saved_here(node, cluster, tmp_path):
    """And the other way round, which every test does that imports an archive."""
    name, saved = "registry.test/test/saved:1", tmp_path / "saved.tar"
    archive = busybox_archive(tmp_path / "named.tar", name, mark="saved")
    node.run("image", "import", str(archive))
    node.run("image", "save", name, "-f", str(saved))
    assert f"imported {name}" in cluster.run("image", "import", str(saved))
    kubectl, words = cluster.kubectl, ("--image-pull-policy=Never", "--restart=Never", "--")
    kubectl("run", "saved", f"--image={name}", *words, "echo", "from a file")
    kubectl.wait_phase("saved", "Succeeded")
    assert kubectl("logs", "saved") == "from a file\n"
    kubectl("delete", "pod", "saved")
    cluster.run("image", "rm", name)


def test_a_container_goes_with_its_monitor(node):
    """Whoever kills conmon: the container is not left behind with nobody to see it."""
    kubectl = node.kubectl
    kubectl("run", "watched", f"--image={IMAGE}", "--restart=Never", "--", "sleep", "1003")
    kubectl("wait", "--for=condition=Ready", "pod/watched", "--timeout=60s")
    container = status(kubectl, "watched")[1]["containerID"].removeprefix("crun://")
    place = node.data_dir / "native" / "containers" / container
    first, monitor = (int((place / name).read_text()) for name in ("pid", "conmon.pid"))
    os.kill(monitor, signal.SIGKILL)
    kubectl.wait_phase("watched", "Failed")
    eventually(lambda: not os.path.exists(f"/proc/{first}"), 60)
    kubectl("delete", "pod", "watched", "--wait")
