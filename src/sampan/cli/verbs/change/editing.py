"""An edit: objects in a file, the user's editor, what becomes of what he left.

Job: write the file, run the editor, check and send what changed; a refusal comes back into the file.
Invariant: changes that could not be sent are never lost: the file stays, and is named.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

from sampan.api import strict_yaml
from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.errors import CliError, Quiet
from sampan.cli.objects.documents import documents
from sampan.cli.objects.infos import Info, map_object
from sampan.cli.objects.manifests import Manifest
from sampan.cli.objects.validation import problem_of
from sampan.cli.output import without_managed_fields
from sampan.cli.session import Session

HEADER = (
    "# Please edit the object below. Lines beginning with a '#' will be ignored,\n"
    "# and an empty file will abort the edit. If an error occurs while saving this file will be\n"
    "# reopened with the relevant failures.\n#\n"
)
APPLIED_HEADER = (
    "# Please edit the 'last-applied-configuration' annotations below.\n"
    "# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.\n#\n"
)
FORMS = ("json", "kyaml", "yaml")
Reason = tuple[str, list[str]]  # what is wrong, and why
Send = Callable[[Info, Info], str]  # before, after → the word for what was done


class Editing:
    """The loop around the editor; `send` does what the verb is for with one changed object."""

    def __init__(self, session: Session, form: str, send: Send, *, header: str = HEADER) -> None:
        self._session, self._form, self._send, self._header = session, form, send, header
        self.validates = True
        self._reasons: list[Reason] = []
        self._refused, self._retryable, self._missing = 0, 0, 0

    def edit(self, infos: list[Info]) -> None:
        original = self._rendered(infos)
        text, edited, file, is_wrong = original, "", "", False
        while True:
            before = edited
            new, path = self._launch(self._head() + text, file)
            if is_wrong and stripped(before) == stripped(new):
                raise self._kept(CliError("Edit cancelled, no valid changes were saved."), path)
            _remove(file)
            edited, file, self._reasons = new, path, []
            why = self._invalid(edited) if self.validates else ""
            if why:
                self._refuse_whole(infos[0], why)
                text, is_wrong = without_comments(edited), True
                continue
            if stripped(original) == stripped(edited):
                _remove(file)
                self._session.complain("Edit cancelled, no changes made.")
                return
            if not _has_lines(edited):
                _remove(file)
                self._session.complain("Edit cancelled, saved file was empty.")
                return
            try:
                after = self._infos_of(edited)
            except CliError as error:
                self._reasons = [(f"The edited file had a syntax error: {error}", [])]
                text, is_wrong = without_comments(edited), True
                continue
            if self._is_done(infos, after, file):
                return
            text, is_wrong = without_comments(edited), True

    def _rendered(self, infos: list[Info]) -> str:
        objects = [without_managed_fields(info.obj) for info in infos]
        whole: Obj = {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": objects}
        return render(objects[0] if len(objects) == 1 else whole, self._form)

    def _head(self) -> str:
        if self._form == "json":
            return ""
        lines = [self._header]
        for head, others in self._reasons:
            lines.append(f"# {_hashed(head)}{':' if others else ''}\n")
            lines += [f"# * {_hashed(other)}\n" for other in others]
            lines.append("#\n")
        return "".join(lines)

    def _launch(self, text: str, previous: str) -> tuple[str, str]:
        try:
            return edited_text(self._session, text, self._form)
        except CliError as error:
            raise self._kept(error, previous) from error

    def _kept(self, error: CliError, path: str) -> CliError:
        if path and os.path.exists(path):
            self._session.complain(f'A copy of your changes has been stored to "{path}"')
        return error

    def _invalid(self, edited: str) -> str:
        try:
            value = strict_yaml.first_document(without_comments(edited))
        except ValueError as error:
            return str(error)
        return problem_of(value)

    def _refuse_whole(self, info: Info, why: str) -> None:
        value = '"The edited file failed validation"'
        self._reasons = [
            (f'{info.resource.qualified} "{info.name}" was not valid',
             [f"<nil>: Invalid value: {value}: {why}"])
        ]  # fmt: skip
        self._session.complain(f'error: {info.resource.qualified} "{info.name}" is invalid')

    def _infos_of(self, edited: str) -> list[Info]:
        found: list[Info] = []
        for obj in documents(edited.encode(), "edited-file"):
            for one in map_object(self._session, Manifest(obj, "edited-file")):
                if isinstance(one, Exception):
                    raise one
                found.append(one)
        return found

    def _is_done(self, infos: list[Info], after: list[Info], file: str) -> bool:
        """False: the editor is opened again."""
        self._refused = self._retryable = self._missing = 0
        try:
            for changed in after:
                self._one(_original(infos, changed), changed)
        except CliError as error:
            raise self._kept(error, file) from error
        if self._retryable:
            self._session.complain(
                f"You can run `{self._session.program} replace -f {file}` to try this update again."
            )
            raise Quiet(1)
        if self._missing:
            self._session.complain(
                f'The edits you made on deleted resources have been saved to "{file}"'
            )
            raise Quiet(1)
        if not self._refused:
            _remove(file)
        return not self._refused

    def _one(self, before: Info, after: Info) -> None:
        if without_managed_fields(before.obj) == without_managed_fields(after.obj):
            self._session.print(f"{after.label} skipped")
            return
        try:
            word = self._send(before, after)
        except ApiError as error:
            self._note(error, after)
            return
        self._session.print(f"{after.label} {word}")

    def _note(self, error: ApiError, info: Info) -> None:
        what = f'{info.resource.qualified} "{info.name}"'
        if error.reason == "Invalid":
            self._refused += 1
            causes = [
                f"{cause.get('field') or ''}: {cause.get('message')}"
                for cause in error.details.get("causes") or []
            ]
            self._reasons.append((f"{what} was not valid", causes))
            self._session.complain(f"error: {what} is invalid")
        elif error.code == 404:
            self._missing += 1
            self._session.complain(f"error: {what} could not be found on the server")
        else:
            self._retryable += 1
            self._session.complain(f"error: {what} could not be patched: {error.message}")


def _original(infos: list[Info], changed: Info) -> Info:
    uid = (changed.obj.get("metadata") or {}).get("uid")
    for info in infos:
        if (info.obj.get("metadata") or {}).get("uid") == uid and (
            uid or info.name == changed.name
        ):
            return info
    raise CliError(f"no original object found for {changed.label}")


def render(obj: Obj, form: str) -> str:
    if form == "json":
        from sampan.cli.printers.json_text import to_json

        return to_json(obj)
    if form == "kyaml":
        from sampan.cli.printers.kyaml_text import to_kyaml

        return to_kyaml(obj)
    from sampan.cli.printers.yaml_text import to_yaml

    return to_yaml(obj)


def edited_text(session: Session, text: str, form: str) -> tuple[str, str]:
    """What the editor left, and the file that it is still in."""
    ending = "json" if form == "json" else "yaml"
    handle, name = tempfile.mkstemp(prefix=f"{session.program}-edit-", suffix=f".{ending}")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    environment = session.io.environment
    editor = environment.get("KUBE_EDITOR") or environment.get("EDITOR") or "vi"
    try:
        session.io.stdout.flush()
        has_terminal = _has_terminal(session)
        done = subprocess.run(
            _command(editor, name, environment), env=environment, check=False,
            stdout=None if has_terminal else subprocess.PIPE,
        )  # fmt: skip
        if not has_terminal and done.stdout:
            session.write(done.stdout.decode(errors="replace"))
    except (FileNotFoundError, PermissionError):
        _remove(name)
        raise CliError(f'unable to launch the editor "{editor}"') from None
    if done.returncode:
        _remove(name)
        raise CliError(f'there was a problem with the editor "{editor}"')
    with open(name) as file:
        return file.read(), name


def _command(editor: str, path: str, environment: dict[str, str]) -> list[str]:
    """Words, or a line for the shell where it has quotes."""
    if any(letter in editor for letter in "\"'\\"):
        shell = environment.get("SHELL") or "/bin/bash"
        return [shell, "-c", f'{editor} "{path}"']
    return [*editor.split(" "), path]


def _has_terminal(session: Session) -> bool:
    try:
        return session.io.stdout.fileno() >= 0
    except (OSError, AttributeError, ValueError):
        return False


def _remove(path: str) -> None:
    if path and os.path.exists(path):
        os.unlink(path)


def stripped(text: str) -> Any:
    """What it says, without comments and layout; the text where it is no YAML."""
    try:
        return json.dumps(strict_yaml.first_document(text), sort_keys=True)
    except ValueError:
        return without_comments(text)


def without_comments(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line for line in lines if not line.strip().startswith("#"))


def _has_lines(text: str) -> bool:
    return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())


def _hashed(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(
        [lines[0], *(line if line.startswith("#") else f"# {line}" for line in lines[1:])]
    )
