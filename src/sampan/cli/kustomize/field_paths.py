"""Fields by path: where a field spec leads inside of an object.

Job: change what is at the end of a path through maps and lists; make what is missing, where told.
Invariant: a list on the way is every item of it.
"""

from collections.abc import Callable
from typing import Any

from sampan.cli.errors import CliError
from sampan.cli.kustomize.resource import Gvk
from sampan.core.fast_dataclass import dataclass

Change = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class FieldSpec:
    path: str
    gvk: Gvk = Gvk()
    create: bool = False

    def meets(self, gvk: Gvk) -> bool:
        return gvk.is_selected_by(self.gvk)


def split(path: str, separator: str = "/") -> list[str]:
    """A backslash before a separator makes it a letter of the name."""
    marked = path.strip(separator).replace(f"\\{separator}", "\0")
    return [part.replace("\0", separator) for part in marked.split(separator)]


def change_at(
    obj: Any, spec: FieldSpec, change: Change, made: Callable[[], Any] | None = None
) -> None:
    """`made`: what stands there first, where the spec says that a missing field is made."""
    _change(obj, split(spec.path), change, made if spec.create else None)


def _change(at: Any, path: list[str], change: Change, made: Callable[[], Any] | None) -> None:
    if at is None:
        return
    if isinstance(at, list):
        for item in at:
            _change(item, path, change, made)
        return
    if not isinstance(at, dict):
        raise CliError(f"considering field '{'/'.join(path)}': expected sequence or mapping node")
    name, is_last = path[0].removesuffix("[]"), len(path) == 1
    is_list = name != path[0]
    if at.get(name) is None:
        if made is None or is_list:
            return
        at[name] = made() if is_last else {}
    if is_last:
        at[name] = change(at[name])
    else:
        _change(at[name], path[1:], change, made)
