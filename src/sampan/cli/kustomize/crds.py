"""Definitions of `crds`: which fields of custom kinds name others, or are labels.

Job: files of OpenAPI definitions → field specs. Pure.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj

_X = "x-kubernetes-"
_REFERENCE = f"{_X}object-ref-"


def configuration_of(definitions: Obj) -> Obj:
    """As a file of `configurations` would say it."""
    found: Obj = {"commonAnnotations": [], "commonLabels": [], "namePrefix": [],
                  "nameReference": []}  # fmt: skip
    for name in definitions:
        properties = _properties(definitions, name)
        if {"kind", "apiVersion", "metadata"} <= set(properties):
            kind = name.rpartition(".")[2]
            for path, entry in _fields(definitions, name, (), ()):
                _add(found, kind, path, entry)
    return found


def _properties(definitions: Obj, name: str) -> Obj:
    schema = (definitions.get(name) or {}).get("Schema") or {}
    properties: Obj = schema.get("properties") or {}
    return properties


def _fields(
    definitions: Obj, name: str, path: tuple[str, ...], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Obj]]:
    for field, entry in _properties(definitions, name).items():
        yield (*path, field), entry
        below = str(entry.get("$ref") or "")
        if below and below not in above:
            yield from _fields(definitions, below, (*path, field), (*above, name))


def _add(found: Obj, kind: str, path: tuple[str, ...], entry: Obj) -> None:
    for word, section in (("annotation", "commonAnnotations"), ("label-selector", "commonLabels"),
                          ("identity", "namePrefix")):  # fmt: skip
        if f"{_X}{word}" in entry:
            found[section].append({"kind": kind, "path": "/".join(path)})
    version, named = entry.get(f"{_REFERENCE}api-version"), entry.get(f"{_REFERENCE}kind")
    if version is not None and named is not None:
        key = entry.get(f"{_REFERENCE}name-key") or "name"
        spec = {"kind": kind, "path": "/".join((*path, key))}
        found["nameReference"].append({"kind": named, "version": version, "fieldSpecs": [spec]})
