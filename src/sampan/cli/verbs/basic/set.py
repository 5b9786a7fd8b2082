"""`set image|env|resources|serviceaccount|selector|subject`: one thing of many objects.

Job: the words of each command become a change of the pod spec (or selector, or subjects).
Invariant: what kubectl checks first is said first; nothing is sent before everything is checked.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.create.access import SUBJECTS
from sampan.cli.create.policy import label_selector, resource_list
from sampan.cli.errors import CliError, Several, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, pairs, writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.changing import ALL_AND_SELECTOR, NO_RESOURCES, NOT_ON_SERVER
from sampan.cli.objects.infos import Info
from sampan.cli.output import ObjectPrinter
from sampan.cli.session import Session
from sampan.cli.workloads.containers import chosen


def image(session: Session, values: Values) -> None:
    outcome = changing.outcome_of(
        session, values, "image updated", "failed to patch image update to pod template:"
    )
    session.check_context()
    resources, words = pairs.split(values.arguments, "image")
    images, _ = pairs.parse(words, "image", removable=False)
    found = changing.infos(session, values, resources)
    _check_images(values, resources, images, outcome)
    failures: list[Exception] = []

    def change(info: Info, obj: Obj) -> bool:
        spec = changing.pod_spec_of(info, obj)
        for name, value in sorted(images.items()):
            hits = [
                item
                for field in ("initContainers", "containers")
                for item in spec.get(field) or []
                if name in ("*", item.get("name"))
            ]
            for container in hits:
                container["image"] = value
            if not hits:
                failures.append(CliError(f'error: unable to find container named "{name}"'))
        return True

    changing.change_all(session, values, found, change, outcome, failures)


def _check_images(
    values: Values, resources: list[str], images: dict[str, str], outcome: changing.Outcome
) -> None:
    problems = []
    if values["all"] and values["selector"]:
        problems.append(ALL_AND_SELECTOR)
    if not resources and not values["filename"] and not values["kustomize"]:
        problems.append(NO_RESOURCES)
    if not images:
        problems.append("at least one image update is required")
    elif len(images) > 1 and "*" in images:
        problems.append(
            "all containers are already specified by *, but saw more than one "
            "container_name=container_image pairs"
        )
    if values["local"] and outcome.strategy == "server":
        problems.append(NOT_ON_SERVER)
    if problems:
        raise Several([CliError(problem) for problem in problems])


def resources(session: Session, values: Values) -> None:
    outcome = changing.outcome_of(
        session, values, "resource requirements updated",
        "failed to patch resources update to pod template",
    )  # fmt: skip
    session.check_context()
    found = changing.infos(session, values, values.arguments)
    if values["local"] and outcome.strategy == "server":
        raise CliError(NOT_ON_SERVER)
    if values["all"] and values["selector"]:
        raise CliError(ALL_AND_SELECTOR)
    if not values["limits"] and not values["requests"]:
        raise CliError(
            "you must specify an update to requests or limits (in the form of --requests/--limits)"
        )
    wanted = {field: resource_list(values.text(field)) for field in ("limits", "requests")}
    failures: list[Exception] = []

    def change(info: Info, obj: Obj) -> bool:
        containers = chosen(changing.pod_spec_of(info, obj), values.text("containers"))
        for container in containers:
            own = container.setdefault("resources", {})
            for field, quantities in wanted.items():
                if quantities:
                    own[field] = {**(own.get(field) or {}), **quantities}
        if not containers:
            failures.append(
                CliError(f"error: unable to find container named {values['containers']}")
            )
        return bool(containers)

    changing.change_all(session, values, found, change, outcome, failures)


def service_account(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    if values["local"] and strategy == "server":
        raise CliError(NOT_ON_SERVER)
    outcome = changing.Outcome(
        ObjectPrinter(values, typed=True), strategy, "serviceaccount updated",
        "failed to patch ServiceAccountName", sends_nothing=True,
    )  # fmt: skip
    session.check_context()
    if not values.arguments:
        raise CliError("serviceaccount is required")
    *words, name = values.arguments
    found = changing.infos(session, values, words, words_are_local=True)

    def change(info: Info, obj: Obj) -> bool:
        changing.pod_spec_of(info, obj)["serviceAccountName"] = name
        return True

    changing.change_all(session, values, found, change, outcome)


def selector(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    words = values.arguments
    wanted = label_selector(words[-1]) if words else None
    builder = _selector_builder(session, values, words[:-1])
    outcome = changing.Outcome(
        ObjectPrinter(values, typed=True), strategy, "selector updated",
        sends_nothing=True,
    )  # fmt: skip
    if wanted is None:
        raise CliError("one selector is required")
    version = values.text("resource-version")
    failures: list[Exception] = []
    for found in builder.do().visit():
        try:
            if isinstance(found, Exception):
                raise found
            before = _at_version(found.obj, "") if version else found.obj
            after = _at_version(found.obj, version) if version else copy_of(found.obj)
            _select(found, after, wanted)
            info = Info(found.resource, found.namespace, found.name, before, found.source)
            changing.send(session, values, info, _recorded(session, values, after), outcome)
        except (CliError, ApiError) as error:
            failures.append(error)
    raise_all(failures)


def _selector_builder(session: Session, values: Values, words: list[str]) -> Builder:
    builder = Builder(session, continue_on_error=True).in_namespace()
    builder.typed = True
    builder.files(values)
    if values["local"]:
        builder.is_local = True
        if words:
            builder.fail(changing.FILES_ONLY)
    else:
        builder.arguments(words, allow_empty_selector=bool(values["all"]))
        builder.latest = True
    return builder


def _at_version(obj: Obj, version: str) -> Obj:
    """A copy that says it is of that version, or of none: then the patch carries the other's."""
    after: Obj = copy_of(obj)
    after["metadata"].pop("resourceVersion", None)
    if version:
        after["metadata"]["resourceVersion"] = version
    return after


def _select(info: Info, after: Obj, wanted: Obj) -> None:
    if info.resource.kind != "Service":
        raise CliError("setting a selector is only supported for Services")
    if wanted.get("matchExpressions"):
        raise CliError(f"match expression {_expressions(wanted)} not supported on this object")
    labels = wanted.get("matchLabels") or {}
    after["spec"] = {key: value for key, value in after["spec"].items() if key != "selector"}
    if labels:
        after["spec"]["selector"] = labels


def _recorded(session: Session, values: Values, obj: Obj) -> Obj:
    if not values["record"]:
        return obj
    cause = {writing.CHANGE_CAUSE: common_flags.change_cause(session, values)}
    return writing.annotate(obj, cause)


def _expressions(wanted: Obj) -> str:
    parts = [
        f"{{{entry['key']} {entry['operator']} [{' '.join(entry.get('values') or [])}]}}"
        for entry in wanted["matchExpressions"]
    ]
    return f"[{' '.join(parts)}]"


def subject(session: Session, values: Values) -> None:
    outcome = changing.outcome_of(
        session, values, "subjects updated", "failed to patch subjects to rolebinding:"
    )
    session.check_context()
    found = changing.infos(session, values, values.arguments)
    if values["local"] and outcome.strategy == "server":
        raise CliError(NOT_ON_SERVER)
    if values["all"] and values["selector"]:
        raise CliError(ALL_AND_SELECTOR)
    if not (values["user"] or values["group"] or values["serviceaccount"]):
        raise CliError("you must specify at least one value of user, group or serviceaccount")
    _check_accounts(values, found)
    subjects = _subjects(session, values)

    def change(info: Info, obj: Obj) -> bool:
        if info.resource.kind not in ("RoleBinding", "ClusterRoleBinding"):
            raise CliError("setting subjects is only supported for RoleBinding/ClusterRoleBinding")
        before = obj.get("subjects") or []
        more = [entry for entry in subjects if entry not in before]
        obj["subjects"] = [*before, *more]
        return bool(more)

    changing.change_all(session, values, found, change, outcome)


def _check_accounts(values: Values, found: list[Info]) -> None:
    for text in values["serviceaccount"]:
        parts = text.split(":")
        if len(parts) != 2 or not parts[1]:
            raise CliError("serviceaccount must be <namespace>:<name>")
        if not parts[0] and any(info.resource.kind == "ClusterRoleBinding" for info in found):
            raise CliError("serviceaccount must be <namespace>:<name>, namespace must be specified")


def _subjects(session: Session, values: Values) -> list[Obj]:
    subjects: list[Obj] = []
    for flag, kind in (("user", "User"), ("group", "Group")):
        for name in sorted(set(values[flag])):
            entry = {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": name}
            subjects.append(entry)
    for text in sorted(set(values["serviceaccount"])):
        namespace, _, name = text.partition(":")
        namespace = namespace or session.namespace
        subjects.append({"kind": "ServiceAccount", "name": name, "namespace": namespace})
    return subjects


def _flags(*more: Flag, without: tuple[str, ...] = ()) -> tuple[Flag, ...]:
    shared = (*changing.CHANGE_FLAGS, changing.ALL, common_flags.RECORD)
    manager = common_flags.field_manager("kubectl-set")
    return (*(flag for flag in shared if flag.name not in without), manager, *more)


CONTAINERS = Flag(
    "containers", default="*", short="c", usage="The names of containers to change, may have *."
)


def _env(session: Session, values: Values) -> None:
    from sampan.cli.workloads import environment

    environment.run(session, values)


ENV = Command(
    "env",
    "set env RESOURCE/NAME KEY_1=VAL_1 ... KEY_N=VAL_N [options]",
    "Update environment variables on a pod template",
    _env,
    _flags(
        CONTAINERS,
        Flag("env", "array", [], "Environment variables to set.", short="e"),
        Flag("from", usage="A resource (configmap/name, secret/name) to inject variables from."),
        Flag("keys", "slice", [], "Only import these keys of --from."),
        switch("list", "Display the environment and any changes in the standard format."),
        switch("overwrite", "Allow environment to be overwritten.", default=True),
        Flag("prefix", usage="Prefix to append to variable names of --from."),
        switch("resolve", "Show secret or configmap references when listing variables."),
    ),
)
SET = Command(
    "set",
    "set SUBCOMMAND [options]",
    "Configure application resources.",
    children=(
        ENV,
        Command("image", "set image (-f FILENAME | TYPE NAME) CONTAINER_NAME_1=CONTAINER_IMAGE_1 ... CONTAINER_NAME_N=CONTAINER_IMAGE_N [options]",
                "Update the image of a pod template", image, _flags()),
        Command("resources", "set resources (-f FILENAME | TYPE NAME)  ([--limits=LIMITS & --requests=REQUESTS] [options]",
                "Update resource requests/limits on objects with pod templates", resources,
                _flags(CONTAINERS, Flag("limits", usage="The limits for this container, like cpu=100m,memory=256Mi."),
                       Flag("requests", usage="The requests for this container."))),
        Command("selector", "set selector (-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version] [options]",
                "Set the selector on a resource", selector, _flags(Flag("resource-version", usage="Only for this version."), switch("recursive", "Process the directory used in -f, --filename recursively.", default=True, short="R"), without=("selector", "kustomize", "recursive"))),
        Command("serviceaccount", "set serviceaccount (-f FILENAME | TYPE NAME) SERVICE_ACCOUNT [options]",
                "Update the service account of a resource", service_account, _flags(without=("selector",)), aliases=("sa",)),
        Command("subject", "set subject (-f FILENAME | TYPE NAME) [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]",
                "Update the user, group, or service account in a role binding or cluster role binding",
                subject, _flags(*SUBJECTS, without=("record",))),
    ),
)  # fmt: skip
