"""The same commands with kubectl and with sampan's client, each on a server of its own with
the same objects: what they print, how they end, which files and which objects they leave.

Job: run both, compare, and make the objects good again.
By hand: python -m tests.client_recording.compare KUBECTL A.conf B.conf COMMANDS.jsonl OUT.jsonl
    Both servers must have been loaded with the fixture (`--load`). The different ones are written
    to OUT.jsonl with what each client said.
"""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sampan.cli.main import main
from sampan.cli.session import Io
from tests.client_recording.fixture import Fixture
from tests.client_recording.replay import loose, masked

SECONDS = 8.0
# Verbs that change nothing on the server: its objects need no look.
READING = {
    "get", "describe", "explain", "logs", "top", "api-resources", "api-versions", "version",
    "events", "cluster-info", "config", "wait", "kustomize", "diff", "exec", "cp",
}  # fmt: skip
_CONTEXT = re.compile(r"(?m)^(- context:\n    cluster: .*\n)(?!    namespace)")


def load_client():
    """Every module, now: what is edited while this runs is not what is compared."""
    import importlib
    import pkgutil

    import sampan.cli
    import sampan.client

    for package in (sampan.cli, sampan.client):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)


class Done:
    def __init__(self, code, out, err, files):
        self.code, self.out, self.err, self.files = code, out, err, files


class Side:
    """A client, and the server it asks."""

    def __init__(self, kubeconfig, program=""):
        self.program, self.fixture = program, Fixture(kubeconfig)
        self.home = tempfile.mkdtemp(prefix="home-")
        text = Path(kubeconfig).read_text()
        self.config = Path(self.home, "admin.conf")
        self.config.write_text(text)
        self._in_namespace()

    def _in_namespace(self):
        """Commands without -n are about the fixture's namespace."""
        environment = {"KUBECONFIG": str(self.config), "HOME": self.home}
        streams = Io(io.BytesIO(), io.StringIO(), io.StringIO(), environment)
        main(["config", "set-context", "--current", "--namespace=app"], io=streams)

    def start(self, record, files):
        self.folder = tempfile.mkdtemp(prefix="replay-")
        for name, content in files.items():
            path = Path(self.folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        args = record["args"]
        config = str(self.config) if args[0] != "config" else str(Path(self.folder, "config"))
        environment = {
            "HOME": self.home, "KUBECONFIG": config, "PATH": os.environ["PATH"],
            "KUBE_EDITOR": "true", **(record.get("env") or {}),
        }  # fmt: skip
        self.streams = [tempfile.TemporaryFile() for _ in range(3)]
        self.streams[0].write((record.get("stdin") or "").encode())
        self.streams[0].seek(0)
        if self.program:
            self.process = subprocess.Popen(
                [self.program, *args], cwd=self.folder, env=environment, start_new_session=True,
                stdin=self.streams[0], stdout=self.streams[1], stderr=self.streams[2],
            )  # fmt: skip
            self.pid = self.process.pid
        else:
            self.pid = self._forked(args, environment)

    def _forked(self, args, environment):
        pid = os.fork()
        if pid:
            return pid
        os.setsid()
        os.chdir(self.folder)
        for number, stream in enumerate(self.streams):
            os.dup2(stream.fileno(), number)
        out, err = (open(number, "w", closefd=False) for number in (1, 2))
        code = 99
        try:
            os.environ.clear()
            os.environ.update(environment)
            code = main(args, io=Io(open(0, "rb", closefd=False), out, err, environment))
        except SystemExit as error:
            code = error.code
        except BaseException:
            import traceback

            err.write("TRACEBACK\n" + traceback.format_exc())
        with contextlib.suppress(OSError):
            out.flush()
            err.flush()
        os._exit(code if isinstance(code, int) else 1)

    def wait(self):
        until = time.monotonic() + SECONDS
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                break
            if time.monotonic() > until:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                code = -9
                break
            time.sleep(0.003)
        if self.program:
            self.process.returncode = code
        texts = []
        for stream in self.streams[1:]:
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace").replace(self.folder, "DIR"))
            stream.close()
        self.streams[0].close()
        files = {
            str(path.relative_to(self.folder)): path.read_text(errors="replace")
            for path in sorted(Path(self.folder).rglob("*"))
            if path.is_file()
        }
        shutil.rmtree(self.folder, ignore_errors=True)
        return Done(code, *texts, files)


_MORE = (
    (r"/tmp/home-\w+", "HOME"),
    (r"/tmp/replay-\w+", "DIR"),
    (r"0x[0-9a-f]{6,}", "ADDRESS"),
    (r"node-debugger-(\w+)-[a-z0-9]{5}", r"node-debugger-\1-RAND"),
    (
        r"(gitCommit\"?: ?|gitTreeState\"?: ?|goVersion\"?: ?|buildDate\"?: ?|compiler\"?: ?).*",
        r"\1BUILD",
    ),
    (r"differs from client version \(.*", "differs from client version"),
    (r"age: (\d+m)?[\d.]+s", "age: AGE"),
    (r"(?:[\w+/=]{64}(?:\n|\\\\n| +)|[\w+/=]{64}$)+(?:[\w+/=]{4,64})?", "CERTIFICATE"),
    (r"\b[\w+/]{200,}=*", "CERTIFICATE"),
    (r"\b(3[012]\d{3})/", "NODEPORT/"),
    (r"nodePort(\"?): 3\d{4}", r"nodePort\1: NODEPORT"),
)


def plain(text):
    text = masked(text)
    for pattern, by in _MORE:
        text = re.sub(pattern, by, text)
    return loose(text)


def without_prose(text):
    """Help is our own: of a help text only the usage line is compared."""
    if re.search(r"(?m)^Usage:$", text):
        match = re.search(r"Usage:\n  [^\n]*", text)
        return match.group() if match else text
    return text


def differences(theirs, ours, verb=""):
    wrong = []
    if verb in ("drain", "label", "annotate"):  # in any order, as Go has it
        for done in (theirs, ours):
            done.out = "\n".join(sorted(done.out.split("\n")))
    if "\npanic: " in theirs.err or theirs.err.startswith("panic: "):
        return wrong  # a fault of its own
    if theirs.code != ours.code:
        wrong.append(f"exit {theirs.code} / {ours.code}")
    for name in ("out", "err"):
        one, other = (plain(without_prose(getattr(done, name))) for done in (theirs, ours))
        if one != other:
            wrong.append(f"std{name}")
    if {k: masked(v) for k, v in theirs.files.items()} != {
        k: masked(v) for k, v in ours.files.items()
    }:
        wrong.append("files")
    return wrong


class Comparison:
    def __init__(self, kubectl, theirs, ours):
        self.sides = (Side(theirs, kubectl), Side(ours))

    def load(self):
        for side in self.sides:
            side.fixture.load()

    def run(self, record, files):
        """What is different, and both."""
        for side in self.sides:
            side.start(record, files)
        theirs, ours = (side.wait() for side in self.sides)
        wrong = differences(theirs, ours, record["args"][0])
        states = None
        if record["args"][0] not in READING:
            states = [side.fixture.state() for side in self.sides]
            if states[0] != states[1]:
                keys = [
                    key
                    for key in {*states[0], *states[1]}
                    if states[0].get(key) != states[1].get(key)
                ]
                wrong.append(f"objects {keys[:3]}")
                self.last_states = [[state.get(key) for key in keys[:3]] for state in states]
            else:
                self.last_states = None
            for side, state in zip(self.sides, states, strict=True):
                side.fixture.restore(state)
        else:
            self.last_states = None
        return wrong, theirs, ours


def compare_all(comparison, lines, out):
    shared, total, equal, timeouts = {}, 0, 0, 0
    for line in lines:
        record = json.loads(line)
        if "args" not in record:
            shared[record["group"]] = record
            continue
        files = {
            **(shared.get(record["group"], {}).get("files") or {}),
            **(record.get("files") or {}),
        }
        wrong, theirs, ours = comparison.run(record, files)
        total += 1
        equal += not wrong
        timeouts += theirs.code == -9
        if wrong:
            row = {
                **record,
                "wrong": wrong,
                "theirs": [theirs.code, theirs.out, theirs.err],
                "ours": [ours.code, ours.out, ours.err],
            }
            if "files" in wrong:
                row["files_after"] = [
                    {name: text for name, text in done.files.items() if files.get(name) != text}
                    for done in (theirs, ours)
                ]
            if comparison.last_states:
                row["states"] = comparison.last_states
            out.write(json.dumps(row) + "\n")
            out.flush()
        if total % 100 == 0:
            print(
                f"{equal} of {total} equal, {timeouts} without an end", file=sys.stderr, flush=True
            )
    print(f"{equal} of {total} equal ({100 * equal / total:.2f} %), {timeouts} without an end")


if __name__ == "__main__":
    program, theirs, ours, commands, results = sys.argv[1:]
    load_client()
    comparison = Comparison(program, theirs, ours)
    comparison.load()
    with open(results, "w") as out:
        compare_all(comparison, Path(commands).read_text().splitlines(), out)
