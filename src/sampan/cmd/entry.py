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


def _run(arguments: list[str], program: str) -> tuple[int, bool]:
    """The exit code, and whether the verb was one of the client's."""
    arguments = arguments if program == "kubectl" else _in_full(arguments)
    verb = arguments[0] if arguments else ""
    if verb == "__complete":
        return _complete(arguments[1:], program if program == "kubectl" else "sampan"), True
    if program == "kubectl":
        return _client(arguments, "kubectl"), True
    if verb == "help" and arguments[1:2] and arguments[1] in CLUSTER_VERBS:
        arguments = [*arguments[1:], "--help"]
        verb = arguments[0]
    elif arguments in ([], ["help"], ["-h"], ["--help"]):
        print(screen(), end="")
        return 0, True
    # `config` is the client's, but for the word that explains the cluster's own configuration.
    is_ours = verb in CLUSTER_VERBS or arguments[:2] == ["config", "explain"]
    if is_ours:
        if verb in QUESTIONS and (found := _found_kubeconfig()):
            os.environ["KUBECONFIG"] = found
        if verb in STAYING:
            from sampan.cmd.loading import load_from_one_file

            load_from_one_file()
        from sampan.cmd import main as cluster

        return cluster.main(arguments), False
    return _client(arguments, "sampan", "" if verb == "config" else _found_kubeconfig()), True


def _in_full(arguments: list[str]) -> list[str]:
    """`diff NAME` is a snapshot's: kubectl's takes nothing but flags."""
    is_of_snapshot = (
        arguments[:1] == ["diff"] and arguments[1:2] and not arguments[1].startswith("-")
    )
    return ["snapshot", *arguments] if is_of_snapshot else arguments


def _found_kubeconfig() -> str:
    """Where kubectl's way leads to no kubeconfig, a cluster of `sampan up` is meant; else empty."""
    if os.environ.get("KUBECONFIG") or os.path.exists(os.path.expanduser("~/.kube/config")):
        return ""
    from pathlib import Path

    from sampan.cmd.cluster.cluster_names import DATA_DIR, NAME, data_path
    from sampan.cmd.errors import CannotStart

    given, name = os.environ.get(DATA_DIR, ""), os.environ.get(NAME, "")
    with contextlib.suppress(CannotStart):  # the verb says so, where it needs it
        path = data_path(given, name, os.environ, Path.cwd()) / "kubeconfig"
        if path.exists():
            return str(path)
    return ""


def _complete(arguments: list[str], program: str) -> int:
    """For the shells: one candidate per line."""
    from sampan.cli.completing import candidates
    from sampan.cli.flags import parse
    from sampan.cli.session import GLOBAL_FLAGS, Io, Session

    session = Session(program, program, Io())
    session.values = parse(GLOBAL_FLAGS, [])
    try:
        for word in candidates(session, arguments, () if program == "kubectl" else CLUSTER_VERBS):
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


def _client(arguments: list[str], program: str, found_kubeconfig: str = "") -> int:
    from sampan.cli.main import main as client

    more = () if program == "kubectl" else CLUSTER_VERBS
    return client(arguments, program=program, more_verbs=more, found_kubeconfig=found_kubeconfig)


if __name__ == "__main__":
    sys.exit(main())
