"""The kit's words, each with its signature (docs/kit.md).

Job: markdown from the kit's own source: `python tools/kit_reference.py` prints it.
Invariant: what is public is in it, as it is called from a test.
"""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

HEAD = """\
# Every word of the test kit

Made from the source by `python tools/kit_reference.py > docs/kit.md`; a test keeps it true.
What it is for, with examples: docs/testkit.md. `c` is a cluster: the fixture `sampan`, or what
`sampan.testing.cluster()` gives.
"""
HERE = Path(__file__).parents[1] / "src" / "sampan" / "testing"
# (title, module, class or "" for its functions, how a test calls it, what is the kit's own)
PARTS = (
    ("A cluster for a test", "__init__.py", "", "sampan.testing.", ()),
    ("Which one", "kit/spec.py", "Spec", "cluster", ("virtual", "controller_names", "as_dict")),
    ("Objects", "kit/objects.py", "Objects", "c.", ("target", "look")),
    ("Waiting, asking, copying", "kit/cluster.py", "Cluster", "c.", ()),
    ("Time", "kit/pacing.py", "ClusterClock", "c.clock.",
     ("settle_virtually", "expect_anybody", "watches", "wait_until")),
    ("Pods", "kit/pod_handle.py", "PodHandle", "c.pods.", ()),
    ("Nodes", "kit/node_handle.py", "NodeHandle", "c.nodes.", ()),
    ("Clients of other libraries", "kit/clients.py", "Clients", "c.clients.", ()),
    ("An operator beside the test", "kit/operator_process.py", "OperatorProcess", "process.",
     ("await_watch", "end", "last_words", "check")),
    ("Webhooks", "kit/webhooks.py", "Webhook", "Webhook", ()),
    ("Chaos", "kit/chaos.py", "Chaos", "Chaos", ()),
)  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


def text() -> str:
    lines = [HEAD]
    for title, module, name, called, own in PARTS:
        tree = ast.parse((HERE / module).read_text())
        body = tree.body if not name else _class(tree, name).body
        lines.append(f"## {title}\n")
        if not called.endswith("."):
            lines += [f"    {called}({_fields(body)})\n"]
        else:
            lines += _members(body, called, own)
    return "\n".join(lines).rstrip() + "\n"


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    [found] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return found


def _fields(body: list[ast.stmt]) -> str:
    """Of a class that only holds choices."""
    fields = [
        f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"
        + (f" = {ast.unparse(node.value)}" if node.value else "")
        for node in body
        if isinstance(node, ast.AnnAssign)
    ]
    return "\n        " + ",\n        ".join(fields) + ",\n    "


def _members(body: list[ast.stmt], called: str, own: tuple[str, ...]) -> Iterator[str]:
    for node in body:
        if not isinstance(node, Function) or node.name.startswith("_") or node.name in own:
            continue
        yield f"    {_signature(node, called)}\n"
        if document := ast.get_docstring(node):
            yield (
                textwrap.fill(document, 120, break_long_words=False, break_on_hyphens=False) + "\n"
            )


def _signature(node: Function, called: str) -> str:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    given = f" → {ast.unparse(node.returns)}".replace("'", "") if node.returns else ""
    name = f"{called}{node.name}"
    if decorators & {"property", "functools.cached_property"}:
        return f"{name}{given}"
    arguments = ast.unparse(node.args).removeprefix("self").removeprefix(", ").replace('"', "'")
    begin = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    begin = "with " if "contextmanager" in decorators else begin
    return f"{begin}{name}({arguments}){given}"


if __name__ == "__main__":
    print(text(), end="")
