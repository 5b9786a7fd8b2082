"""Replacements: a value of one object, copied into others.

Job: find the source and the targets by id, read and write by path, whole or a part between
    delimiters.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sampan.api.objects import Obj, annotations_of, copy_of, labels_of
from sampan.api.rules.selectors import parse_label_selector
from sampan.cli.errors import CliError
from sampan.cli.kustomize.resource import Resource
from sampan.cli.objects import documents
from sampan.core.digits import is_digits

DEFAULT_PATH = "metadata.name"


def replace(resources: Sequence[Resource], replacement: Obj) -> None:
    """Raises CliError."""
    targets = replacement.get("targets")
    given, source = replacement.get("sourceValue"), replacement.get("source")
    if (given is None and source is None) or targets is None:
        raise CliError("replacements must specify a source and at least one target")
    if given is not None and source is not None:
        raise CliError("value and resource selectors are mutually exclusive")
    value = given if source is None else _value(resources, source)
    for target in targets:
        if not target.get("select"):
            raise CliError("target must specify resources to select")
        for resource in resources:
            if _is_target(resource, target):
                _copy(resource.obj, value, target)


def _value(resources: Sequence[Resource], source: Obj) -> Any:
    found = [each for each in resources if any(one.is_selected_by(source) for one in each.ids)]
    told = _selector_text(source)
    if len(found) > 1:
        raise CliError(f"multiple matches for selector {told}")
    if not found:
        raise CliError(f"nothing selected by {told}")
    path = source.get("fieldPath") or DEFAULT_PATH
    values = [holder[key] for holder, key in _places(found[0].obj, split_path(path), create=False)]
    if not values or values[0] in (None, "", [], {}):
        named = told.removesuffix(f":{path}")
        raise CliError(f"fieldPath `{path}` is missing for replacement source {named}")
    options = source.get("options") or {}
    if not options.get("delimiter"):
        return copy_of(values[0])
    if isinstance(values[0], dict | list):
        raise CliError("delimiter option can only be used with scalar nodes")
    parts, index = _text(values[0]).split(options["delimiter"]), int(options.get("index") or 0)
    if not 0 <= index < len(parts):
        raise CliError(f"options.index {index} is out of bounds for value {_text(values[0])}")
    return parts[index]


def value_at(obj: Obj, path: str) -> Any:
    """What a path of `vars` leads to (`spec.ports[0].port`); None where there is nothing."""
    parts: list[str] = []
    for part in split_path(path):
        name, *places = part.removesuffix("]").replace("][", "[").split("[")
        if not all(map(is_digits, places)):
            return None
        parts += [name, *places]
    at: Any = obj
    for part in parts:
        if isinstance(at, list):
            at = at[int(part)] if is_digits(part) and int(part) < len(at) else None
        else:
            at = at.get(part) if isinstance(at, dict) else None
    return at


def _is_target(resource: Resource, target: Obj) -> bool:
    select, rejects = target["select"], target.get("reject") or []
    if not _fits_words(resource, select):
        return False
    if not any(one.is_selected_by(select) for one in resource.ids):
        return False
    for reject in rejects:
        has_words = reject.get("labelSelector") or reject.get("annotationSelector")
        if has_words and _fits_words(resource, reject):
            return False
        names = any(reject.get(key) for key in ("group", "version", "kind", "name", "namespace"))
        if names and any(one.is_selected_by(reject) for one in resource.ids):
            return False
    return True


def _fits_words(resource: Resource, selector: Obj) -> bool:
    labels = parse_label_selector(selector.get("labelSelector") or "")
    annotations = parse_label_selector(selector.get("annotationSelector") or "")
    obj = resource.obj
    return bool(labels.matches(labels_of(obj)) and annotations.matches(annotations_of(obj)))


def _copy(obj: Obj, value: Any, target: Obj) -> None:
    options = target.get("options") or {}
    create = bool(options.get("create"))
    for path in target.get("fieldPaths") or [DEFAULT_PATH]:
        places = list(_places(obj, split_path(path), create=create))
        if not places:
            what = "find or create" if create else "find"
            raise CliError(f'unable to {what} field "{path}" in replacement target')
        for holder, key in places:
            holder[key] = _written(holder[key], value, options)


def _written(old: Any, value: Any, options: Obj) -> Any:
    if delimiter := options.get("delimiter"):
        if isinstance(old, dict | list):
            raise CliError("delimiter option can only be used with scalar nodes")
        parts, index = _text(old).split(delimiter), int(options.get("index") or 0)
        if index < 0:
            parts = [_text(value), *parts]
        elif index >= len(parts):
            parts = [*parts, _text(value)]
        else:
            parts[index] = _text(value)
        value = delimiter.join(parts)
    if isinstance(old, dict | list) or isinstance(value, dict | list) or old is None:
        return copy_of(value)
    return _as_typed(_text(value), old)


def _as_typed(text: str, old: Any) -> Any:
    """A scalar keeps its type, where the text can be of it."""
    if isinstance(old, str):
        return text
    return documents.first_document(text.encode(), "replacement")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def split_path(path: str) -> list[str]:
    """By dots, but for those in brackets or behind a backslash."""
    parts, part, depth, escaped = [], "", 0, False
    for letter in path:
        if escaped:
            part, escaped = part + (letter if letter == "." else f"\\{letter}"), False
        elif letter == "\\":
            escaped = True
        elif letter == "." and not depth:
            parts.append(part)
            part = ""
        else:
            depth += (letter == "[") - (letter == "]")
            part += letter
    return [each for each in [*parts, part] if each]


def _places(at: Any, path: list[str], *, create: bool) -> Iterator[tuple[Any, Any]]:
    """(holder, key) of every field that the path leads to."""
    name, rest = path[0], path[1:]
    for holder, key in list(_steps(at, name, rest, create=create)):
        if not rest:
            yield holder, key
        elif isinstance(holder[key], dict | list):
            yield from _places(holder[key], rest, create=create)


def _steps(at: Any, name: str, rest: list[str], *, create: bool) -> Iterator[tuple[Any, Any]]:
    if isinstance(at, dict):
        key = name[1:-1] if name.startswith("[") and name.endswith("]") else name
        if at.get(key) is None and create:
            at[key] = ([] if _is_of_list(rest[0]) else {}) if rest else ""
        if key in at:
            yield at, key
    elif isinstance(at, list):
        yield from _items(at, name, create=create)


def _is_of_list(name: str) -> bool:
    return name == "-" or (name.startswith("[") and "=" in name)


def _items(at: list[Any], name: str, *, create: bool) -> Iterator[tuple[Any, Any]]:
    if name == "*":
        yield from ((at, number) for number in range(len(at)))
    elif name == "-" and create:
        at.append({})
        yield at, len(at) - 1
    elif is_digits(name):
        if int(name) < len(at):
            yield at, int(name)
    elif _is_of_list(name):
        key, _, wanted = name[1:-1].partition("=")
        found = [n for n, item in enumerate(at) if _has(item, key, wanted)]
        if not found and create:
            at.append({key: wanted} if key else wanted)
            found = [len(at) - 1]
        yield from ((at, number) for number in found)


def _has(item: Any, key: str, wanted: str) -> bool:
    if not key:
        return not isinstance(item, dict | list) and _text(item) == wanted
    return isinstance(item, dict) and key in item and _text(item[key]) == wanted


def _selector_text(source: Obj) -> str:
    kind = [source.get(key) or "" for key in ("kind", "version", "group")]
    words = [word or f"[no{what}]" for word, what in zip(kind, ("Kind", "Ver", "Grp"), strict=True)]
    name, namespace = source.get("name") or "[noName]", source.get("namespace") or "[noNs]"
    path = f":{source['fieldPath']}" if source.get("fieldPath") else ""
    return f"{'.'.join(words)}/{name}.{namespace}{path}"
