"""What the command `sampan` (and `kubectl`, and `kubectl-sampan`) does first: whose verb is it?

Job: send the words to the client (cli/) or to the cluster's own verbs (cmd/main.py).
Invariant: the client's way imports nothing of the cluster: it must start in a tenth of a second.
"""

import os
import sys
from collections.abc import Sequence

CLUSTER_VERBS = (
    "up", "kubelet", "token", "join", "controllers", "down", "reset", "image", "why", "schedule",
    "version",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    program = os.path.basename(sys.argv[0]) if arguments is None else "sampan"
    if program.removesuffix(".exe") == "kubectl":
        return _client(words, "kubectl")
    verb = words[0] if words else ""
    if verb in CLUSTER_VERBS or verb in ("", "-h", "--help"):
        from sampan.cmd import main as cluster

        return cluster.main(words)
    return _client(words, "sampan")


def _client(words: list[str], program: str) -> int:
    from sampan.cli.main import main as client

    return client(words, program=program)


if __name__ == "__main__":
    sys.exit(main())
