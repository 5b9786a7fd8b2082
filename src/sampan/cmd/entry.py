"""What the command `sampan` (and `kubectl`, and `kubectl-sampan`) does first: whose verb is it?

Job: send the words to the client (cli/) or to the cluster's own verbs (cmd/main.py).
Invariant: the client's way imports nothing of the cluster: it must start in a tenth of a second.
"""

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from sampan.cmd.help_screen import CLUSTER_VERBS, screen

LARGE = 1_000_000  # blocks of memory: some hundred pods, or nodes
# Verbs of the cluster that ask its API, as the client does.
QUESTIONS = ("why", "trace", "tour", "schedule", "ui")
STAYING = ("up", "join", "kubelet", "fork")  # that load most of sampan


def main(arguments: Sequence[str] | None = None) -> int:
    """Without arguments it is the program: its words and its name are those of the process."""
    if arguments is not None:
        return _run(list(arguments), "sampan")[0]
    gc.set_threshold(50_000)  # most commands are over before there is anything to collect
    code, is_client = _run(sys.argv[1:], os.path.basename(sys.argv[0]).removesuffix(".exe"))
    return _leave(code) if is_client or sys.getallocatedblocks() > LARGE else code


def _run(words: list[str], program: str) -> tuple[int, bool]:
    """The exit code, and whether the verb was one of the client's."""
    words = words if program == "kubectl" else _in_full(words)
    verb = words[0] if words else ""
    if verb == "__complete":
        return _complete(words[1:], program if program == "kubectl" else "sampan"), True
    if program == "kubectl":
        return _client(words, "kubectl"), True
    if verb == "help" and words[1:2] and words[1] in CLUSTER_VERBS:
        words = [*words[1:], "--help"]
        verb = words[0]
    elif words in ([], ["help"], ["-h"], ["--help"]):
        print(screen(), end="")
        return 0, True
    # `config` is the client's, but for the word that explains the cluster's own configuration.
    is_ours = verb in CLUSTER_VERBS or words[:2] == ["config", "explain"]
    if verb != "config" and (not is_ours or verb in QUESTIONS):
        _find_kubeconfig()
    if is_ours:
        if verb in STAYING:
            from sampan.cmd.loading import load_from_one_file

            load_from_one_file()
        from sampan.cmd import main as cluster

        return cluster.main(words), False
    return _client(words, "sampan"), True


def _in_full(words: list[str]) -> list[str]:
    """`diff NAME` is a snapshot's: kubectl's takes nothing but flags."""
    is_of_snapshot = words[:1] == ["diff"] and words[1:2] and not words[1].startswith("-")
    return ["snapshot", *words] if is_of_snapshot else words


def _find_kubeconfig() -> None:
    """Where kubectl's way leads to no kubeconfig, a cluster of `sampan up` is meant."""
    if os.environ.get("KUBECONFIG") or os.path.exists(os.path.expanduser("~/.kube/config")):
        return
    from pathlib import Path

    from sampan.cmd.cluster.cluster_names import DATA_DIR, NAME, data_path
    from sampan.cmd.errors import CannotStart

    given, name = os.environ.get(DATA_DIR, ""), os.environ.get(NAME, "")
    with contextlib.suppress(CannotStart):  # the verb says so, where it needs it
        path = data_path(given, name, os.environ, Path.cwd()) / "kubeconfig"
        if path.exists():
            os.environ["KUBECONFIG"] = str(path)


def _complete(words: list[str], program: str) -> int:
    """For the shells: one candidate per line."""
    from sampan.cli.completing import candidates
    from sampan.cli.flags import parse
    from sampan.cli.session import GLOBAL_FLAGS, Io, Session

    session = Session(program, program, Io())
    session.values = parse(GLOBAL_FLAGS, [])
    try:
        for word in candidates(session, words, () if program == "kubectl" else CLUSTER_VERBS):
            print(word)
    finally:
        session.close()
    return 0


def _leave(code: int) -> NoReturn:
    """At once: taking the interpreter apart takes as long as a request, and with all objects of a
    large cluster many seconds. The client's verbs leave nothing for it to do; nor does a cluster,
    whose parts have stopped."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _client(words: list[str], program: str) -> int:
    from sampan.cli.main import main as client

    more = () if program == "kubectl" else CLUSTER_VERBS
    return client(words, program=program, more_verbs=more)


if __name__ == "__main__":
    sys.exit(main())
