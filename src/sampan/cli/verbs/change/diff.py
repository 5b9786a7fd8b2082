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
from sampan.cli.objects.infos import Info, named
from sampan.cli.output import without_managed_fields
from sampan.cli.printers.yaml_text import to_yaml
from sampan.cli.session import Session
from sampan.cli.verbs.change.apply import DELETING


def run(session: Session, values: Values) -> int:
    if values.arguments:
        raise UsageError(f"Unexpected args: [{' '.join(values.arguments)}]")
    manifests.require(values)
    if values["force-conflicts"] and not server_side.is_wanted(session, values, "server"):
        raise CliError("--force-conflicts only works with --server-side")
    _ = session.connection
    session.check_context()
    if values["prune"]:
        pruning.check_kinds(session, values["prune-allowlist"])
    with (
        tempfile.TemporaryDirectory(prefix="LIVE-") as live,
        tempfile.TemporaryDirectory(prefix="MERGED-") as merged,
    ):
        done: list[Info] = []
        try:
            _write_all(session, values, done, Path(live), Path(merged))
        finally:
            if values["prune"]:
                _write_pruned(session, values, done, Path(live))
        return _comparable(session, live, merged)


def _write_all(
    session: Session, values: Values, done: list[Info], live: Path, merged: Path
) -> None:
    selector = values.text("selector")
    for found in selection.from_files(session, values, selector=selector, continue_on_error=False):
        assert isinstance(found, Info), "the first failure is raised"
        if not found.name:
            raise CliError("resource name may not be empty")
        before = applying.current(session, found)
        done.append(found)
        after = _would_be(session, values, found, before)
        _write(values, found, before, after, live, merged)
        if ((before or {}).get("metadata") or {}).get("deletionTimestamp"):
            session.print_warning(DELETING.format(name=found.name))


def _write_pruned(session: Session, values: Values, done: list[Info], live: Path) -> None:
    applier = server_side.MANAGER if session.program != "kubectl" else ""
    pruned = pruning.Pruning(session, values, done, applier)
    for info in pruned.candidates(warns=True):
        (live / _file_name(info)).write_text(to_yaml(info.obj))


def _manager(values: Values, otherwise: str) -> str:
    return values.text("field-manager") if values.is_set("field-manager") else otherwise


def _would_be(session: Session, values: Values, info: Info, before: Obj | None) -> Obj:
    # What client-side apply wrote is migrated by an apply; until then the client knows what goes.
    is_migrated = before is None or not server_side.client_side_managers(before)
    is_wanted = server_side.is_wanted(session, values, "server")
    if values["server-side"] or (is_wanted and is_migrated):
        query = writing.options(
            dry_run="server",
            manager=_manager(values, server_side.MANAGER),
            force=bool(values["force-conflicts"]),
        )
        return writing.patch(session, info.path, info.obj, "apply", query)
    manager = _manager(values, server_side.CLIENT_SIDE_MANAGER)
    query = writing.options(dry_run="server", manager=manager)
    if before is None:
        return writing.create(session, info.resource, info.namespace, info.obj, query)
    meta = info.obj.get("metadata") or {}
    modified = {**info.obj, "metadata": {**meta, "annotations": meta.get("annotations") or {}}}
    try:
        return applying.send(session, info, modified, before, query)[0]
    except ApiError as error:
        raise named("patching", info.source, error) from error


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
    # As kubectl: of what is not there yet there is an empty file, of a Secret one that says so.
    absent = "null\n" if info.resource.kind == "Secret" else ""
    (live / name).write_text(absent if before is None else to_yaml(before))
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
        raise CliError(
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
        Flag(
            "field-manager",
            default=server_side.CLIENT_SIDE_MANAGER,
            usage="Name of the manager used to track field ownership.",
        ),
        Flag("concurrency", "int", 1, "Accepted; objects are compared one after the other."),
        switch("force-conflicts", "Server-side apply takes fields of other managers."),
        switch("prune", "Show what a prune would delete, too."),
        Flag("prune-allowlist", "array", [], "Kinds to prune, <group/version/kind>."),
        switch("server-side", server_side.USAGE),
        switch("show-managed-fields", "Keep the managedFields."),
    ),
    failure_code=2,
)
