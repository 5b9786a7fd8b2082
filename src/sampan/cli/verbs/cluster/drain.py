"""`cordon`, `uncordon`, `drain`: take nodes out of service and back.

Job: mark nodes; have their pods evicted (workloads/eviction.py), and say what is left to do.
"""

from sampan.api.errors import ApiError
from sampan.api.rules.selectors import SelectorError, parse_label_selector
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import DryRun, switch
from sampan.cli.errors import CliError, Several, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info
from sampan.cli.reporting import message_of
from sampan.cli.session import Session
from sampan.cli.workloads import eviction


def _nodes(session: Session, values: Values, use: str) -> tuple[list[Info], DryRun]:
    if not values.arguments and not values.is_set("selector"):
        raise UsageError(f"USAGE: {use} [flags]")
    if values.arguments and values["selector"]:
        raise UsageError("error: cannot specify both a node name and a --selector option")
    strategy = common_flags.dry_run(session, values)
    _ = session.connection
    if values.get("pod-selector"):
        try:
            parse_label_selector(values.text("pod-selector"))
        except SelectorError:
            why = "--pod-selector=<pod_selector> must be a valid label selector"
            raise CliError(why) from None
    builder = Builder(session).in_namespace().names("nodes", values.arguments).single_type()
    builder.typed = True
    builder.chunk = values.get("chunk-size") or builder.chunk
    if values["selector"]:
        builder.labels(values.text("selector")).types("nodes")
    found = []
    for info in builder.do().visit():
        assert isinstance(info, Info)
        one = info.resource
        if (one.group, one.plural) != ("", "nodes"):
            what = f"{one.group}/{one.version}, Resource={one.plural}"
            raise CliError(f'error: expected resource of type node, got "{what}"')
        found.append(info)
    return found, strategy


def _mark(session: Session, nodes: list[Info], wanted: bool, strategy: DryRun) -> None:
    word, suffix = "cordoned" if wanted else "uncordoned", common_flags.suffix(strategy)
    for info in nodes:
        if bool((info.obj.get("spec") or {}).get("unschedulable")) == wanted:
            session.print(f"{info.label} already {word}{suffix}")
            continue
        if strategy != "client":
            patch = {"spec": {"unschedulable": wanted or None}}
            query = writing.options(dry_run=strategy)
            try:
                writing.patch(session, info.path, patch, "strategic", query)
            except ApiError as error:
                verb = word.removesuffix("ed")
                session.complain(f'error: unable to {verb} node "{info.name}": {error.message}')
                continue
        session.print(f"{info.label} {word}{suffix}")


def cordon(session: Session, values: Values) -> None:
    nodes, strategy = _nodes(session, values, "cordon NODE")
    _mark(session, nodes, True, strategy)


def uncordon(session: Session, values: Values) -> None:
    nodes, strategy = _nodes(session, values, "uncordon NODE")
    _mark(session, nodes, False, strategy)


def drain(session: Session, values: Values) -> None:
    nodes, strategy = _nodes(session, values, "drain NODE")
    _mark(session, nodes, True, strategy)
    pending: list[str] = []
    failures: list[Exception] = []
    for info in nodes:
        try:
            _drain_node(session, values, info, strategy)
        except (CliError, ApiError) as error:
            session.complain(
                f'error: unable to drain node "{info.name}" due to error: '
                f"{_text(session, error)}, continuing command..."
            )
            pending.append(info.name)
            failures.append(error)
            continue
        session.print(f"{info.label} drained{common_flags.suffix(strategy)}")
    if pending:
        names = "".join(f"\n {name}" for name in pending)
        session.complain(f"There are pending nodes to be drained:{names}")
        raise Several(failures)


def _text(session: Session, error: Exception) -> str:
    return error.message if isinstance(error, ApiError) else message_of(session, error)


def _drain_node(session: Session, values: Values, info: Info, strategy: DryRun) -> None:
    chosen = eviction.choose(session, values, info.name)
    if chosen.errors:
        raise Several(chosen.errors)
    if chosen.warnings:
        session.print_warning(chosen.warnings)
    if strategy == "client":
        for pod in chosen.pods:
            meta = pod["metadata"]
            session.print(f"evicting pod {meta['namespace']}/{meta['name']} (dry run)")
        return
    try:
        eviction.Removal(session, values, strategy).run(chosen.pods)
    except (CliError, ApiError) as error:
        left = eviction.choose(session, values, info.name)
        if left.pods:
            names = "".join(f"\npod/{pod['metadata']['name']}" for pod in left.pods)
            session.complain(
                f'There are pending pods in node "{info.name}" when an error occurred: '
                f"{_text(session, error)}{names}"
            )
        if left.errors:
            why = message_of(session, Several(left.errors))
            session.complain(
                f"Following errors occurred while getting the list of pods to delete:\n{why}"
            )
        raise


_FLAGS = (common_flags.DRY_RUN, common_flags.SELECTOR)
CORDON = Command("cordon", "cordon NODE [options]", "Mark node as unschedulable.", cordon, _FLAGS)
UNCORDON = Command(
    "uncordon", "uncordon NODE [options]", "Mark node as schedulable.", uncordon, _FLAGS
)
DRAIN = Command(
    "drain", "drain NODE [options]", "Drain node in preparation for maintenance.", drain,
    (*_FLAGS,
     Flag("chunk-size", "int64", 500, "Return large lists in chunks of this size."),
     switch("delete-emptydir-data", "Go on even if there are pods using emptyDir."),
     switch("disable-eviction", "Delete pods instead of evicting them."),
     switch("force", "Go on even if there are pods that declare no controller."),
     Flag("grace-period", "int", -1, "Seconds that each pod gets to end by itself."),
     switch("ignore-daemonsets", "Ignore pods that DaemonSets manage."),
     Flag("pod-selector", usage="Label selector to filter pods on the node."),
     Flag("skip-wait-for-delete-timeout", "int", 0,
          "Skip pods that were deleted longer ago than this, in seconds; 0: none."),
     Flag("timeout", "duration", 0.0, "How long to wait before giving up; 0: forever.")),
)  # fmt: skip
