"""`apply`: objects as files say, server-side or client-side (three-way); --prune.

Job: create or patch each object, say what happened; then remove what the files no longer have.
Invariant: called as kubectl it is client-side unless told otherwise; called as sampan it is
server-side unless a flag asks for what only the client can do (docs/decisions/0026).
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import DryRun, switch
from sampan.cli.errors import CliError, Several, UsageError, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import (
    applying,
    changing,
    manifests,
    pruning,
    selection,
    server_side,
    writing,
)
from sampan.cli.objects.infos import Info, blamed, named
from sampan.cli.objects.validation import validate
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.printers.json_text import compact
from sampan.cli.session import Session
from sampan.cli.verbs.change import last_applied

MISSING = (
    "resource {what} is missing the kubectl.kubernetes.io/last-applied-configuration annotation "
    "which is required by kubectl apply. kubectl apply should only be used on resources created "
    "declaratively by either kubectl create --save-config or kubectl apply. The missing annotation "
    "will be patched automatically."
)
DELETING = "Detected changes to resource {name} which is currently being deleted."


def run(session: Session, values: Values) -> None:
    if values.arguments:
        raise UsageError(f"Unexpected args: [{' '.join(values.arguments)}]")
    strategy = common_flags.dry_run(session, values)
    propagation = common_flags.propagation(session, values)
    manifests.require(values)
    validation = common_flags.validation(values)
    session.check_context()
    if values["prune"]:
        pruning.check_kinds(session, values["prune-allowlist"])
    _check(session, values, strategy)
    application = Application(session, values, strategy, validation)
    application.propagation = propagation
    check = validate if validation != "Ignore" else None
    selector = values.text("selector")
    found = list(selection.from_files(session, values, validate=check, selector=selector))
    failures: list[Exception] = [one for one in found if isinstance(one, Exception)]
    failures = [Several(failures)] if len(failures) > 1 else failures
    infos = [one for one in found if isinstance(one, Info)]
    if not infos and not failures:
        raise CliError("no objects passed to apply")
    for info in infos:
        try:
            application.apply(info)
        except (CliError, ApiError) as error:
            failures.append(error)
    raise_all(failures)
    application.print_objects()
    if values["prune"]:
        application.prune()


def _check(session: Session, values: Values, strategy: DryRun) -> None:
    on_server = server_side.is_wanted(session, values, strategy)
    if values["force-conflicts"] and not on_server:
        raise CliError("--force-conflicts only works with --server-side")
    if strategy == "client" and values["server-side"]:
        raise CliError(
            "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server "
            "instead?)"
        )
    if values["server-side"] and values["force"]:
        raise CliError("--force cannot be used with --server-side")
    if strategy == "server" and values["force"]:
        raise CliError("--dry-run=server cannot be used with --force")
    if values["all"] and values["selector"]:
        raise CliError("cannot set --all and --selector at the same time")
    if values["prune"]:
        _check_prune(session, values)
    if values["subresource"] and not on_server:
        raise CliError("--subresource can only be specified for --server-side")


def _check_prune(session: Session, values: Values) -> None:
    if values["force"]:
        raise CliError("--force cannot be used with --prune")
    if not values["all"] and not values["selector"]:
        raise CliError(
            "all resources selected for prune without explicitly passing --all. To prune all "
            "resources, pass the --all flag. If you did not mean to prune all resources, "
            "specify a label selector"
        )
    # kubectl finds what it applied by an annotation that only client-side apply leaves.
    if values["server-side"] and session.program == "kubectl":
        raise CliError(
            "--prune is in alpha and doesn't currently work on objects created by server-side apply"
        )


class Application:
    """One call of apply: the same flags for every object."""

    def __init__(self, session: Session, values: Values, strategy: DryRun, validation: str) -> None:
        self._session, self._values, self._strategy = session, values, strategy
        self._is_listed = values.text("output") not in ("", "name")  # all of them at the end
        self._on_server = server_side.is_wanted(session, values, strategy)
        default = server_side.MANAGER if self._on_server else server_side.CLIENT_SIDE_MANAGER
        self._manager = values.text("field-manager") if values.is_set("field-manager") else default
        self._query = writing.options(
            dry_run=strategy,
            manager=self._manager,
            validation=validation,
            force=bool(values["force-conflicts"]) if self._on_server else None,
        )
        self.propagation = "Background"  # of what --force deletes
        self._done: list[Info] = []
        self._objects: list[Obj] = []  # for -o yaml and the like: all of them at the end

    def apply(self, info: Info) -> None:
        prefix = (info.obj.get("metadata") or {}).get("generateName") or ""
        if not info.name and prefix:
            raise CliError(f"from {prefix}: cannot use generate name with apply")
        if self._values["record"]:
            cause = common_flags.change_cause(self._session, self._values)
            obj = writing.annotate(info.obj, {writing.CHANGE_CAUSE: cause})
            info = Info(info.resource, info.namespace, info.name, obj, info.source)
        if self._values["server-side"] or self._values["subresource"]:
            subresource = self._values.text("subresource")
            obj = server_side.send(self._session, info, self._query, subresource)
            self._say(info, obj, "serverside-applied")
        elif self._on_server:
            live = applying.current(self._session, info)
            obj = server_side.send(self._session, info, self._query)
            self._say(info, obj, self._word(live, obj))
        else:
            self._on_client(info)
        self._done.append(info)

    def prune(self) -> None:
        applier = self._manager if self._session.program != "kubectl" else ""
        pruned = pruning.Pruning(self._session, self._values, self._done, applier)
        for line in pruned.prune(self._strategy):
            if not self._values["output"]:
                self._session.print(line)

    def print_objects(self) -> None:
        if not self._objects:
            return
        whole = self._objects[0]
        if len(self._objects) > 1:
            whole = {
                "apiVersion": "v1", "items": self._objects, "kind": "List", "metadata": {},
            }  # fmt: skip
        self._session.write(ObjectPrinter(self._values).text(whole))

    def _on_client(self, info: Info) -> None:
        modified = writing.with_last_applied(info.obj)
        live = self._current(info)
        if live is None:
            self._say(info, self._create(info, modified), "created")
            return
        if self._strategy == "client":
            self._say(info, live, "configured")
            return
        if applying.last_applied_of(live) is None:
            self._session.print_warning(MISSING.format(what=f"{info.resource.plural}/{info.name}"))
        if not self._values["overwrite"]:
            applying.require_no_conflict(self._session, info, modified, live)
        obj, is_changed = self._patched(info, modified, live)
        self._say(info, obj, "configured" if is_changed else "unchanged")

    def _current(self, info: Info) -> Obj | None:
        if not info.name:
            doing = f"retrieving current configuration of:\n{info.where}\nfrom server for:"
            error = CliError("resource name may not be empty")
            raise named(doing, info.source, error) from error
        try:
            return applying.current(self._session, info)
        except ApiError as error:
            doing = f"retrieving current configuration of:\n{info.where}\nfrom server for:"
            raise named(doing, info.source, error) from error

    def _patched(self, info: Info, modified: Obj, live: Obj) -> tuple[Obj, bool]:
        try:
            return applying.send(self._session, info, modified, live, self._query)
        except ApiError as error:
            if self._values["force"] and error.reason in ("Invalid", "Conflict"):
                return self._replace(info, modified, live), True
            patch = compact(applying.patch_for(info, modified, live)[0], ordered=False)
            failure = named("patching", info.source, error)
            doing = f"applying patch:\n{patch}\nto:\n{info.where}\nfor:"
            raise named(doing, info.source, failure) from error

    def _word(self, live: Obj | None, obj: Obj) -> str:
        if live is None:
            return "created"
        if self._strategy == "server":
            return "configured" if _content(obj) != _content(live) else "unchanged"
        before, after = (one["metadata"].get("resourceVersion") for one in (live, obj))
        return "configured" if before != after else "unchanged"

    def _say(self, info: Info, obj: Obj, word: str) -> None:
        if (obj.get("metadata") or {}).get("deletionTimestamp"):
            self._session.print_warning(DELETING.format(name=info.name))
        if self._is_listed:
            self._objects.append(obj)
            return
        changing.show(self._session, ObjectPrinter(self._values), info, obj, word, self._strategy)

    def _create(self, info: Info, modified: Obj) -> Obj:
        if self._strategy == "client":
            return dict(modified)
        meta = {k: v for k, v in modified["metadata"].items() if k != "resourceVersion"}
        body = {**modified, "metadata": meta}
        try:
            return writing.create(self._session, info.resource, info.namespace, body, self._query)
        except ApiError as error:
            found = blamed(self._session, error, info.namespace)
            raise named("creating", info.source, found) from error

    def _replace(self, info: Info, modified: Obj, live: Obj) -> Obj:
        """--force: delete, wait, create again; the old one where the new one is refused."""
        from sampan.cli.objects import waiting

        body: Obj = {
            "kind": "DeleteOptions", "apiVersion": "v1",
            "propagationPolicy": self.propagation,
        }  # fmt: skip
        if self._values["grace-period"] >= 0:
            body["gracePeriodSeconds"] = self._values["grace-period"]
        self._session.api.json("DELETE", info.path, body=body)
        waiting.until_gone(self._session, info, "", self._values["timeout"] or 60.0)
        create = (self._session, info.resource, info.namespace)
        meta = {k: v for k, v in live["metadata"].items() if k not in ("resourceVersion", "uid")}
        try:
            return writing.create(*create, modified, self._query)
        except ApiError as error:
            try:
                writing.create(*create, {**live, "metadata": meta}, self._query)
            except ApiError as again:
                raise CliError(
                    "An error occurred force-replacing the existing object with the newly provided "
                    f"one:\n\n{error.message}.\n\nAdditionally, an error occurred attempting to "
                    f"restore the original object:\n\n{again.message}"
                ) from again
            raise


def _content(obj: Obj) -> Obj:
    meta = {
        key: value
        for key, value in (obj.get("metadata") or {}).items()
        if key not in ("managedFields", "resourceVersion")
    }
    return {**obj, "metadata": meta}


def _edit_last_applied(session: Session, values: Values) -> None:
    from sampan.cli.verbs.change.edit import edit_last_applied

    edit_last_applied(session, values)


APPLY = Command(
    "apply",
    "apply (-f FILENAME | -k DIRECTORY) [options]",
    "Apply a configuration to a resource by file name or stdin.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.DRY_RUN,
        common_flags.SELECTOR,
        common_flags.VALIDATE,
        common_flags.RECORD,
        Flag("field-manager", default=server_side.CLIENT_SIDE_MANAGER, usage="Name of the manager used to track field ownership."),
        switch("all", "Select all resources in the namespace of the specified resource types."),
        Flag("cascade", default="background", bare="background", usage="For --force and --prune."),
        switch("force", "Delete and create again what cannot be changed."),
        switch("force-conflicts", "Server-side apply takes fields of other managers."),
        Flag("grace-period", "int", -1, "Seconds that objects get to end with --force."),
        switch("openapi-patch", "Accepted: patches are always computed from the types.", default=True),
        switch("overwrite", "Resolve conflicts by the file's values.", default=True),
        switch("prune", "Delete objects that apply made before and the files no longer have."),
        Flag("prune-allowlist", "array", [], "Kinds to prune, <group/version/kind>."),
        switch("server-side", server_side.USAGE),
        Flag("subresource", usage="Apply to this subresource; with --server-side only."),
        Flag("timeout", "duration", 0.0, "How long to wait for a delete with --force."),
        switch("wait", "Wait for deletions."),
    ),
    (
        Command("edit-last-applied", "apply edit-last-applied (RESOURCE/NAME | -f FILENAME) [options]",
                "Edit latest last-applied-configuration annotations", _edit_last_applied,
                (*PRINT_FLAGS, *common_flags.FILES, common_flags.RECORD, common_flags.field_manager(server_side.CLIENT_SIDE_MANAGER),
                 common_flags.VALIDATE, switch("windows-line-endings", "Accepted; only for Windows."))),
        Command("set-last-applied", "apply set-last-applied -f FILENAME [options]",
                "Set the last-applied-configuration annotation to match the contents of a file", last_applied.set_annotation,
                (*PRINT_FLAGS, common_flags.FILES[0], common_flags.DRY_RUN,
                 switch("create-annotation", "Create the annotation where there is none."))),
        Command("view-last-applied", "apply view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME) [options]",
                "View the latest last-applied-configuration annotations", last_applied.view,
                (*common_flags.FILES, common_flags.SELECTOR, switch("all", "All objects of the kind."),
                 Flag("output", short="o", default="yaml", usage="yaml or json."))),
    ),
)  # fmt: skip
