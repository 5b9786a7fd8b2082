"""`edit`: an object in the user's editor.

Job: write it to a file, run the editor, send what changed; a refusal comes back into the file.
"""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Quiet, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, documents, three_way, writing
from sampan.cli.objects.selection import Info
from sampan.cli.output import unknown_format, without_managed_fields
from sampan.cli.session import Session

HEADER = (
    "# Please edit the object below. Lines beginning with a '#' will be ignored,\n"
    "# and an empty file will abort the edit. If an error occurs while saving this file will be\n"
    "# reopened with the relevant failures.\n#\n"
)
CANCELLED = "Edit cancelled, no changes made."


def run(session: Session, values: Values) -> int | None:
    form = values.text("output") or "yaml"
    if form not in ("json", "yaml", "kyaml"):
        raise unknown_format(form, ("json", "kyaml", "yaml"))
    failures: list[Exception] = []
    for found in changing.select(session, values, values.arguments):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        _edit(session, values, found, form)
    if failures:
        raise Several(failures)
    return None


def render(obj: Obj, form: str) -> str:
    obj = without_managed_fields(obj)
    if form == "json":
        from sampan.cli.printers.json_text import to_json

        return to_json(obj)
    if form == "kyaml":
        from sampan.cli.printers.kyaml_text import to_kyaml

        return HEADER + to_kyaml(obj)
    from sampan.cli.printers.yaml_text import to_yaml

    return HEADER + to_yaml(obj)


def edit_text(session: Session, text: str, form: str) -> tuple[str, Path]:
    """What the editor left, and the file that it is still in."""
    ending = "json" if form == "json" else "yaml"
    handle, name = tempfile.mkstemp(prefix="kubectl-edit-", suffix=f".{ending}")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    environment = session.io.environment
    editor = environment.get("KUBE_EDITOR") or environment.get("EDITOR") or "vi"
    try:
        try:
            has_terminal = session.io.stdout.fileno() >= 0
        except (OSError, AttributeError, ValueError):
            has_terminal = False
        done = subprocess.run(
            [*shlex.split(editor), name],
            env=environment,
            check=False,
            stdout=None if has_terminal else subprocess.PIPE,
        )
        if not has_terminal and done.stdout:
            session.write(done.stdout.decode(errors="replace"))
    except FileNotFoundError:
        Path(name).unlink()
        raise CliError(f'unable to launch the editor "{editor}"') from None
    if done.returncode:
        Path(name).unlink()
        raise CliError(f'there was a problem with the editor "{editor}"')
    return Path(name).read_text(), Path(name)


def _edit(session: Session, values: Values, info: Info, form: str) -> None:
    before = without_managed_fields(info.obj)
    original = render(before, form)
    text = original
    problem = ""
    while True:
        latest, path = edit_text(session, problem + text, form)
        if _same(latest, text):
            if problem:
                _refusal(session, path)
            path.unlink()
            session.complain(CANCELLED)
            return
        try:
            after = _parse(latest)
            if not after:
                raise CliError("the file is empty")
            _check_identity(session, before, after, path)
            obj = _send(session, values, info, before, after)
            path.unlink()
            session.print(f"{info.label} edited" if obj is not None else f"{info.label} skipped")
            return
        except (CliError, ApiError) as error:
            if isinstance(error, Quiet):
                raise
            what = f'{info.resource.qualified} "{info.name}"'
            session.complain(f"error: {what} is invalid")
            problem = _as_comment(info, error)
            text = _without_header(latest)
            path.unlink()


def _refusal(session: Session, path: Path) -> None:
    session.complain(f'A copy of your changes has been stored to "{path}"')
    raise CliError("Edit cancelled, no valid changes were saved.")


def _as_comment(info: Info, error: Exception) -> str:
    lines = f'{info.resource.qualified} "{info.name}" was not valid:\n{error}'.splitlines()
    return "".join(f"# {line}\n" for line in lines) + "#\n"


def _check_identity(session: Session, before: Obj, after: Obj, path: Path) -> None:
    def identity(obj: Obj) -> tuple[object, ...]:
        return obj.get("apiVersion"), obj.get("kind"), (obj.get("metadata") or {}).get("name")

    if identity(before) != identity(after):
        session.complain(f'A copy of your changes has been stored to "{path}"')
        raise Quiet(1, "error: At least one of apiVersion, kind and name was changed")


def _send(session: Session, values: Values, info: Info, before: Obj, after: Obj) -> Obj | None:
    from sampan.cli.objects.typed import schema

    patch = three_way.two_way_patch(schema(), before, after)
    if not patch:
        return None
    query = writing.options(
        manager=values.text("field-manager"), validation=common_flags.validation(values)
    )
    known = schema().type_of(info.resource.api_version, info.resource.kind) is not None
    if not known:
        patch = three_way.merge_patch(before, after, before)
    path = info.path + (f"/{values['subresource']}" if values.get("subresource") else "")
    return writing.patch(session, path, patch, "strategic" if known else "merge", query)


def _parse(text: str) -> Obj:
    found = documents.documents(text.encode(), "the edited file")
    if not found:
        return {}
    if not isinstance(found[0], dict):
        raise CliError("the file is not an object")
    return found[0]


def _same(one: str, two: str) -> bool:
    """Whether both say the same: comments and layout do not count."""
    try:
        return documents.documents(one.encode(), "") == documents.documents(two.encode(), "")
    except CliError:
        return _without_comments(one) == _without_comments(two)


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip()


def _without_header(text: str) -> str:
    lines = text.splitlines(keepends=True)
    while lines and lines[0].startswith("#"):
        lines.pop(0)
    return "".join(lines)


def edit_before_create(session: Session, values: Values) -> None:
    from sampan.cli.objects import selection

    for found in selection.from_files(session, values):
        if isinstance(found, Exception):
            raise found
        text = render(found.obj, "yaml")
        latest, path = edit_text(session, text, "yaml")
        path.unlink()
        if _without_comments(latest) == _without_comments(text):
            session.complain(CANCELLED)
            return
        obj = _parse(latest)
        writing.create(session, found.resource, found.namespace, obj, {})
        session.print(f"{found.resource.qualified_singular}/{obj['metadata']['name']} created")


EDIT = Command(
    "edit",
    "edit (RESOURCE/NAME | -f FILENAME) [options]",
    "Edit a resource from the default editor.",
    run,
    (
        *common_flags.FILES,
        common_flags.VALIDATE,
        common_flags.SAVE_CONFIG,
        common_flags.RECORD,
        common_flags.field_manager("kubectl-edit"),
        Flag("output", short="o", usage="Output format: yaml, json or kyaml."),
        switch("output-patch", "Output the patch if the resource is edited."),
        switch("show-managed-fields", "Keep the managedFields."),
        Flag("subresource", usage="Edit this subresource."),
        switch("windows-line-endings", "Accepted; only for Windows."),
    ),
)
