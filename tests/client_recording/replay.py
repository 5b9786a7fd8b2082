"""What the original kubectl v1.35 printed, replayed with sampan's client on sampan's API server.

Job: run a recorded command in this process, mask what differs by nature, compare.
Run it by hand: python tests/client_recording/replay.py [-v] [GROUP …]
"""

import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from sampan.cli.main import main
from sampan.cli.session import Io

HERE = Path(__file__).parent
LINES = [
    json.loads(line)
    for file in sorted(HERE.glob("kubectl_*.jsonl"))
    for line in file.read_text().splitlines()
]
RECORDS = [record for record in LINES if "args" in record]
# What every command of a group finds: files and variables, in a line without a command.
SHARED = {record["group"]: record for record in LINES if "args" not in record}
NAMESPACES = ("gk-run", "gk-create", "gk-read", "gk-read2", "gk-chg", "gk-app")
NEEDS_READ = {"get", "describe", "auth-misc", "complete"}

_MASKS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r'(resourceVersion"?: ?)"\d+"', r'\1"N"'),
    (r"(?m)^([WEIF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ([a-z_]+\.go):\d+\]", r"\1LOG \2]"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000( UTC)?", "TIME"),
    (r"(Resource Version: +|resourceVersion:)\d+", r"\1N"),
    (r"(Expected resource version to be 1, was) \d+", r"\1 N"),
    (r"/tmp/replay-\w+", "FOLDER"),
    (r"/tmp/(LIVE|MERGED|kubectl-edit)-\w+", r"TMPDIR/\1-RAND"),
    (r"kube-api-access-[a-z0-9]{5}\b", "kube-api-access-RAND"),
    (r"127\.0\.0\.1:\d+", "SERVER"),
    (r"X509SHA256=[0-9a-f]+", "X509SHA256=HASH"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "JWT"),
    (r"(?<![\w.])10\.\d+\.\d+\.\d+(?![\w.])", "CLUSTERIP"),
    (r"v1\.(35|37)\.\d+(\+sampan-[\w.]+)?", "v1.35.N"),  # ours is the newest
    (r'(minor"?: ")37"', r'\g<1>35"'),
    (r"\bkubernetes-admin\b", "admin"),
    (r"user-extra for [\w-]+ without", "user-extra for USER without"),
    (r"(goVersion: )\S+", r"\1GOVERSION"),
    (r'("(?:gitCommit|gitTreeState|goVersion)": )"[^"]*"', r'\1"BUILD"'),
    (r"debugger-[a-z0-9]{5}\b", "debugger-RAND"),
    (r"(Foo-Bar)-[a-z0-9]{5}\b", r"\1-RAND"),
)
_AGE = re.compile(r"(?<![\w.:=\"'/-])(\d+[smhdy](\d+[smhd])?)(?![\w.:=])")
_MASKED = re.compile(r"UID|TIME|AGE|CLUSTERIP|SERVER|HASH|RAND|JWT|<unknown>")


def masked(text):
    for pattern, by in _MASKS:
        text = re.sub(pattern, by, text)
    return text


def loose(text):
    """For what has masked columns: their width is not what was recorded."""
    return "\n".join(
        re.sub(r" +", " ", line).rstrip() for line in _AGE.sub("AGE", text).split("\n")
    )


def same(ours, recorded):
    ours, recorded = masked(ours), masked(recorded)
    if ours == recorded:
        return True
    if _MASKED.search(recorded) or _MASKED.search(ours):
        return loose(ours) == loose(recorded)
    return False


def without_help(text):
    """Help texts are our own: only the usage line is compared."""
    match = re.search(r"Usage:\n  [^\n]*", text)
    return match.group() + "\n" if match else text


def found_files(record, carried, shared=SHARED):
    group = record["group"]
    common = shared.get(group, {}).get("files") or {}
    return {**common, **carried.get(group, {}), **(record.get("files") or {})}


def found_environment(record, shared=SHARED):
    return {**(shared.get(record["group"], {}).get("env") or {}), **(record.get("env") or {})}


class Replay:
    def __init__(self, kubeconfig, home):
        self.kubeconfig, self.home = str(kubeconfig), str(home)
        self.carried = {}  # files that a group's next commands find again

    def run(self, args, stdin="", files=None, env=None):
        folder = tempfile.mkdtemp(prefix="replay-")
        before = os.getcwd()
        os.chdir(folder)
        try:
            for name, content in (files or {}).items():
                path = Path(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
                if "bindir" in name and "noexec" not in name:
                    path.chmod(0o755)
            environment = {
                "HOME": self.home, "KUBECONFIG": self.kubeconfig, "PATH": os.environ["PATH"],
                "KUBE_EDITOR": "true", **(env or {}),
            }  # fmt: skip
            out, err = io.StringIO(), io.StringIO()
            code = main(args, io=Io(io.BytesIO(stdin.encode()), out, err, environment))
            after = {
                str(path.relative_to(folder)): path.read_text()
                for path in Path(folder).rglob("*")
                if path.is_file()
            }
            return code, out.getvalue(), err.getvalue(), after
        finally:
            os.chdir(before)
            shutil.rmtree(folder, ignore_errors=True)

    def prepare(self):
        for namespace in NAMESPACES:
            self.run(["create", "namespace", namespace])
        for namespace in NAMESPACES:
            wanted = ("sa/default", "cm/kube-root-ca.crt")
            for _ in range(100):  # their controllers take a moment
                if all(self.run(["get", one, "-n", namespace])[0] == 0 for one in wanted):
                    break
                time.sleep(0.1)

    def record(self, record):
        """None when equal, else what was different."""
        files = found_files(record, self.carried)
        code, out, err, after = self.run(
            record["args"], record.get("stdin") or "", files, found_environment(record)
        )
        if record.get("files_after") and not record.get("alone"):
            self.carried[record["group"]] = {
                name: after[name] for name in record["files_after"] if name in after
            }
        if record.get("help_trimmed"):
            out, err = without_help(out), without_help(err)
        wrong = []
        if code != record["exit"]:
            wrong.append(f"exit {code}, recorded {record['exit']}")
        for name, ours in (("stdout", out), ("stderr", err)):
            recorded = record[name]
            if record.get("help_trimmed"):
                recorded = without_help(recorded)
            if not same(ours, recorded):
                wrong.append(f"{name}:\n--- recorded\n{masked(recorded)}\n+++ ours\n{masked(ours)}")
        for name, recorded in (record.get("files_after") or {}).items():
            if masked(after.get(name, "")) != masked(recorded):
                wrong.append(f"{name}:\n--- recorded\n{recorded}\n+++ ours\n{after.get(name)}")
        return "\n".join(wrong) or None


SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: nobody
"""
CONTROLLERS = (
    "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller"
)


def api_server(root):
    """As the recording had it: no node, no workload controllers, no scheduler for these pods."""
    from tests.support.parts.sampan_process import SampanProcess

    root.mkdir(parents=True, exist_ok=True)
    (root / "scheduler.yaml").write_text(SCHEDULER)
    flags = (
        "--kubernetes-version", "1.35", "--runtime", "none", "--store", "memory:",
        "--controllers", CONTROLLERS,
    )  # fmt: skip
    cluster = SampanProcess(root, *flags, "--scheduler-config", str(root / "scheduler.yaml"))
    return cluster.up()


def groups():
    return list(dict.fromkeys(record["group"] for record in RECORDS))


def replay_all(replay, wanted=(), verbose=False):
    """{group: [equal, all, [(seq, args, difference)]]}"""
    results = {}
    names = groups()
    run = set(wanted or names)
    if run & NEEDS_READ:
        run.add("read")
    for record in RECORDS:
        group = record["group"]
        if group not in run:
            continue
        tally = results.setdefault(group, [0, 0, []])
        tally[1] += 1
        try:
            difference = replay.record(record)
        except SystemExit as error:
            difference = f"SystemExit {error}"
        except Exception as error:
            import traceback

            difference = f"TRACEBACK {error!r}\n" + (traceback.format_exc() if verbose else "")
        if difference is None:
            tally[0] += 1
        else:
            tally[2].append((record["seq"], record["args"], difference))
    return results


if __name__ == "__main__":
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    verbose = "-v" in sys.argv
    root = Path(tempfile.mkdtemp(prefix="replay-cluster-"))
    cluster = api_server(root)
    try:
        replay = Replay(cluster.kubeconfig, root / "home")
        replay.prepare()
        for group, (equal, total, different) in replay_all(replay, wanted, verbose).items():
            for seq, args, text in different if verbose else ():
                print(f"#{seq} {group} $ {' '.join(args)}\n{text}\n")
            print(f"== {group}: {equal}/{total}")
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
