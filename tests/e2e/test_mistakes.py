"""Mistakes that people make: each ends in a sentence that says what happened and what to do.

Job: run each as a person would; look at the exit code and at the last words. No traceback, ever.
"""

import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.slow]

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
PLAIN = ("--runtime", "none", "--port", "0")
UP = ("up", *PLAIN, "--data-dir", "new")
DRIVERS = """
apiVersion: simulated.sampan.dev/v1
kind: Nodes
types: [{name: large, csiDrivers: [{name: disk.example.com}]}]
"""
# What was typed, how it ends, what the sentence says.
TABLE = {
    "wrong flag": (("up", "--detatch"), 2, ["did you mean --detach?"]),
    "wrong verb": (("upp",), 1, ["unknown command", "up"]),
    "no port": (("up", "--port", "70000"), 2, ["--port", "0 to 65535"]),
    "no number of nodes": (("up", "--nodes", "0"), 2, ["--nodes", "1 or more"]),
    "no runtime of this name": (("up", "--runtime", "docker"), 2, ["docker", "simulated"]),
    "no node's name": (("up", "--node-name", "Bad_Name!"), 2, ["Bad_Name!", "lowercase"]),
    "a name that is too long": (("up", "--name", "x" * 60), 1, ["too long", "40"]),
    "a name that is none": (("up", "--name", "A_B"), 1, ["--name 'A_B'", "lower case"]),
    "two places": (("up", "--name", "a", "--data-dir", "b"), 1, ["give one"]),
    "two kubeconfigs": (("up", "--use", "--kubeconfig", "x"), 1, ["give one"]),
    "a directory of something else": (
        ("up", *PLAIN, "--data-dir", "other"), 1, ["is not empty", "choose another --data-dir"]),
    "a file as directory": (("up", *PLAIN, "--data-dir", "file"), 1, ["file", "--data-dir"]),
    "a damaged directory": (
        ("up", *PLAIN, "--data-dir", "damaged"), 1, ["is damaged", "backup", "sampan reset"]),
    "a newer directory": (("up", *PLAIN, "--data-dir", "newer"), 1, ["newer sampan", "upgrade"]),
    "a cluster that runs": (
        ("up", *PLAIN, "--name", "runs"), 1, ["in use by process", "sampan down"]),
    "a kubeconfig that is a directory": ((*UP, "--kubeconfig", "folder"), 1, ["is a directory"]),
    "a kubeconfig that is no YAML": ((*UP, "--kubeconfig", "broken"), 1, ["yaml: line 1"]),
    "a kubeconfig that is a list": ((*UP, "--kubeconfig", "list"), 1, ['file "', "list"]),
    "an admission plugin": ((*UP, "--enable-admission-plugins", "Nope"), 1, ["Nope", "unknown"]),
    "a controller": ((*UP, "--controllers", "nope"), 1, ["--controllers", "nope"]),
    "a scheduler's file": ((*UP, "--scheduler-config", "none"), 1, ["none: no such file"]),
    "a store": ((*UP, "--store", "mongodb://x"), 1, ["use memory:, sqlite"]),
    "a store that is none": (
        (*UP, "--store", "sqlite:///file-with-text"), 1, ["is not a sampan store"]),
    "no configuration": ((*UP, "--config", "none"), 1, ["none: no such file"]),
    "tabs in a configuration": ((*UP, "--config", "tabs"), 1, ["tabs: line 2", "\\t"]),
    "a setting": ((*UP, "--config", "typo"), 1, ["nodez is no setting", "did you mean nodes"]),
    "another kind": ((*UP, "--config", "pod"), 1, ["Pod is not", "ClusterConfiguration"]),
    "drivers of processes": (
        ("up", "--processes", "--runtime", "simulated", "--port", "0", "--data-dir", "new",
         "--nodes-file", "drivers"), 1, ["csiDrivers of --nodes-file want one process"]),
    "an address": ((*UP, "--bind-address", "203.0.113.9"), 1, ["--bind-address"]),
    "a file of tokens": ((*UP, "--token-auth-file", "none"), 1, ["none: no such file"]),
    "an audit policy without a log": (
        (*UP, "--audit-policy-file", "tabs"), 1, ["needs --audit-log-path"]),
    "a socket": (
        ("up", "--port", "0", "--data-dir", "new", "--runtime", "cri", "--cri-socket", "none"), 1,
        ["no container runtime answers", "leave --cri-socket out"]),
    "a scenario without simulation": (
        (*UP, "--simulated-scenario", "none"), 1, ["--runtime simulated"]),
    "Stages that are none": ((*UP, "--stages", "pod"), 1, ["Pod is no Stage of kwok.x-k8s.io"]),
    "manifests that are not there": ((*UP, "--with", "none"), 1, ["none", "does not exist"]),
    "manifests with tabs": ((*UP, "--with", "tabs"), 1, ["tabs", "line 2"]),
    "a node without an API": (("kubelet", "--data-dir", "n"), 1, ["--join", "--manifests"]),
    "a node of no cluster": (
        ("kubelet", "--data-dir", "n", "--join", "none"), 1, ["no sampan cluster", "sampan up"]),
    "a node of no kubeconfig": (
        ("kubelet", "--data-dir", "n", "--kubeconfig", "none"), 1, ["none: no such file"]),
    "joining nobody": (
        ("join", "https://127.0.0.1:1", "--token", "a.b", "--ca-hash", "sha256:00", "--data-dir",
         "n"), 1, ["no API server answers", "is the address right?"]),
    "down where nothing is": (("down", "--name", "none"), 1, ["no sampan cluster", "sampan up"]),
    "reset without yes": (("reset", "--name", "runs"), 1, ["say --yes"]),
    "images of a simulated node": (("image", "list", "--name", "runs"), 1, ["no real node"]),
    "images of a cluster that is down": (
        ("image", "list", "--data-dir", "down"), 1, ["does not run", "sampan up"]),
    "a log of the foreground": (("log", "--data-dir", "down"), 1, ["--detach"]),
    "a question about nothing": (("why", "pod/none", "--name", "runs"), 1, ["not found"]),
    "a question to nobody": (
        ("why", "pod/x", "--kubeconfig", "down/kubeconfig"), 1, ["no API server", "sampan list"]),
    "a token of nobody": (("token", "create", "--data-dir", "down"), 1, ["no API server"]),
    "a question to another cluster": (
        ("why", "pod/x", "--kubeconfig", "mixed"), 1, ["does not trust", "another cluster"]),
    "no such kubeconfig": (("get", "pods", "--kubeconfig", "none"), 1, ["none: no such file"]),
    "a folder as kubeconfig": (("get", "pods", "--kubeconfig", "folder"), 1, ["is a directory"]),
    "no YAML as kubeconfig": (("get", "pods", "--kubeconfig", "broken"), 1, ["yaml: line 1"]),
    "the kubeconfig of another cluster": (
        ("get", "pods", "--kubeconfig", "mixed"), 1, ["failed to verify certificate"]),
    "the certificate of another cluster": (
        ("get", "pods", "--kubeconfig", "stranger"), 1, ["of another cluster, or expired"]),
    "the cluster is down": (
        ("get", "pods", "--kubeconfig", "down/kubeconfig"), 1, ["was refused", "host or port"]),
    "tabs in a manifest": (("apply", "-f", "tabs"), 1, ["tabs", "line 2"]),
    "no manifest": (("apply", "-f", "none"), 1, ['"none" does not exist']),
    "a kind": (
        ("get", "nosuch", "--kubeconfig", "runs"), 1, ["doesn't have a resource type"]),
    "no image": (("run", "web", "--kubeconfig", "runs"), 1, ["image", "not set"]),
}  # fmt: skip
# Some say more than a sentence: what is close.
LONGER = {"wrong verb": 8}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A home with a cluster that runs, one that is down, and files of all sorts."""
    root = tmp_path_factory.mktemp("mistakes")
    files = {
        "file": "", "file-with-text": "some text that is no database\n" * 100, "broken": "a: [",
        "list": "[1]", "tabs": "a:\n\tb: 1\n", "typo": "nodez: 3", "pod": "kind: Pod",
        "other/file": "", "damaged/format": "xx", "newer/format": "99", "folder/file": "",
        "drivers": DRIVERS,
    }  # fmt: skip
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    try:
        succeed(root, "up", "--name", "runs", "--detach", "--runtime", "simulated")
        succeed(root, "up", *PLAIN, "--data-dir", "down", "--detach")
        succeed(root, "down", "--data-dir", "down")
        (root / "down" / "sampan.log").unlink()
        write_kubeconfigs(root)
        yield root
    finally:
        succeed(root, "reset", "--yes", "--name", "runs")


def write_kubeconfigs(root):
    runs, down = (
        yaml.safe_load(text)
        for text in (
            succeed(root, "kubeconfig", "--name", "runs"),
            (root / "down" / "kubeconfig").read_text(),
        )
    )
    (root / "runs").write_text(yaml.safe_dump(runs))
    # The address of one with the authority of another, and with the user of another.
    mixed = {**runs, "clusters": [{**down["clusters"][0]}]}
    address = runs["clusters"][0]["cluster"]["server"]
    mixed["clusters"][0]["cluster"] = {**down["clusters"][0]["cluster"], "server": address}
    (root / "mixed").write_text(yaml.safe_dump(mixed))
    (root / "stranger").write_text(yaml.safe_dump({**runs, "users": down["users"]}))


def run(root, *words, prefix=(), seconds=120, **more):
    home = {"HOME": str(root), "XDG_STATE_HOME": "", "KUBECONFIG": "", **more}
    return subprocess.run(
        [*prefix, *sampan_command(*words)], capture_output=True, text=True, timeout=seconds,
        cwd=root, env={**environment(), **home}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def succeed(root, *words):
    done = run(root, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def last_words(done, code):
    """What is left of standard error without the log; the exit code is as wanted."""
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    lines = [line for line in done.stderr.splitlines() if "loop_watch" not in line]
    assert done.returncode == code, done.stdout + done.stderr
    return lines


@pytest.mark.parametrize("mistake", TABLE)
def test_a_mistake_is_one_sentence_with_advice(place, mistake):
    words, code, wanted = TABLE[mistake]
    lines = last_words(run(place, *words), code)
    assert 1 <= len(lines) <= LONGER.get(mistake, 2), lines
    for text in wanted:
        assert text in "\n".join(lines)


@pytest.mark.parametrize(("variable", "value"), [("SAMPAN_NODES", "abc"), ("SAMPAN_DETACH", "no")])
def test_a_bad_variable_is_named(place, variable, value):
    done = run(place, *UP, **{variable: value})
    lines = last_words(done, done.returncode)
    assert done.returncode in (1, 2)
    assert variable.removeprefix("SAMPAN_").lower() in " ".join(lines)


def test_down_twice_says_that_nothing_runs(place):
    assert "nothing runs" in succeed(place, "down", "--data-dir", "down")


@pytest.mark.parametrize("file", ["ca.crt", "ca.key", "sa.key", "front-proxy-ca.crt"])
def test_what_everybody_trusts_is_damaged(place, file):
    path = place / "down" / "pki" / file
    before = path.read_bytes()
    path.write_text("garbage")
    try:
        [line] = last_words(run(place, "up", *PLAIN, "--data-dir", "down"), 1)
    finally:
        path.write_bytes(before)
    assert f"{path} is damaged" in line
    assert "backup" in line


def test_a_damaged_certificate_is_made_anew(place):
    (place / "down" / "pki" / "apiserver.crt").write_text("garbage")
    (place / "down" / "pki" / "admin.key").write_text("garbage")
    (place / "down" / "record.json").write_text("[]")
    said = succeed(place, "up", *PLAIN, "--data-dir", "down", "--detach")
    try:
        assert "2 made" in said
        succeed(place, "get", "nodes", "--kubeconfig", "down/kubeconfig")
    finally:
        succeed(place, "down", "--data-dir", "down")
        (place / "down" / "sampan.log").unlink()


def test_a_port_that_is_taken(place):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run(place, "up", "--runtime", "none", "--data-dir", "new", "--port", port)
    [line] = last_words(done, 1)
    assert f"port {port} on 127.0.0.1 is in use" in line
    assert "--port 0" in line


def test_the_kubelet_s_port_is_taken(place):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run(
            place, "kubelet", "--runtime", "simulated", "--data-dir", "node", "--kubeconfig",
            "runs", "--port", port,
        )  # fmt: skip
    [line] = last_words(done, 1)
    assert port in line
    assert "--port" in line


def test_a_full_disk(tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", full], check=True)
    try:
        lines = last_words(run(tmp_path, "up", *PLAIN, "--data-dir", "full/d"), 1)
        assert "full" in lines[-1]
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.parametrize(
    "words",
    [("down",), ("reset", "--yes"), ("image", "list"), ("status",), ("log",), ("kubeconfig",),
     ("token", "create"), ("up", *PLAIN)],
    ids=" ".join,
)  # fmt: skip
def test_somebody_else_s_cluster(words):
    skip_where_others_cannot_read()
    with tempfile.TemporaryDirectory(prefix="sampan-root-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "data").mkdir(mode=0o700)
        (root / "data" / "format").write_text("1\n")
        done = run(root, *words, "--data-dir", str(root / "data"), prefix=NOBODY)
    [line] = last_words(done, 1)
    assert "belongs to root" in line or "choose a directory that you may write" in line


def skip_where_others_cannot_read():
    probe = subprocess.run([*NOBODY, sys.executable, "-c", "import sampan"], env=environment())
    if probe.returncode:
        pytest.skip("others may not read this program")


def test_a_real_node_needs_root():
    skip_where_others_cannot_read()
    with tempfile.TemporaryDirectory(prefix="sampan-nobody-") as folder:
        Path(folder).chmod(0o777)
        words = ("up", "--runtime", "cri", "--port", "0", "--data-dir", f"{folder}/data")
        lines = last_words(run(folder, *words, prefix=NOBODY), 1)
    assert "a real node needs root" in lines[-1]
    assert "--runtime simulated" in lines[-1]


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        ("sampan ", signal.SIGINT),
        ("certificates", signal.SIGTERM),
        ("store", signal.SIGINT),
        ("API server", signal.SIGTERM),
        ("ready in", signal.SIGINT),
    ],
)
def test_ctrl_c_at_each_stage_leaves_quietly(tmp_path, stage, number):
    output = tmp_path / "out"
    with output.open("wb") as file:
        process = subprocess.Popen(
            sampan_command("up", *PLAIN, "--data-dir", str(tmp_path / "d")), stdout=file,
            stderr=file, env=environment(), stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            eventually(lambda: stage in output.read_text() or process.poll() is not None, 60.0)
            process.send_signal(number)
            # Before the handlers are there, SIGTERM does what it does to any program.
            assert process.wait(60) in (0, 130, -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
    assert "Traceback" not in output.read_text()


def test_reset_while_it_runs_stops_it_first(tmp_path):
    succeed(tmp_path, "up", *PLAIN, "--detach")
    assert "removed" in succeed(tmp_path, "reset", "--yes")
    assert not (tmp_path / ".local/state/sampan/default").exists()
