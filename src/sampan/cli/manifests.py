"""Manifests: files, directories, standard input, URLs, kustomizations.

Job: read what -f and -k name into objects, in order, each with where it came from.
Invariant: a file that cannot be read or parsed is named in the message.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
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
        raise CliError("-k: kustomizations are not there yet")
    for name in values["filename"]:
        for source, content in _contents(session, name, bool(values["recursive"])):
            for obj in documents(content, source):
                yield from _expanded(obj, source)


def _contents(session: Session, name: str, recursive: bool) -> Iterator[tuple[str, bytes]]:
    if name == "-":
        yield "STDIN", session.io.stdin.read()
    elif name.startswith(("http://", "https://")):
        yield name, _fetched(name)
    else:
        for path in _paths(name, recursive):
            try:
                yield str(path), Path(path).read_bytes()
            except OSError as error:
                text = (error.strerror or str(error)).lower()
                raise CliError(f"open {path}: {text}") from error


def _paths(name: str, recursive: bool) -> list[str]:
    matches = [name]
    if not os.path.exists(name) and any(letter in name for letter in "*?["):
        import glob

        matches = sorted(glob.glob(name))
    if not matches or not os.path.exists(matches[0]):
        raise CliError(f'the path "{name}" does not exist')
    paths = [path for match in matches for path in _walked(match, recursive)]
    if not paths:
        raise CliError(f"error reading [{name}]: recognized file extensions are [.json .yaml .yml]")
    return paths


def _walked(name: str, recursive: bool) -> list[str]:
    if not os.path.isdir(name):
        return [name]
    found = []
    for folder, folders, files in os.walk(name):
        folders.sort()
        found += [os.path.join(folder, file) for file in sorted(files) if file.endswith(EXTENSIONS)]
        if not recursive:
            break
    return found


def _fetched(url: str) -> bytes:
    from urllib.error import URLError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=30) as answer:
            return bytes(answer.read())
    except URLError as error:
        raise CliError(f'unable to read URL "{url}", {error.reason}') from error


def documents(content: bytes, source: str) -> list[Any]:
    """All documents of one file; empty ones are none."""
    text = content.decode(errors="replace")
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _json_documents(text)
        except ValueError as error:
            raise CliError(f"error parsing {source}: {_json_complaint(text, error)}") from error
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = list(yaml.load_all(_without_tabs(text, source), _plain_loader(loader)))
    except yaml.YAMLError as error:
        raise CliError(
            f"error parsing {source}: error converting YAML to JSON: yaml: {_yaml_complaint(error)}"
        ) from error
    except UnicodeDecodeError as error:
        raise CliError(f"error parsing {source}: {error}") from error
    return [document for document in found if document is not None]


def _json_documents(text: str) -> list[Any]:
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def _json_complaint(text: str, error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip()):
        return "unexpected EOF"
    return f"invalid character or value: {error}"


def _plain_loader(base: Any) -> Any:
    """Times stay text, as JSON has none."""

    class Loader(base):  # type: ignore[misc]  # the base is chosen at run time
        yaml_implicit_resolvers: ClassVar[Any] = {
            key: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
            for key, pairs in base.yaml_implicit_resolvers.items()
        }

    return Loader


def _without_tabs(text: str, source: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("\t"):
            raise CliError(
                f"error parsing {source}: error converting YAML to JSON: yaml: line {number}: "
                "found character that cannot start any token"
            )
    return text


def _yaml_complaint(error: Any) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is not None and mark.line > 0:
        return f"line {mark.line + 1}: {problem}"
    return str(problem)


def _expanded(obj: Any, source: str) -> Iterator[Manifest]:
    """The items of a list, each by itself."""
    if isinstance(obj, dict) and isinstance(obj.get("items"), list):
        kind = str(obj.get("kind") or "")
        if kind.endswith("List"):
            for item in obj["items"]:
                yield from _expanded(item, source)
            return
    yield Manifest(obj, source)


def kind_of(obj: Obj) -> tuple[str, str]:
    return str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
