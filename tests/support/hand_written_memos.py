"""Finds memos that are bounded by hand, and caches that are globals, in a module's syntax tree.

Job: say where a module does what core/bounded.py is for. Pure.
"""

import ast
from collections.abc import Iterator

_MUTATORS = {"add", "append", "keep", "pop", "popitem", "setdefault", "update", "clear"}
_CONTAINERS = {
    *("dict", "set", "list", "OrderedDict", "defaultdict", "deque", "WeakKeyDictionary"),
    *("WeakValueDictionary", "Bounded", "Recent", "FlushedMemo", "Computed"),
}
# What a dict is emptied by: all of it, or its first.
_EMPTIES = ("{0}.clear()", "{0}.popitem(", "next(iter({0}))", "list({0})[0]", "islice({0},")

# Those that are left: the list only shrinks. A new memo is a core.bounded.Bounded.
LEFT = (
    "core/fast_dataclass.py: _copies",
    "testing/kit/launcher.py: _launchers",
)


def bounded_by_hand(tree: ast.Module) -> Iterator[str]:
    """The containers that are counted and then emptied, in whole or from their oldest end."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While):
            for counted in _counted(node.test):
                body = "\n".join(ast.unparse(step) for step in node.body)
                if any(way.format(counted) in body for way in _EMPTIES):
                    yield counted


def _counted(test: ast.expr) -> Iterator[str]:
    """Whose length is compared with a bound: `len(x) >= most`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Gt | ast.GtE | ast.Eq):
            left = node.left
            if isinstance(left, ast.Call) and ast.unparse(left.func) == "len":
                yield ast.unparse(left.args[0])


def global_caches(tree: ast.Module) -> Iterator[str]:
    """Names of a module whose containers its functions write to."""
    written: set[str] | None = None
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            if not _is_container(node.value):
                continue
            written = set(_written(tree)) if written is None else written
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name for name in map(ast.unparse, targets) if name in written)


def _is_container(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in _CONTAINERS
    return isinstance(value, ast.Dict | ast.Set | ast.List)


def _written(tree: ast.Module) -> Iterator[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for function in (node for node in ast.walk(tree) if isinstance(node, functions)):
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                yield ast.unparse(node.value)
            if isinstance(node, ast.Attribute) and node.attr in _MUTATORS:
                yield ast.unparse(node.value)
