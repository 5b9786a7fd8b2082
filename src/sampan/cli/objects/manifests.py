"""Manifests: files, directories, standard input, URLs, kustomizations.

Job: what -f and -k name as sources, in order; each gives its objects when it is read.
Invariant: a name that leads nowhere is told, with all others, before anything is read.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Values
from sampan.cli.objects.documents import documents
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

EXTENSIONS = (".json", ".yaml", ".yml")
_ATTEMPTS = 3  # to fetch a URL


@dataclass(frozen=True, slots=True)
class Manifest:
    obj: Any
    source: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file, a URL, standard input or a kustomization; reading it may raise a CliError."""

    name: str
    read: Callable[[], Iterator[Any]]
    is_alone: bool = True  # named by itself, and no stream

    def manifests(self) -> Iterator[Manifest]:
        for obj in self.read():
            yield Manifest(obj, self.name)


def has_files(values: Values) -> bool:
    return bool(values["filename"] or values.get("kustomize"))


def check(values: Values) -> None:
    problems = []
    if values["filename"] and values.get("kustomize"):
        problems.append(CliError("only one of -f or -k can be specified"))
    if values.get("kustomize") and values.get("recursive"):
        problems.append(CliError("the -k flag can't be used with -f or -R"))
    if problems:
        raise Several(list(problems))


def require(values: Values) -> None:
    if not has_files(values):
        raise CliError("must specify one of -f and -k")


def sources(session: Session, values: Values, *, stdin_in_use: bool = False) -> list[Source]:
    """Raises Several with every name that leads nowhere."""
    check(values)
    if values.get("kustomize"):
        return [_kustomization(session, values.text("kustomize"))]
    found: list[Source] = []
    failures: list[Exception] = []
    has_stdin = stdin_in_use
    for name in values["filename"]:
        if name == "-":
            if has_stdin:
                failures.append(CliError("standard input cannot be used for multiple arguments"))
            has_stdin = True
            found.append(
                Source("STDIN", lambda: documents(session.io.stdin.read(), "STDIN"), False)
            )
        elif name.startswith(("http://", "https://")):
            found.append(_url(name))
        else:
            try:
                is_folder = os.path.isdir(name)
                found += [
                    _file(path, not is_folder)
                    for path in _paths(name, bool(values.get("recursive")))
                ]
            except Several as several:
                failures += several.failures
            if not found and not failures:
                failures.append(
                    CliError(
                        f"error reading [{name}]: recognized file extensions are [.json .yaml .yml]"
                    )
                )
    if failures:
        raise Several(failures)
    return found


def _kustomization(session: Session, folder: str) -> Source:
    def read() -> Iterator[Any]:
        from sampan.cli.kustomize.build import build

        yield from build(folder, session.complain)

    return Source(folder, read)


def _url(url: str) -> Source:
    return Source(url, lambda: documents(_fetch(url), url))


def _file(path: str, is_alone: bool) -> Source:
    def read() -> Iterator[Any]:
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise CliError(f"open {path}: {(error.strerror or str(error)).lower()}") from error
        yield from documents(content, path)

    return Source(path, read, is_alone)


def _paths(name: str, recursive: bool) -> list[str]:
    matches = [name]
    if not os.path.lexists(name):
        import glob

        matches = sorted(glob.glob(name))
        if not matches:
            raise Several([CliError(f'the path "{name}" does not exist')])
    failures: list[Exception] = []
    paths: list[str] = []
    for match in matches:
        try:
            os.stat(match)
        except FileNotFoundError:
            failures.append(CliError(f'the path "{match}" does not exist'))
        except OSError as error:
            why = f"stat {match}: {(error.strerror or str(error)).lower()}"
            failures.append(CliError(f'the path "{match}" cannot be accessed: {why}'))
        else:
            paths += _walk(match, recursive)
    if failures:
        raise Several(failures)
    return paths


def _walk(name: str, recursive: bool) -> list[str]:
    """All of a folder, in the order of names, folders and files mixed."""
    if not os.path.isdir(name):
        return [name]
    try:
        entries = sorted(os.scandir(name), key=lambda entry: entry.name)
    except OSError as error:
        why = f"open {name}: {(error.strerror or str(error)).lower()}"
        raise Several([CliError(f'error reading "{name}": {why}')]) from error
    found = []
    for entry in entries:
        path = os.path.normpath(os.path.join(name, entry.name))
        if entry.is_dir(follow_symlinks=False):
            found += _walk(path, recursive) if recursive else []
        elif entry.name.endswith(EXTENSIONS):
            found.append(path)
    return found


def _fetch(url: str) -> bytes:
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with urlopen(url, timeout=30) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            if error.code < 500 or attempt == _ATTEMPTS:
                raise CliError(
                    f'unable to read URL "{url}", server reported {error.code} {error.reason}, '
                    f"status code={error.code}"
                ) from error
        except URLError as error:
            if attempt == _ATTEMPTS:
                raise CliError(f'Get "{url}": {error.reason}') from error
    raise AssertionError(url)
