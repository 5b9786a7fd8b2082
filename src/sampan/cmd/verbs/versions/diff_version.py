"""`sampan diff-version 1.35 1.37 -f FILE`: what another Kubernetes does with manifests.

Job: read manifests, ask both versions, say where they differ.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sampan.api.features import Release
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.cli.errors import CliError
from sampan.cli.objects.documents import documents
from sampan.cli.objects.infos import items_of_list
from sampan.cmd.cluster.releases import minor_of
from sampan.cmd.errors import CannotStart, reason_of
from sampan.cmd.verbs.versions.answer_differences import BREAKING, Difference, Sort, differences
from sampan.cmd.verbs.versions.version_answers import Answer, answers_of

_SUFFIXES = (".yaml", ".yml", ".json")


def run(old: str, new: str, files: Sequence[str], *, as_json: bool) -> int:
    """The exit code: 1 where something is removed or refused."""
    try:
        minors = minor_of(old), minor_of(new)
        manifests = list(read(files))
    except (CannotStart, CliError) as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 2
    first, second = (answers_of(Release(minor), manifests) for minor in minors)
    rows = [(obj, differences(*pair)) for obj, *pair in zip(manifests, first, second, strict=True)]
    if as_json:
        print(json.dumps([_row(*row) for row in rows if row[1]], indent=2))
    else:
        print("\n".join(_lines(rows, *minors)))
        print("\n".join(_summary(rows, list(zip(manifests, first, second, strict=True)))))
    breaks = any(found.sort in BREAKING for _, each in rows for found in each)
    return 1 if breaks else 0


def read(files: Iterable[str]) -> Iterator[Obj]:
    """Raises CannotStart, CliError."""
    for name in files:
        for source, content in _contents(name):
            for document in documents(content, source):
                for obj in items_of_list(document):
                    if not isinstance(obj, dict) or not obj.get("kind"):
                        raise CannotStart(f"{source}: an object without a kind")
                    yield obj


def _contents(name: str) -> Iterator[tuple[str, bytes]]:
    if name == "-":
        yield "standard input", sys.stdin.buffer.read()
        return
    path = Path(name)
    found = [path]
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES)
    for file in found:
        try:
            yield str(file), file.read_bytes()
        except OSError as error:
            raise CannotStart(f"{file}: {reason_of(error)}") from error


def _lines(rows: Sequence[tuple[Obj, list[Difference]]], old: str, new: str) -> Iterator[str]:
    words: dict[Sort, str] = {
        "removed": f"no longer served in v{new}",
        "added": f"not served in v{old}",
        "refused": f"refused by v{new}: ",
        "accepted": f"refused by v{old} only: ",
        "warning": f"warning of v{new}: ",
        "default": "",
    }
    for obj, found in rows:
        if found:
            yield _title(obj)
        for one in found:
            field = f"{one.field}: " if one.field else ""
            yield f"  {words[one.sort]}{field}{one.text}"


def _title(obj: Obj) -> str:
    inner = f" in {namespace_of(obj)}" if namespace_of(obj) else ""
    return f"{obj.get('apiVersion')} {obj.get('kind')} {name_of(obj)}{inner}"


def _summary(
    rows: Sequence[tuple[Obj, list[Difference]]], answers: Sequence[tuple[Obj, Answer, Answer]]
) -> Iterator[str]:
    counted = sum(1 for _, found in rows if found)
    yield f"of {len(rows)} objects {counted} are treated otherwise"
    for obj, first, second in answers:
        if first.code == second.code == 404:
            yield f"  not compared, nobody knows it: {_title(obj)}"
        elif not first.is_taken and not second.is_taken:
            yield f"  refused by both: {_title(obj)}: {second.message}"


def _row(obj: Obj, found: list[Difference]) -> dict[str, Any]:
    return {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "namespace": namespace_of(obj),
        "name": name_of(obj),
        "differences": [{"sort": one.sort, "field": one.field, "text": one.text} for one in found],
    }
