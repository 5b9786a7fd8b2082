"""What kubectl prints, written down: the other half of replay.py.

Job: run the commands of a file of records with a real kubectl, and write the records anew.
By hand: python tests/client_recording/record.py KUBECTL KUBECONFIG FILE.jsonl
    A record needs `group` and `args` (one without is for all of its group); `stdin`, `files`, `env`
    are what the command finds, `alone` says that the next one of its group does not find what it
    has written.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.client_recording.replay import found_environment, found_files, masked, without_help

SECONDS = 60


def recorded(kubectl, kubeconfig, record, shared, files, home):
    folder = tempfile.mkdtemp(prefix="replay-")
    try:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            if "bindir" in name and "noexec" not in name:
                path.chmod(0o755)
        environment = {
            "HOME": home, "KUBECONFIG": kubeconfig, "PATH": os.environ["PATH"],
            "KUBE_EDITOR": "true", **found_environment(record, shared),
        }  # fmt: skip
        done = subprocess.run(
            [kubectl, *record["args"]], cwd=folder, env=environment, capture_output=True,
            input=(record.get("stdin") or "").encode(), timeout=SECONDS,
        )  # fmt: skip
        after = {
            str(path.relative_to(folder)): path.read_text()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    texts = [stream.decode() for stream in (done.stdout, done.stderr)]
    return done.returncode, texts, after


def again(kubectl, kubeconfig, records):
    """Each record with what is printed today; files go on within a group."""
    carried, shared = {}, {one["group"]: one for one in records if "args" not in one}
    with tempfile.TemporaryDirectory() as home:
        for seq, record in enumerate(records, 1):
            if "args" not in record:
                yield record
                continue
            files = found_files(record, carried, shared)
            code, texts, after = recorded(kubectl, kubeconfig, record, shared, files, home)
            is_help = any(re.search(r"(?m)^Usage:$", text) for text in texts)
            if is_help:
                texts = [without_help(text) for text in texts]
            new = {
                key: value
                for key, value in record.items()
                if key not in ("help_trimmed", "files_after")
            }
            new |= {"seq": seq, "exit": code}
            new |= {"stdout": masked(texts[0]), "stderr": masked(texts[1])}
            changed = {name: text for name, text in after.items() if files.get(name) != text}
            changed |= {name: "" for name in files if name not in after}
            if is_help:
                new["help_trimmed"] = True
            if changed:
                new["files_after"] = changed
                if not record.get("alone"):
                    carried[record["group"]] = {
                        name: after[name] for name in changed if name in after
                    }
            yield new


if __name__ == "__main__":
    program, config, path = sys.argv[1:]
    lines = Path(path).read_text().splitlines()
    done = [
        json.dumps(one, separators=(",", ":"))
        for one in again(program, config, [json.loads(line) for line in lines])
    ]
    Path(path).write_text("\n".join(done) + "\n")
