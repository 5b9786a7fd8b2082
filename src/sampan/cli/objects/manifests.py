"""Manifests: files, directories, standard input, URLs, kustomizations.

Job: read what -f and -k name into objects, in order, each with where it came from.
Invariant: a file that cannot be read or parsed is named in the message.
"""

import os
from collections.abc import Iterator
from typing import Any

from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects.documents import documents
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

EXTENSIONS = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Manifest:
    obj: Any
    source: str


def has_files(values: Values) -> bool:
    return bool(values["filename"] or values["kustomize"])


def check(values: Values) -> None:
    if values["filename"] and values["kustomize"]:
        raise CliError("only one of -f or -k can be specified")


def require(values: Values) -> None:
    check(values)
    if not has_files(values):
        raise CliError("must specify one of -f and -k")


def read(session: Session, values: Values) -> Iterator[Manifest]:
    check(values)
    if values["kustomize"]:
        from sampan.cli.objects.kustomization import build

        folder = values.text("kustomize")
        for obj in build(folder):
            yield from _expand(obj, folder)
        return
    for name in values["filename"]:
        for source, content in _contents(session, name, bool(values["recursive"])):
            for obj in documents(content, source):
                yield from _expand(obj, source)


def _contents(session: Session, name: str, recursive: bool) -> Iterator[tuple[str, bytes]]:
    if name == "-":
        yield "STDIN", session.io.stdin.read()
    elif name.startswith(("http://", "https://")):
        yield name, _fetch(name)
    else:
        for path in _paths(name, recursive):
            try:
                with open(path, "rb") as file:
                    content = file.read()
            except OSError as error:
                text = (error.strerror or str(error)).lower()
                raise CliError(f"open {path}: {text}") from error
            yield path, content


def _paths(name: str, recursive: bool) -> list[str]:
    matches = [name]
    if not os.path.exists(name) and any(letter in name for letter in "*?["):
        import glob

        matches = sorted(glob.glob(name))
    if not matches or not os.path.exists(matches[0]):
        raise CliError(f'the path "{name}" does not exist')
    paths = [path for match in matches for path in _walk(match, recursive)]
    if not paths:
        raise CliError(f"error reading [{name}]: recognized file extensions are [.json .yaml .yml]")
    return paths


def _walk(name: str, recursive: bool) -> list[str]:
    if not os.path.isdir(name):
        return [name]
    found = []
    for folder, folders, files in os.walk(name):
        folders.sort()
        found += [os.path.join(folder, file) for file in sorted(files) if file.endswith(EXTENSIONS)]
        if not recursive:
            break
    return found


def _fetch(url: str) -> bytes:
    from urllib.error import URLError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=30) as answer:
            return bytes(answer.read())
    except URLError as error:
        raise CliError(f'unable to read URL "{url}", {error.reason}') from error


def _expand(obj: Any, source: str) -> Iterator[Manifest]:
    """The items of a list, each by itself."""
    if isinstance(obj, dict) and isinstance(obj.get("items"), list):
        kind = str(obj.get("kind") or "")
        if kind.endswith("List"):
            for item in obj["items"]:
                yield from _expand(item, source)
            return
    yield Manifest(obj, source)
