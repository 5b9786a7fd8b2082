"""`set image|env|resources|serviceaccount|selector|subject`: one thing of many objects.

Job: the words of each command become a change of the pod spec (or selector, or subjects).
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.create.access import SUBJECTS, _subjects
from sampan.cli.create.policy import BAD_QUANTITY, label_selector, resource_list
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, writing
from sampan.cli.objects.builder import NOTHING_GIVEN
from sampan.cli.objects.changing import Partly
from sampan.cli.objects.infos import Info
from sampan.cli.output import ObjectPrinter
from sampan.cli.session import Session


def containers_of(spec: Obj) -> list[Obj]:
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def _words(values: Values) -> tuple[list[str], list[str]]:
    """Resources, and the words with `=` in them."""
    pairs = [word for word in values.arguments if "=" in word]
    return [word for word in values.arguments if "=" not in word], pairs


def image(session: Session, values: Values) -> None:
    resources, pairs = _words(values)
    images = dict(pair.split("=", 1) for pair in pairs)
    if not resources and not values["filename"]:
        raise CliError(NOTHING_GIVEN)
    if not images and (len(resources) < 2 or "/" not in resources[0]):
        raise CliError("at least one image update is required")

    def change(info: Info, obj: Obj, spec: Obj) -> None:
        missing = []
        for name, value in images.items():
            hit = False
            for container in containers_of(spec):
                if name in ("*", container.get("name")):
                    container["image"] = value
                    hit = True
            if not hit:
                missing.append(name)
        if missing:
            raise Partly(f'unable to find container named "{missing[0]}"', obj)

    changing.change_pod_specs(session, values, resources, change, "image updated")


def resources(session: Session, values: Values) -> None:
    if not values["limits"] and not values["requests"]:
        raise CliError(
            "you must specify an update to requests or limits (in the form of --requests/--limits)"
        )
    limits = _resource_list(values.text("limits"))
    requests = _resource_list(values.text("requests"))

    def change(info: Info, obj: Obj, spec: Obj) -> None:
        hit = False
        for container in containers_of(spec):
            if not _is_chosen(values.text("containers"), container.get("name")):
                continue
            hit = True
            own = container.setdefault("resources", {})
            for field, wanted in (("limits", limits), ("requests", requests)):
                if wanted:
                    own[field] = {**(own.get(field) or {}), **wanted}
        if not hit:
            raise CliError(f"unable to find container named {values['containers']}")

    changing.change_pod_specs(
        session, values, values.arguments, change, "resource requirements updated"
    )


def _resource_list(text: str) -> dict[str, str]:
    try:
        return resource_list(text)
    except CliError as error:
        raise CliError(str(error).replace(BAD_QUANTITY, BAD_QUANTITY)) from error


def _is_chosen(pattern: str, name: object) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(str(name), pattern)


def service_account(session: Session, values: Values) -> None:
    if len(values.arguments) < 2:
        raise CliError("serviceaccount is required")
    *words, name = values.arguments

    def change(info: Info, obj: Obj, spec: Obj) -> None:
        spec["serviceAccountName"] = name
        spec.pop("serviceAccount", None)

    if len(words) == 1 and "/" not in words[0]:
        raise CliError("resource(s) were provided, but no name was specified")
    changing.change_pod_specs(session, values, words, change, "serviceaccount updated")


def selector(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values)
    words = values.arguments
    if len(words) < 2 or (len(words) == 2 and "/" not in words[0]):
        raise CliError("resource(s) were provided, but no name was specified")
    *resources_words, text = words
    wanted = label_selector(text)
    failures: list[Exception] = []
    for found in changing.select(session, values, resources_words):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        try:
            if found.resource.kind != "Service":
                raise CliError("setting a selector is only supported for Services")
            if wanted.get("matchExpressions"):
                raise CliError(
                    f"match expression {_expressions(wanted)} not supported on this object"
                )
            labels = wanted.get("matchLabels") or {}
            after = {**found.obj, "spec": {**found.obj["spec"], "selector": labels}}
            if strategy != "client" and not values["local"]:
                query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
                patch = [{"op": "replace", "path": "/spec/selector", "value": labels}]
                if "selector" not in found.obj["spec"]:
                    patch[0]["op"] = "add"
                after = writing.patch(session, found.path, patch, "json", query)
            changing.show(session, printer, found, after, "selector updated", strategy)
        except (CliError, ApiError) as error:
            failures.append(error)
    if failures:
        raise Several(failures)


def _expressions(wanted: Obj) -> str:
    parts = [
        f"{{{entry['key']} {entry['operator']} [{' '.join(entry.get('values') or [])}]}}"
        for entry in wanted["matchExpressions"]
    ]
    return f"[{' '.join(parts)}]"


def subject(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values)
    subjects = _subjects(values)
    if not subjects:
        raise CliError("you must specify at least one value of user, group or serviceaccount")
    failures: list[Exception] = []
    for found in changing.select(session, values, values.arguments):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        try:
            if found.resource.kind not in ("RoleBinding", "ClusterRoleBinding"):
                raise CliError(
                    f"{found.resource.plural}/{found.name} setting subjects is only supported for "
                    "RoleBinding/ClusterRoleBinding"
                )
            before = found.obj.get("subjects") or []
            after = [*before, *(entry for entry in subjects if entry not in before)]
            obj = {**found.obj, "subjects": after}
            if strategy != "client" and not values["local"]:
                query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
                obj = writing.patch(session, found.path, {"subjects": after}, "merge", query)
            changing.show(session, printer, found, obj, "subjects updated", strategy)
        except (CliError, ApiError) as error:
            failures.append(error)
    if failures:
        raise Several(failures)


def _flags(*more: Flag) -> tuple[Flag, ...]:
    return (
        *changing.CHANGE_FLAGS,
        changing.ALL,
        common_flags.RECORD,
        common_flags.field_manager("kubectl-set"),
        *more,
    )


CONTAINERS = Flag(
    "containers", default="*", short="c", usage="The names of containers to change, may have *."
)


def _env(session: Session, values: Values) -> None:
    from sampan.cli.workloads.environment import run

    run(session, values)


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
                "Set the selector on a resource", selector, _flags(Flag("resource-version", usage="Only for this version."))),
        Command("serviceaccount", "set serviceaccount (-f FILENAME | TYPE NAME) SERVICE_ACCOUNT [options]",
                "Update the service account of a resource", service_account, _flags(), aliases=("sa",)),
        Command("subject", "set subject (-f FILENAME | TYPE NAME) [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]",
                "Update the user, group, or service account in a role binding or cluster role binding",
                subject, _flags(*SUBJECTS)),
    ),
)  # fmt: skip
