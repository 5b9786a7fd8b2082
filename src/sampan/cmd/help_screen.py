"""What `sampan` alone, `sampan help` and `sampan --help` show: ten verbs first, then all of them.

Job: the table of the cluster's own verbs in groups, and the screen made of it and the client's.
Invariant: every verb is on the screen; nothing of the cluster or of a verb is imported for it.
"""

from sampan.version import KUBERNETES_VERSION

FIRST = (
    ("up", "start a cluster; `--detach --use`: in the background, and kubectl's from now on"),
    ("run", "run an image; `sampan run hello` needs no internet"),
    ("get", "list objects: `sampan get pods -A -w`"),
    ("apply", "create or change what files say: `sampan apply -f FILE`"),
    ("describe", "one object in full, with its events"),
    ("logs", "what a container wrote: `sampan logs -f hello`"),
    ("why", "why an object is not as it should be, and what would help"),
    ("trace", "each step of a pod's way, and how long it took"),
    ("status", "what runs: address, nodes, pods, memory, warnings"),
    ("down", "stop the cluster; `sampan reset` removes it"),
)
GROUPS = (
    ("A cluster", ("up", "down", "reset", "list", "status", "log", "kubeconfig", "version")),
    ("What is in it", (
        "why", "trace", "tour", "ui", "docs", "schedule", "image", "snapshot", "fork", "lab",
        "clock", "testserver", "gates", "diff-version",
    )),
    ("The machine", ("doctor", "node", "service", "upgrade")),
    ("Nodes and other parts, as processes of their own", (
        "join", "token", "kubelet", "service-proxy", "certs", "apiserver", "scheduler",
        "controllers", "driver",
    )),
)  # fmt: skip
CLUSTER_VERBS = tuple(verb for _, verbs in GROUPS for verb in verbs)


def screen() -> str:
    from sampan.cli import catalog

    width = max(len(verb) for verb, _ in FIRST)
    lines = [f"A Kubernetes ({KUBERNETES_VERSION}) you can pip install.", "", "Start here:"]
    lines += [f"  {verb:<{width}}   {text}" for verb, text in FIRST]
    for title, verbs in (*GROUPS, ("As kubectl has them", tuple(catalog.names()))):
        lines += ["", f"{title}:", *_wrapped(" ".join(verbs))]
    lines += [
        "",
        "`sampan VERB --help` explains a verb, with examples; `sampan help` is this page.",
    ]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text, 90, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
