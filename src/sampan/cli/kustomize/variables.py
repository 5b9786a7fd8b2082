"""`vars` of a kustomization: a value of one object, written where others say $(NAME).

Job: find each variable's object when its kustomization is done; write the values at the very end,
    when names are what they will be.
Invariant: what refers to nothing stays as it is written; `$$` is a `$`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.kustomize.field_paths import FieldSpec, change_at
from sampan.cli.kustomize.replacements import DEFAULT_PATH, value_at
from sampan.cli.kustomize.resource import Gvk, Id, Resource, gvk_of
from sampan.core.fast_dataclass import dataclass

ANNOTATIONS = "metadata/annotations"  # which upstream writes anew at the end, as text


@dataclass(frozen=True, slots=True)
class Var:
    name: str
    gvk: Gvk
    object_name: str
    namespace: str
    path: str

    def __str__(self) -> str:
        gvk = self.gvk
        kind = f"{gvk.kind or '[noKind]'}.{gvk.version or '[noVer]'}.{gvk.group or '[noGrp]'}"
        return f"{{{self.name} {kind} {{{self.path}}}}}"


class Variables:
    """Of a kustomization and those below it."""

    def __init__(self) -> None:
        self._vars: dict[str, tuple[Var, Resource | None]] = {}

    def add(self, entries: Sequence[Obj], resources: Sequence[Resource]) -> None:
        """Raises CliError."""
        told = " ".join(_as_written(entry) for entry in entries)
        for entry in entries:
            var = _var_of(entry)
            found = [each for each in resources if _is_meant(var, each)]
            if len(found) > 1:
                raise CliError(
                    f"merging vars [{told}]: found {len(found)} resId matches for var "
                    f"{replace(var, path=_path_in(entry))} "
                    "(unable to disambiguate)"
                )
            if var.name in self._vars:
                raise CliError(f"merging vars [{told}]: var '{var.name}' already encountered")
            self._vars[var.name] = var, found[0] if found else None

    def add_all(self, other: "Variables") -> None:
        """Raises CliError."""
        for name, pair in other._vars.items():
            if name in self._vars:
                raise CliError(f"var '{name}' already encountered")
            self._vars[name] = pair

    def resolve(self, resources: Sequence[Resource], specs: Iterable[FieldSpec]) -> None:
        """Raises CliError."""
        if not self._vars:
            return
        values = {
            name: _value_of(*self._vars[name], resources)
            for name in sorted(self._vars)
        }  # fmt: skip
        for resource in resources:
            for spec in specs:
                if spec.meets(resource.gvk):
                    _write(resource, spec, values)


def _write(resource: Resource, spec: FieldSpec, values: Mapping[str, Any]) -> None:
    try:
        change_at(resource.obj, spec, partial(_replaced, values, spec))
    except CliError as error:
        last = spec.path.rpartition("/")[2]
        raise CliError(
            f"considering field '{spec.path}' of object {resource.id}: visit traversal on path: "
            f"[{last}]: {error}"
        ) from error


def _var_of(entry: Obj) -> Var:
    if unknown := sorted(set(entry) - {"name", "objref", "fieldref"}):
        raise CliError(f'invalid Kustomization: json: unknown field "{unknown[0]}"')
    reference = entry.get("objref") or {}
    path = _path_in(entry) or DEFAULT_PATH
    return Var(
        str(entry.get("name") or ""), gvk_of(reference), str(reference.get("name") or ""),
        str(reference.get("namespace") or ""), str(path),
    )  # fmt: skip


def _as_written(entry: Obj) -> str:
    """As Go prints what it has read: the apiVersion is not taken apart yet."""
    reference = entry.get("objref") or {}
    written = {name: value for name, value in reference.items() if name != "apiVersion"}
    name = str(entry.get("name") or "")
    return str(Var(name, gvk_of(written), "", "", _path_in(entry)))


def _path_in(entry: Obj) -> str:
    field = entry.get("fieldref") or {}
    return str(field.get("fieldPath") or field.get("fieldpath") or "")


def _is_meant(var: Var, resource: Resource) -> bool:
    wanted = Id(var.gvk, var.object_name, var.namespace)
    by_place = bool(var.namespace) or wanted.is_cluster_scoped
    return any(
        one.name == var.object_name
        and one.gvk == var.gvk
        and (not by_place or one.effective_namespace == wanted.effective_namespace)
        for one in resource.ids
    )


def _value_of(var: Var, resource: Resource | None, resources: Sequence[Resource]) -> Any:
    if resource is None or not any(each is resource for each in resources):
        raise CliError(f"var '{var}' cannot be mapped to a field in the set of known resources")
    found = value_at(resource.obj, var.path)
    if found is None:
        raise CliError(f"field specified in var '{var}' not found in corresponding resource")
    return found


def _replaced(values: Mapping[str, Any], spec: FieldSpec, at: Any) -> Any:
    match at:
        case str():
            return expanded(at, values)
        case dict():
            plain = spec.path == ANNOTATIONS
            return {
                key: _text_or(expanded(value, values), plain) if isinstance(value, str) else value
                for key, value in at.items()
            }
        case list():
            if not all(isinstance(item, str) for item in at):
                raise CliError("invalid value type expect a string")
            return [expanded(item, values) for item in at]
    return at


def _text_or(value: Any, plain: bool) -> Any:
    return _as_text(value) if plain else value


def expanded(text: str, values: Mapping[str, Any]) -> Any:
    """A text that is one reference and nothing else gets the value as it is."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        next_at = text.find("$", at)
        if next_at < 0 or next_at + 1 >= len(text):
            break
        parts.append(text[at:next_at])
        following = text[next_at + 1]
        end = text.find(")", next_at + 2) if following == "(" else -1
        if end < 0:
            parts.append("$" if following == "$" else f"${following}")
            at = next_at + 2
            continue
        name = text[next_at + 2 : end]
        value = values.get(name)
        known = isinstance(value, str | int | float)
        if known and (next_at, end) == (0, len(text) - 1):
            return value
        parts.append(_as_text(value) if known else f"$({name})")
        at = end + 1
    return "".join(parts) + text[at:]


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
