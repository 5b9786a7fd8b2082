"""`diff`: what an apply would change, shown by diff(1).

Job: live and would-be objects as files, compared by a program of the user's choice.
Invariant: 0: no difference, 1: some, more than 1: it could not be found out.
"""

import shlex
import subprocess
import tempfile
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Quiet, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import applying, manifests, pruning, selection, server_side, writing
from sampan.cli.objects.infos import Info
from sampan.cli.output import without_managed_fields
from sampan.cli.printers.yaml_text import to_yaml
from sampan.cli.session import Session


class DiffError(CliError):
    code = 2


class DiffUsageError(UsageError):
    code = 2


def run(session: Session, values: Values) -> int:
    try:
        if values.arguments:
            raise DiffUsageError(f"Unexpected args: [{' '.join(values.arguments)}]")
        manifests.require(values)
        return _diff(session, values)
    except (DiffError, DiffUsageError, Quiet):
        raise
    except CliError as error:
        raise DiffError(str(error)) from error
    except ApiError as error:
        raise DiffError(error.message) from error


def _diff(session: Session, values: Values) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="LIVE-") as live,
        tempfile.TemporaryDirectory(prefix="MERGED-") as merged,
    ):
        done = []
        selector = values.text("selector")
        for found in selection.from_files(
            session, values, selector=selector, continue_on_error=False
        ):
            assert isinstance(found, Info), "the first failure is raised"
            done.append(found)
            before = applying.current(session, found)
            after = _would_be(session, values, found, before)
            _write(values, found, before, after, Path(live), Path(merged))
        if values["prune"]:
            applier = server_side.MANAGER if session.program != "kubectl" else ""
            for info in pruning.Pruning(session, values, done, applier).candidates():
                name = _file_name(info)
                (Path(live) / name).write_text(to_yaml(info.obj))
        return _comparable(session, live, merged)


def _would_be(session: Session, values: Values, info: Info, before: Obj | None) -> Obj:
    # What client-side apply wrote is migrated by an apply; until then the client knows what goes.
    is_migrated = before is None or not server_side.client_side_managers(before)
    is_wanted = server_side.is_wanted(session, values, "server")
    if values["server-side"] or (is_wanted and is_migrated):
        query = writing.options(
            dry_run="server",
            manager=values.text("field-manager") or server_side.MANAGER,
            force=bool(values["force-conflicts"]),
        )
        return writing.patch(session, info.path, info.obj, "apply", query)
    query = writing.options(
        dry_run="server", manager=values.text("field-manager") or "kubectl-client-side-apply"
    )
    if before is None:
        return writing.create(session, info.resource, info.namespace, info.obj, query)
    meta = info.obj.get("metadata") or {}
    modified = {**info.obj, "metadata": {**meta, "annotations": meta.get("annotations") or {}}}
    after, _ = applying.send(session, info, modified, before, query)
    return after


def _file_name(info: Info) -> str:
    group = f"{info.resource.group}." if info.resource.group else ""
    parts = (f"{group}{info.resource.version}", info.resource.kind, info.namespace, info.name)
    return ".".join(parts)


def _write(
    values: Values, info: Info, before: Obj | None, after: Obj, live: Path, merged: Path
) -> None:
    if not values["show-managed-fields"]:
        before = without_managed_fields(before) if before is not None else None
        after = without_managed_fields(after)
    if info.resource.kind == "Secret":
        before, after = _mask_times(before, after)
    name = _file_name(info)
    if before is not None:
        (live / name).write_text(to_yaml(before))
    (merged / name).write_text(to_yaml(after))


def _mask_times(before: Obj | None, after: Obj) -> tuple[Obj | None, Obj]:
    """Secrets are compared, never shown."""
    old, new = (before or {}).get("data") or {}, after.get("data") or {}
    hidden_old = {
        key: "***" if new.get(key) == value or key not in new else "*** (before)"
        for key, value in old.items()
    }
    hidden_new = {
        key: "***" if old.get(key) == value or key not in old else "*** (after)"
        for key, value in new.items()
    }
    if before is not None and "data" in before:
        before = {**before, "data": hidden_old}
    return before, {**after, "data": hidden_new} if "data" in after else after


def _comparable(session: Session, live: str, merged: str) -> int:
    wanted = session.io.environment.get("KUBECTL_EXTERNAL_DIFF", "")
    command = shlex.split(wanted) if wanted else ["diff", "-u", "-N"]
    try:
        done = subprocess.run(
            [*command, live, merged],
            capture_output=True,
            text=True,
            env=session.io.environment,
            check=False,
        )
    except FileNotFoundError:
        raise DiffError(
            f'failed to run "{command[0]}": executable file not found in $PATH'
        ) from None
    session.write(done.stdout)
    session.io.stderr.write(done.stderr)
    if done.returncode > 1:
        raise Quiet(done.returncode, f"error: exit status {done.returncode}")
    return done.returncode


DIFF = Command(
    "diff",
    "diff -f FILENAME [options]",
    "Diff configurations specified by file name or stdin between the current online configuration, "
    "and the configuration as it would be if applied.",
    run,
    (
        *common_flags.FILES,
        common_flags.SELECTOR,
        Flag("field-manager", usage="Name of the manager used to track field ownership."),
        Flag("concurrency", "int", 1, "Accepted; objects are compared one after the other."),
        switch("force-conflicts", "Server-side apply takes fields of other managers."),
        switch("prune", "Show what a prune would delete, too."),
        Flag("prune-allowlist", "array", [], "Kinds to prune, <group/version/kind>."),
        switch("server-side", server_side.USAGE),
        switch("show-managed-fields", "Keep the managedFields."),
    ),
)
