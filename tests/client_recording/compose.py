"""Commands put together from kubectl's own verbs and flags, the same ones for the same seed.

Job: ask a kubectl for its verbs and their flags; choose a verb, arguments, flags and values.
Invariant: whatever is chosen ends by itself: no watch without an end, no server that stays.
By hand: python -m tests.client_recording.compose KUBECTL SEED COUNT > commands.jsonl
"""

import json
import random
import re
import subprocess
import sys

from tests.client_recording.compose_values import (
    ARGUMENTS,
    FILES,
    FLAG_VALUES,
    KIND_VALUES,
    NEVER,
    SEVERAL,
    STDIN,
    TAKING,
    WEIGHTS,
)  # fmt: skip

_FLAG = re.compile(r"^    (?:-(\w), )?--([a-z][\w.-]*)=(.*):$", re.MULTILINE)
_CHILD = re.compile(r"^  ([a-z][\w-]*)  +\S", re.MULTILINE)


def help_of(kubectl, *path):
    done = subprocess.run([kubectl, *path, "--help"], capture_output=True, text=True, check=False)
    return done.stdout


def verbs_of(kubectl):
    """{("rollout", "status"): {flag: default}}: every command that does something."""
    found = {}
    todo = [()]
    while todo:
        path = todo.pop()
        text = help_of(kubectl, *path)
        match = re.search(r"Available Commands:\n((?:.+\n)+)", text)
        if not path:
            todo += [(name,) for name in _CHILD.findall(text.split("Usage:")[0])]
            continue
        if match and path[0] not in ("apply", "create", "cluster-info"):
            todo += [(*path, name) for name in _CHILD.findall(match.group(1))]
            continue
        if match:
            todo += [(*path, name) for name in _CHILD.findall(match.group(1))]
        found[path] = {name: default for _, name, default in _FLAG.findall(text)}
    return found


def kind_of(default):
    if default in ("true", "false"):
        return "bool"
    if default.startswith("["):
        return "list"
    if re.fullmatch(r"-?\d+", default):
        return "int"
    if re.fullmatch(r"(\d+[hms])+", default):
        return "duration"
    return "text"


class Composer:
    def __init__(self, verbs, shared, seed):
        self.verbs, self.shared, self.random = verbs, shared, random.Random(seed)
        self._paths = [path for path in sorted(verbs) if path[0] not in NEVER]
        self._weights = [
            WEIGHTS.get(" ".join(path), WEIGHTS.get(path[0], 4)) for path in self._paths
        ]

    def command(self):
        path = self.random.choices(self._paths, self._weights)[0]
        verb = " ".join(path)
        words = self._arguments(verb)
        flags = []
        names = [name for name in sorted(self.verbs[path]) if f"{verb} --{name}" not in NEVER]
        for _ in range(self.random.choices((0, 1, 2, 3), (2, 5, 4, 2))[0]):
            if names:
                flags += self._flag(verb, self.random.choice(names), self.verbs[path])
        if self.random.random() < 0.06:
            flags += self._flag(verb, self.random.choice(sorted(self.shared)), self.shared)
        flags += self._needed(verb, flags)
        rest = []
        if "--" in words:
            at = words.index("--")
            words, rest = words[:at], words[at:]
        # Flags stand anywhere, as people write them.
        for flag in flags:
            at = self.random.randint(0, len(words)) if self.random.random() < 0.3 else len(words)
            if at and at < len(words) and words[at - 1] in TAKING:
                at += 1
            words[at:at] = flag
        return {"args": [*path, *words, *rest], "stdin": self.random.choice(STDIN)}

    def _arguments(self, verb):
        makers = ARGUMENTS.get(verb) or ARGUMENTS.get(verb.split()[0]) or ([],)
        chosen = self.random.choice(makers)
        words = []
        for word in chosen:
            filled = self._filled(word)
            words += filled.split(" ") if word in SEVERAL else [filled]
        return words

    def _filled(self, word):
        """`{pool}` stands for one of its values."""
        return re.sub(
            r"\{([a-z_]+)\}",
            lambda match: self.random.choice(KIND_VALUES[match.group(1)]),
            word,
        )

    def _flag(self, verb, name, known):
        pool = FLAG_VALUES.get(f"{verb} {name}") or FLAG_VALUES.get(name)
        kind = kind_of(known[name])
        if pool is None:
            pool = KIND_VALUES[kind]
        value = self._filled(self.random.choice(pool))
        if kind == "bool" or value is None:
            return [[f"--{name}"]] if value in ("true", "") else [[f"--{name}={value}"]]
        return [[f"--{name}={value}"]] if self.random.random() < 0.8 else [[f"--{name}", value]]

    def _needed(self, verb, flags):
        """What keeps a command from waiting for ever."""
        given = {flag[0].split("=")[0] for flag in flags}
        more = []
        if verb == "delete" and "--wait" not in given and self.random.random() < 0.7:
            more.append(["--wait=false"])
        if verb == "drain":
            more.append(["--timeout=1s"])
        if verb in ("wait", "rollout status") and "--timeout" not in given:
            more.append(["--timeout=1s"])
        if verb == "delete" and "--timeout" not in given:
            more.append(["--timeout=1s"])
        return more


def composed(kubectl, seed, count):
    shared_text = subprocess.run([kubectl, "options"], capture_output=True, text=True).stdout
    shared = {name: default for _, name, default in _FLAG.findall(shared_text)}
    shared = {name: default for name, default in shared.items() if f"--{name}" not in NEVER}
    composer = Composer(verbs_of(kubectl), shared, seed)
    for _ in range(count):
        yield composer.command()


if __name__ == "__main__":
    program, seed, count = sys.argv[1:]
    print(json.dumps({"group": "composed", "files": FILES}, separators=(",", ":")))
    for one in composed(program, int(seed), int(count)):
        print(json.dumps({"group": "composed", **one}, separators=(",", ":")))
