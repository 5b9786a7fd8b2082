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

from sampan.cmd.help_screen import CLUSTER_VERBS, FIRST, screen

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
    if arguments == ["--version"]:
        return ["version"]
    is_of_snapshot = (
        arguments[:1] == ["diff"] and arguments[1:2] and not arguments[1].startswith("-")
    )
    return ["snapshot", *arguments] if is_of_snapshot else arguments


def _found_kubeconfig() -> str:
    """Where kubectl's way leads to no kubeconfig, a cluster of `sampan up` is meant; else empty."""
    if os.environ.get("KUBECONFIG") or os.path.exists(os.path.expanduser("~/.kube/config")):
        return ""
    from sampan.cmd.chosen_cluster import found_kubeconfig

    return found_kubeconfig(os.environ)


def _complete(arguments: list[str], found: str) -> bool:
    """The verbs of the cluster, and its name; False where the client completes."""
    from sampan.cli.completion import candidates
    from sampan.cli.session import Io
    from sampan.cmd import completion

    if arguments[0] in CLUSTER_VERBS:
        answer = completion.complete(arguments, found)
    elif completion.is_cluster_named(arguments):
        answer = completion.clusters(arguments[-1].removeprefix("--name="))
    else:
        return False
    candidates.tell(Io(), answer)
    return True


def _leave(code: int) -> NoReturn:
    """At once: taking the interpreter apart takes as long as a request, and with all objects of a
    large cluster many seconds. The client's verbs leave nothing for it to do; nor does a cluster,
    whose parts have stopped."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _client(arguments: list[str], program: str, found: str = "") -> int:
    from sampan.cli.main import main as client

    is_completion = program != "kubectl" and arguments[:1] == ["__complete"] and len(arguments) > 2
    is_ours = is_completion and (
        arguments[1] in CLUSTER_VERBS or "--name" in " ".join(arguments[-2:])
    )
    if is_ours and _complete(arguments[1:], found):
        return 0
    said = dict(FIRST)
    more = {verb: said.get(verb, "") for verb in CLUSTER_VERBS if program != "kubectl"}
    if program != "kubectl" and any(word.split("=")[0] == "--name" for word in arguments):
        from sampan.cmd.errors import CannotStart

        at = 1 if arguments[:1] == ["__complete"] else 0
        try:
            arguments = [*arguments[:at], *_with_kubeconfig(arguments[at:])]
        except CannotStart as error:
            print(f"sampan: {error}", file=sys.stderr)
            return 1
    return client(arguments, program=program, more_verbs=more, found_kubeconfig=found)


def _with_kubeconfig(arguments: list[str]) -> list[str]:
    """`--name NAME` of a cluster: before a verb of the client, or behind it where the verb has no
    flag of that name itself. It stands for the kubeconfig of that cluster."""
    from pathlib import Path

    from sampan.cli.verb_position import without_flag
    from sampan.cmd.cluster.cluster_names import data_path
    from sampan.cmd.errors import CannotStart

    rest, name = without_flag(arguments, "name")
    if not name:
        return arguments
    if any(word.split("=")[0] == "--kubeconfig" for word in rest):
        raise CannotStart("--kubeconfig and --name both say which cluster: give one")
    path = data_path("", name, os.environ, Path.cwd()) / "kubeconfig"
    if not path.exists():
        raise CannotStart(f"there is no cluster {name}: `sampan list` shows those there are")
    return [f"--kubeconfig={path}", *rest]


if __name__ == "__main__":
    sys.exit(main())
