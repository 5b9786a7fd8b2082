"""Volumes of real pods, with kubectl as witness [N15]."""

import ctypes
import os
import shutil
import stat
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from tests.support.parts.kubectl import Kubectl
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import RUNTIME

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

IMAGE = "localhost/test/busybox:1"
FOREVER = ["sh", "-c", "trap exit TERM; while :; do sleep 0.2; done"]
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
def host():
    """A directory of the node, to be mounted and kept."""
    path = Path(tempfile.mkdtemp(prefix="sampan-host-"))
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


def manifest(name, volumes, mounts, *, container=None, metadata=None, **spec):
    main = {"name": "main", "image": IMAGE, "command": FOREVER, "volumeMounts": mounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": key, **source} for key, source in volumes.items()],
            "containers": [{**main, **(container or {})}],
            **spec,
        },
    }


def apply(kubectl, *objects):
    return kubectl("apply", "-f", "-", stdin=listed(*objects))


def listed(*objects):
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).decode()


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def sh(kubectl, pod, script):
    return kubectl("exec", pod, "--", "sh", "-c", script)


def messages(kubectl, pod, reason="FailedMount"):
    selector = f"involvedObject.name={pod},reason={reason}"
    events = kubectl.get("events", "--field-selector", selector)["items"]
    return {event["message"] for event in events}


def waiting(kubectl, pod):
    statuses = kubectl.get("pod", pod)["status"].get("containerStatuses") or [{}]
    return statuses[0].get("state", {}).get("waiting", {})


def pod_directory(cluster, kubectl, pod):
    return cluster.data_dir / "kubelet" / "pods" / kubectl.get("pod", pod)["metadata"]["uid"]


def delete(kubectl, *pods):
    kubectl("delete", "pod", *pods, "--now", "--wait=false")
    eventually(lambda: not any(kubectl.exists("pod", pod) for pod in pods))


def test_every_type_of_volume_is_there_with_its_content_modes_and_owners(cluster, kubectl, host):
    """[N15] emptyDir, hostPath, configMap, secret, downwardAPI, projected; fsGroup; read-only"""
    (host / "precious").write_text("kept")
    binary = {"raw": "/wA="}
    volumes = {
        "disk": {"emptyDir": {}},
        "memory": {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        "host": {"hostPath": {"path": str(host / "new"), "type": "DirectoryOrCreate"}},
        "words": {"configMap": {"name": "all-words", "items": [
            {"key": "word", "path": "deep/er/word"}, {"key": "raw", "path": "raw", "mode": 0o400},
        ]}},
        "keys": {"secret": {"secretName": "all-keys", "defaultMode": 0o400}},
        "me": {"downwardAPI": {"items": [
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            {"path": "memory", "resourceFieldRef": {
                "containerName": "main", "resource": "limits.memory", "divisor": "1Mi"}},
        ]}},
        "mix": {"projected": {"sources": [
            {"configMap": {"name": "all-words", "items": [{"key": "word", "path": "w"}]}},
            {"secret": {"name": "all-keys", "items": [{"key": "key", "path": "k"}]}},
            {"downwardAPI": {"items": [
                {"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"secret": {"name": "nobody", "optional": True}},
        ]}},
    }  # fmt: skip
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in volumes]
    mounts.append({"name": "disk", "mountPath": "/frozen", "readOnly": True})
    pod = manifest(
        "all", volumes, mounts,
        container={"resources": {"limits": {"memory": "64Mi"}}},
        metadata={"labels": {"app": "all"}},
        securityContext={"fsGroup": 3000, "runAsUser": 1000},
    )  # fmt: skip
    words = {**config_map("all-words", word="hello"), "binaryData": binary}
    apply(kubectl, words, secret("all-keys", key="pssst"), pod)
    kubectl.wait_phase("all", "Running")
    script = """
        cat /words/deep/er/word; echo; wc -c < /words/raw; cat /keys/key; echo
        cat /me/labels; echo; cat /me/memory; echo; cat /mix/w /mix/k /mix/n; echo
        stat -c %a:%u:%g /disk /memory /words /keys/..data/key /words/..data/raw
        id -G; df -k /memory | tail -1 | awk '{print $2}'
        echo new > /disk/file; stat -c %g /disk/file; cat /frozen/file
        for place in /words /keys /me /mix /frozen; do touch $place/x 2>&1; done
        dd if=/dev/zero of=/memory/big bs=1k count=2000 2>&1 | grep -c 'No space'
    """
    lines = sh(kubectl, "all", script).splitlines()
    assert lines == [
        "hello", "2", "pssst", 'app="all"', "64", "hellopssstall",
        "2777:0:3000", "3777:0:3000", "2777:0:3000", "440:0:3000", "440:0:3000",
        "0 3000", "1024", "3000", "new",
        *(f"touch: {p}/x: Read-only file system"
          for p in ("/words", "/keys", "/me", "/mix", "/frozen")),
        "1",
    ], lines  # fmt: skip
    assert stat.S_IMODE((host / "new").stat().st_mode) == 0o755
    directory = pod_directory(cluster, kubectl, "all")
    assert (directory / "volumes" / "kubernetes.io~configmap" / "words" / "..data").is_symlink()
    delete(kubectl, "all")
    eventually(lambda: not directory.exists())
    assert (host / "precious").read_text() == "kept"
    assert str(directory) not in Path("/proc/self/mounts").read_text()


def test_a_pod_waits_for_what_is_missing_and_starts_by_itself(kubectl):
    """[N15] bad input: no config map, no secret, no key; optional ones are empty"""
    key = {"name": "late-words", "items": [{"key": "word", "path": "word"}]}
    volumes = {
        "keys": {"secret": {"secretName": "late-keys"}},
        "words": {"configMap": key},
        "maybe": {"configMap": {"name": "never", "optional": True}},
    }
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in volumes]
    apply(kubectl, manifest("late", volumes, mounts))
    failed = "MountVolume.SetUp failed for volume"
    eventually(
        lambda: f'{failed} "keys" : secret "late-keys" not found' in messages(kubectl, "late")
    )
    assert waiting(kubectl, "late")["reason"] == "ContainerCreating"
    assert "podIP" not in kubectl.get("pod", "late")["status"]
    apply(kubectl, secret("late-keys", key="pssst"))
    missing = f'{failed} "words" : configmap "late-words" not found'
    eventually(lambda: missing in messages(kubectl, "late"))
    apply(kubectl, config_map("late-words", other="x"))
    missing = f'{failed} "words" : configmap references non-existent config key: word'
    eventually(lambda: missing in messages(kubectl, "late"))
    apply(kubectl, config_map("late-words", word="hello"))
    eventually(lambda: kubectl.phase("late") == "Running")
    assert sh(kubectl, "late", "cat /words/word /keys/key; ls /maybe") == "hellopssst"
    delete(kubectl, "late")


def test_changes_reach_a_running_pod_by_themselves(cluster, kubectl):
    """[N15] all files in one step; a single file mounted by subPath stays as it was"""
    volumes = {
        "words": {"configMap": {"name": "live-words"}},
        "mix": {"projected": {"sources": [
            {"secret": {"name": "live-keys"}},
            {"downwardAPI": {"items": [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]}},
    }  # fmt: skip
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in volumes]
    mounts.append({"name": "words", "mountPath": "/one", "subPath": "word"})
    pod = manifest("live", volumes, mounts, metadata={"labels": {"a": "b"}})
    apply(kubectl, config_map("live-words", word="old"), secret("live-keys", key="old"), pod)
    kubectl.wait_phase("live", "Running")
    places = pod_directory(cluster, kubectl, "live") / "volumes"
    word = places / "kubernetes.io~configmap" / "words" / "word"
    key = places / "kubernetes.io~projected" / "mix" / "key"
    for path, change in (
        (word, config_map("live-words", word="new", more="x")),
        (key, secret("live-keys", key="new")),
    ):
        assert path.read_text() == "old"
        apply(kubectl, change)
        eventually(lambda path=path: path.read_text() == "new")
    kubectl("label", "pod", "live", "a=c", "--overwrite")
    labels = places / "kubernetes.io~projected" / "mix" / "labels"
    eventually(lambda: labels.read_text() == 'a="c"')
    seen = sh(kubectl, "live", "cat /words/word /words/more /mix/key /mix/labels /one")
    assert seen == 'newxnewa="c"old'
    delete(kubectl, "live")


def test_the_token_in_a_pod_is_good_for_the_api(cluster, kubectl, tmp_path):
    """[N15, A1] mounted without being asked for; it says who the pod is, and nothing more"""
    kubectl("run", "speaker", f"--image={IMAGE}", "--command", "--", *FOREVER)
    kubectl.wait_phase("speaker", "Running")
    found = sh(kubectl, "speaker", f"cd {TOKENS}; cat token; echo; cat namespace; echo; cat ca.crt")
    token, namespace, authority = found.split("\n", 2)
    assert namespace == "default"
    (tmp_path / "ca.crt").write_text(authority)
    server = kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "pod",
        "clusters": [{"name": "c", "cluster": {
            "server": server, "certificate-authority": str(tmp_path / "ca.crt")}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "pod", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_bytes(orjson.dumps(config))
    as_pod = Kubectl(tmp_path / "kubeconfig", tmp_path)
    said = as_pod.fails("get", "secrets")
    assert 'User "system:serviceaccount:default:default" cannot list resource "secrets"' in said
    delete(kubectl, "speaker")
    eventually(lambda: "Unauthorized" in as_pod.fails("get", "secrets"))  # it was the pod's


def test_a_token_is_mounted_only_where_it_is_wanted(kubectl):
    """[N15] automountServiceAccountToken: the pod's word goes before the account's"""
    account = {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "quiet"},
        "automountServiceAccountToken": False,
    }  # fmt: skip
    apply(
        kubectl,
        account,
        manifest("quiet", {}, [], serviceAccountName="quiet"),
        manifest("plain", {}, [], automountServiceAccountToken=False),
        manifest("loud", {}, [], serviceAccountName="quiet", automountServiceAccountToken=True),
    )
    for pod, count in (("quiet", 0), ("plain", 0), ("loud", 1)):
        assert len(kubectl.get("pod", pod)["spec"].get("volumes", [])) == count
        kubectl.wait_phase(pod, "Running")
        assert sh(kubectl, pod, f"ls {TOKENS} 2>/dev/null | wc -l") == f"{3 * count}\n"
    delete(kubectl, "quiet", "plain", "loud")


def test_sub_paths_are_found_made_and_expanded(cluster, kubectl, host):
    """[N15] subPath and subPathExpr; the node's own files stay when the pod goes"""
    (host / "data").mkdir()
    (host / "data" / "file").write_text("kept")
    volumes = {
        "host": {"hostPath": {"path": str(host)}},
        "work": {"emptyDir": {}},
        "words": {"configMap": {"name": "sub-words"}},
    }
    mounts = [
        {"name": "host", "mountPath": "/data", "subPath": "data", "readOnly": True},
        {"name": "host", "mountPath": "/single", "subPath": "data/file"},
        {"name": "work", "mountPath": "/made", "subPath": "some/where"},
        {"name": "work", "mountPath": "/mine", "subPathExpr": "$(WHO)/logs"},
        {"name": "work", "mountPath": "/mnt"},
        {"name": "words", "mountPath": "/etc/app/word", "subPath": "word"},
    ]
    who = {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    pod = manifest("sub", volumes, mounts, container={"env": [who]})
    apply(kubectl, config_map("sub-words", word="hello"), pod)
    kubectl.wait_phase("sub", "Running")
    script = """
        cat /data/file /single /etc/app/word; echo
        touch /data/x 2>&1; echo 1 > /made/a; echo 2 > /mine/b
        cat /mnt/some/where/a /mnt/sub/logs/b; stat -c %a /mnt/some/where
    """
    assert sh(kubectl, "sub", script).splitlines() == [
        "keptkepthello", "touch: /data/x: Read-only file system", "1", "2", "777",
    ]  # fmt: skip
    directory = pod_directory(cluster, kubectl, "sub")
    assert str(directory / "volume-subpaths") in Path("/proc/self/mounts").read_text()
    delete(kubectl, "sub")
    eventually(lambda: not directory.exists())
    assert str(directory) not in Path("/proc/self/mounts").read_text()
    assert (host / "data" / "file").read_text() == "kept"


def test_no_path_leads_out_of_its_volume(kubectl, host):
    """[N15] bad input: symlink and `..` escapes in keys, items, subPaths and hostPaths"""
    (host / "trap").symlink_to("/")
    work, node = {"work": {"emptyDir": {}}}, {"node": {"hostPath": {"path": str(host)}}}
    ln = {
        "name": "ln", "image": IMAGE, "command": ["ln", "-s", "../../../..", "/mnt/up"],
        "volumeMounts": [{"name": "work", "mountPath": "/mnt"}],
    }  # fmt: skip

    def mount(name, **more):
        return [{"name": name, "mountPath": "/x", **more}]

    climb = {"env": [{"name": "UP", "value": ".."}]}
    apply(
        kubectl,
        manifest("link", work, mount("work", subPath="up/etc"), initContainers=[ln]),
        manifest("root", node, mount("node", subPath="trap")),
        manifest("climb", work, mount("work", subPathExpr="$(UP)/$(UP)"), container=climb),
        manifest("unset", work, mount("work", subPathExpr="$(NOBODY)")),
    )
    refused = 'failed to {} for volumeMount "{}" of container "main"'
    for pod, why in (
        ("link", refused.format("create subPath directory", "work")),  # there is none outside
        ("root", refused.format("prepare subPath", "node")),
        ("climb", "unable to provision SubPath `../..`: must not contain '..'"),
        ("unset", "missing value for NOBODY"),
    ):
        eventually(lambda pod=pod, why=why: waiting(kubectl, pod).get("message") == why)
        assert waiting(kubectl, pod)["reason"] == "CreateContainerConfigError"
    delete(kubectl, "link", "root", "climb", "unset")

    def refusal(*objects):
        return kubectl.fails("create", "-f", "-", stdin=listed(*objects))

    assert 'subPath: Invalid value: "../x": must not contain' in refusal(
        manifest("bad", work, mount("work", subPath="../x"))
    )
    assert "must not contain '..'" in refusal(
        manifest("bad", {"node": {"hostPath": {"path": "/tmp/../etc"}}}, mount("node"))
    )
    items = [{"key": "a", "path": "../../x"}]
    assert "items[0].path: Invalid value" in refusal(
        manifest("bad", {"c": {"configMap": {"name": "c", "items": items}}}, mount("c"))
    )
    assert "data[../x]: Invalid value" in refusal(config_map("bad", **{"../x": "y"}))


def test_host_paths_are_what_they_say_or_the_pod_waits(kubectl, host):
    """[N15] bad input: each hostPath type"""
    (host / "file").write_text("")
    bad = {
        "Directory": (host / "missing", "a directory"),
        "File": (host, "a file"),
        "Socket": (host / "file", "a socket file"),
        "CharDevice": (host / "file", "a character device"),
        "BlockDevice": (Path("/dev/null"), "a block device"),
    }
    good = {
        "d": {"hostPath": {"path": str(host), "type": "Directory"}},
        "f": {"hostPath": {"path": str(host / "made"), "type": "FileOrCreate"}},
        "c": {"hostPath": {"path": "/dev/null", "type": "CharDevice"}},
    }
    pods = [
        manifest(f"bad-{kind.lower()}", {"v": {"hostPath": {"path": str(path), "type": kind}}}, [])
        for kind, (path, _) in bad.items()
    ]
    mounts = [{"name": name, "mountPath": f"/v/{name}"} for name in good]
    apply(kubectl, *pods, manifest("good", good, mounts))
    for kind, (path, what) in bad.items():
        message = (
            f'MountVolume.SetUp failed for volume "v" : '
            f"hostPath type check failed: {path} is not {what}"
        )
        pod = f"bad-{kind.lower()}"
        eventually(lambda pod=pod, message=message: message in messages(kubectl, pod))
        assert kubectl.phase(pod) == "Pending"
    kubectl.wait_phase("good", "Running")
    assert sh(kubectl, "good", "ls /v/d") == "file\nmade\n"
    delete(kubectl, "good", *(f"bad-{kind.lower()}" for kind in bad))


def test_what_the_node_cannot_mount_is_said(kubectl, runtime):
    """[N15, X6] never in silence"""
    sources = {
        "nfs": {"server": "10.0.0.1", "path": "/"},
        "csi": {"driver": "csi.example.com"},
        "emptyDir": {"medium": "HugePages"},
        "image": {"reference": IMAGE, "pullPolicy": "IfNotPresent"},
    }
    if runtime == "native":
        del sources["image"]  # it can
    node = kubectl.get("nodes")["items"][0]["metadata"]["name"]
    apply(
        kubectl,
        *(
            manifest(f"no-{kind.lower()}", {"v": {kind: source}}, [], nodeName=node)
            for kind, source in sources.items()
        ),
    )
    for kind in sources:
        pod = f"no-{kind.lower()}"
        said = eventually(lambda pod=pod: messages(kubectl, pod))
        assert "MountVolume.SetUp failed for volume" in said.pop()
        assert kubectl.phase(pod) == "Pending"
    delete(kubectl, *(f"no-{kind.lower()}" for kind in sources))


def test_what_is_no_block_device_and_mounts_that_the_runtime_cannot_make_are_refused(kubectl, host):
    """[N15, X6] by name, and before anything is started"""
    node = kubectl.get("nodes")["items"][0]["metadata"]["name"]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}  # fmt: skip
    block = {"local": {"path": str(host)}, "nodeAffinity": affinity, "volumeMode": "Block"}
    volume, claim = persistent("block-volume", "block-claim", block)
    claim["spec"]["volumeMode"] = "Block"
    devices = {"volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]}
    claimed = {"v": {"persistentVolumeClaim": {"claimName": "block-claim"}}}
    raw = manifest("raw", claimed, [], container=devices)
    frozen = {"name": "v", "mountPath": "/v", "readOnly": True}
    directory = {"v": {"emptyDir": {}}}
    apply(
        kubectl, volume, claim, raw,
        manifest("must", directory, [{**frozen, "recursiveReadOnly": "Enabled"}]),
        manifest("may", directory, [{**frozen, "recursiveReadOnly": "IfPossible"}]),
    )  # fmt: skip
    why = f"{host} is not a block device"
    eventually(lambda: any(why in one for one in messages(kubectl, "raw")))
    kubectl.wait_phase("may", "Running")
    runtime = kubectl.get("nodes")["items"][0]["status"].get("runtimeHandlers") or []
    if any(one.get("features", {}).get("recursiveReadOnlyMounts") for one in runtime):
        kubectl.wait_phase("must", "Running")
    else:
        said = eventually(lambda: waiting(kubectl, "must").get("message"))
        assert 'volume "v" requested recursive read-only mount, but it is not supported' in said
    delete(kubectl, "raw", "must", "may")
    kubectl("delete", "pvc", "block-claim", "--ignore-not-found", "--wait=false")
    kubectl("delete", "pv", "block-volume", "--ignore-not-found", "--wait=false")


def test_an_ephemeral_volume_comes_and_goes_with_its_pod(kubectl):
    """[N15] a claim of the pod's own, from its template"""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    volumes = {"v": {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}}
    mounts = [{"name": "v", "mountPath": "/v"}]
    taken = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "robbed-v"},
        "spec": claim,
    }  # fmt: skip
    node = kubectl.get("nodes")["items"][0]["metadata"]["name"]
    apply(
        kubectl,
        taken,
        manifest("scratch", volumes, mounts, securityContext={"fsGroup": 3000}),
        manifest("robbed", volumes, mounts, nodeName=node),
    )
    kubectl.wait_phase("scratch", "Running")
    assert sh(kubectl, "scratch", "echo x > /v/x; stat -c %g /v/x") == "3000\n"
    bound = kubectl.get("pvc", "scratch-v")
    assert bound["metadata"]["ownerReferences"][0]["name"] == "scratch"
    volume = kubectl.get("pv", bound["spec"]["volumeName"])
    assert (Path(volume["spec"]["local"]["path"]) / "x").read_text() == "x\n"
    why = "PVC default/robbed-v was not created for pod default/robbed (pod is not owner)"
    eventually(lambda: any(why in one for one in messages(kubectl, "robbed")))
    delete(kubectl, "scratch", "robbed")
    eventually(lambda: not kubectl.exists("pvc", "scratch-v"))
    eventually(lambda: not Path(volume["spec"]["local"]["path"]).exists())
    kubectl("delete", "pvc", "robbed-v", "--wait=false")


def test_what_is_immutable_stays_as_it_was_for_a_running_pod(kubectl):
    """[N15] it is read and not watched; a new pod sees what has taken its place"""
    frozen = {**config_map("frozen", word="old"), "immutable": True}
    volumes = {"words": {"configMap": {"name": "frozen"}}}
    mounts = [{"name": "words", "mountPath": "/words"}]
    apply(kubectl, frozen, manifest("first", volumes, mounts))
    kubectl.wait_phase("first", "Running")
    changed = {**frozen, "data": {"word": "new"}}
    refusal = kubectl.fails("apply", "-f", "-", stdin=listed(changed))
    assert "field is immutable when `immutable` is set" in refusal
    kubectl("delete", "configmap", "frozen")
    apply(kubectl, changed, manifest("second", volumes, mounts))
    kubectl.wait_phase("second", "Running")
    assert sh(kubectl, "second", "cat /words/word") == "new"
    assert sh(kubectl, "first", "cat /words/word") == "old"
    delete(kubectl, "first", "second")


@contextmanager
def exchanged_all_the_time(one, other):
    """The two names change places in one step, again and again."""
    libc, over = ctypes.CDLL(None), threading.Event()
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE

    def swap():
        while not over.wait(0.0002):
            libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange)

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    over.set()
    thread.join()


def test_a_sub_path_that_is_exchanged_for_a_link_all_the_time_never_leads_out(kubectl, host):
    """[N15] bad input: a race between the check and its use"""
    (host / "a").mkdir()
    (host / "a" / "mark").write_text("inside")
    (host / "b").symlink_to("/")
    names = [f"race-{number}" for number in range(8)]
    mounts = [{"name": "node", "mountPath": "/x", "subPath": "a"}]
    show = {"command": ["sh", "-c", "ls /x; sleep 100"]}
    node = {"node": {"hostPath": {"path": str(host)}}}
    refused = 'failed to prepare subPath for volumeMount "node" of container "main"'

    def outcome(name):
        if kubectl.phase(name) == "Running":
            return kubectl("logs", name)
        return waiting(kubectl, name).get("message")

    with exchanged_all_the_time(host / "a", host / "b"):
        apply(kubectl, *(manifest(name, node, mounts, container=show) for name in names))
        for name in names:
            seen = eventually(lambda name=name: outcome(name))
            assert seen in ("mark\n", refused), seen
    delete(kubectl, *names)


def persistent(name, claim, source):
    size, modes = {"storage": "1Mi"}, ["ReadWriteOnce"]
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": size, "accessModes": modes, "storageClassName": "",
            "claimRef": {"namespace": "default", "name": claim}, **source,
        },
    }  # fmt: skip
    wanted = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim},
        "spec": {
            "accessModes": modes, "storageClassName": "", "volumeName": name,
            "resources": {"requests": size},
        },
    }  # fmt: skip
    return volume, wanted


def bind(kubectl, volume, claim):
    """What a volume controller does."""
    uid = kubectl.get("pvc", claim)["metadata"]["uid"]
    reference = {"spec": {"claimRef": {"uid": uid, "namespace": "default", "name": claim}}}
    kubectl("patch", "pv", volume, "-p", orjson.dumps(reference).decode())
    patch = {"status": {"phase": "Bound"}}
    kubectl("patch", "pvc", claim, "--subresource=status", "-p", orjson.dumps(patch).decode())


def test_claims_lead_to_the_node_s_directories(kubectl, host):
    """[N15] PV/PVC of hostPath and local type; the pod waits until they are bound"""
    (host / "disk").mkdir()
    (host / "disk" / "file").write_text("kept")
    node = kubectl.get("nodes")["items"][0]["metadata"]["name"]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}  # fmt: skip
    local = {"local": {"path": str(host / "disk")}, "nodeAffinity": affinity}
    host_path = {"hostPath": {"path": str(host / "made"), "type": "DirectoryOrCreate"}}
    volumes = {
        "local": {"persistentVolumeClaim": {"claimName": "local-claim"}},
        "node": {"persistentVolumeClaim": {"claimName": "node-claim", "readOnly": True}},
    }
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in volumes]
    pod = manifest("claims", volumes, mounts, securityContext={"fsGroup": 3000}, nodeName=node)
    apply(
        kubectl,
        *persistent("local-volume", "local-claim", local),
        *persistent("node-volume", "node-claim", host_path),
        pod,
    )
    if kubectl.get("pvc", "local-claim")["status"].get("phase") != "Bound":
        why = "error processing PVC default/local-claim: PVC is not bound"
        eventually(lambda: any(why in one for one in messages(kubectl, "claims")))
        bind(kubectl, "local-volume", "local-claim")
        bind(kubectl, "node-volume", "node-claim")
    kubectl.wait_phase("claims", "Running")
    script = "cat /local/file; stat -c :%a:%g /local/file; touch /local/x; touch /node/x 2>&1"
    assert sh(kubectl, "claims", script + "; true").splitlines() == [
        "kept:664:3000", "touch: /node/x: Read-only file system",
    ]  # fmt: skip
    delete(kubectl, "claims")
    assert sorted(os.listdir(host / "disk")) == ["file", "x"]
    os.chown(host / "disk" / "file", 0, 0)  # fsGroupChangePolicy: the directory itself is right
    pod["spec"]["securityContext"]["fsGroupChangePolicy"] = "OnRootMismatch"
    apply(kubectl, pod)
    kubectl.wait_phase("claims", "Running")
    assert sh(kubectl, "claims", "stat -c %g /local/file") == "0\n"
    delete(kubectl, "claims")
    kubectl("delete", "pvc,pv", "--all", "--wait=false")


def test_mounts_travel_between_containers_where_the_pod_asks_for_it(kubectl):
    """[N15] mountPropagation, also where the node's own mounts are private"""
    volumes = {"shared": {"emptyDir": {}}}
    mounts = [{"name": "shared", "mountPath": "/s", "mountPropagation": "Bidirectional"}]
    watcher = {
        "name": "watcher", "image": IMAGE, "command": FOREVER, "volumeMounts": [
            {"name": "shared", "mountPath": "/s", "mountPropagation": "HostToContainer"}],
    }  # fmt: skip
    pod = manifest("travel", volumes, mounts, container={"securityContext": {"privileged": True}})
    pod["spec"]["containers"].append(watcher)
    apply(kubectl, pod)
    kubectl.wait_phase("travel", "Running")
    sh(kubectl, "travel", "mkdir /s/m && mount -t tmpfs none /s/m && echo hello > /s/m/file")
    assert kubectl("exec", "travel", "-c", "watcher", "--", "cat", "/s/m/file") == "hello\n"
    delete(kubectl, "travel")


def test_volumes_survive_a_killed_agent_and_what_is_left_over_is_removed(
    own_cluster, archive, host
):
    """[N15, N21] mounts are found again and not made anew; pods that are gone leave nothing"""
    (host / "file").write_text("kept")
    own_cluster.up("--runtime", RUNTIME)
    own_cluster.run("image", "import", str(archive))
    kubectl = own_cluster.kubectl
    volumes = {
        "memory": {"emptyDir": {"medium": "Memory"}},
        "words": {"configMap": {"name": "words"}},
        "host": {"hostPath": {"path": str(host)}},
    }
    mounts = [
        {"name": "memory", "mountPath": "/memory"},
        {"name": "words", "mountPath": "/words"},
        {"name": "host", "mountPath": "/host", "subPath": "deep"},
    ]
    apply(kubectl, config_map("words", word="old"), manifest("stays", volumes, mounts))
    kubectl.wait_phase("stays", "Running")
    directory = pod_directory(own_cluster, kubectl, "stays")
    sh(kubectl, "stays", "echo kept > /memory/file; echo kept > /host/file")
    before = [one for one in Path("/proc/self/mountinfo").read_text().splitlines()
              if str(directory) in one]  # fmt: skip
    assert len(before) == 3  # memory, token, sub path
    own_cluster.kill()
    orphan = directory.parent / "0d7c0a3e-0000-4000-8000-000000000000"
    shutil.copytree(directory / "volumes", orphan / "volumes", symlinks=True)
    own_cluster.up("--runtime", RUNTIME)
    eventually(lambda: not orphan.exists())
    apply(kubectl, config_map("words", word="new"))
    eventually(lambda: sh(kubectl, "stays", "cat /words/word") == "new", 30)  # no resync is so soon
    assert sh(kubectl, "stays", "cat /memory/file /host/file") == "kept\nkept\n"
    assert kubectl.get("pod", "stays")["status"]["containerStatuses"][0]["restartCount"] == 0
    after = [one for one in Path("/proc/self/mountinfo").read_text().splitlines()
             if str(directory) in one]  # fmt: skip
    assert after == before
    own_cluster.reset()  # with the pod still there
    assert (host / "file").read_text() == "kept"
    assert (host / "deep" / "file").read_text() == "kept\n"
