"""`cordon`, `uncordon`, `drain`: take nodes out of service and back.

Job: mark nodes; evict their pods with respect for disruption budgets, and wait until they are gone.
"""

import time

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, controller_of, seconds_of
from sampan.api.rules import pods
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Plain, Several, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import selection, waiting, writing
from sampan.cli.objects.infos import Info
from sampan.cli.objects.selection import Target
from sampan.cli.session import Session

PAUSE_SECONDS = 5.0


def _nodes(session: Session, values: Values) -> list[Info]:
    names = [word.removeprefix("node/") for word in values.arguments]
    if not names and not values["selector"]:
        raise UsageError(f"USAGE: {values['usage-line']}" if values.get("usage-line")
                         else "USAGE: cordon NODE [flags]")  # fmt: skip
    if names and values["selector"]:
        raise CliError("error: cannot specify both a node name and a --selector option")
    resource = session.discovery.find("nodes")
    found: list[Info] = []
    failures: list[Exception] = []
    targets = [Target(resource, name) for name in names] or [Target(resource)]
    query = selection.query_of(values)
    for target in targets:
        for item in selection.target_objects(session, target, "", query):
            if isinstance(item, Exception):
                failures.append(item)
            else:
                found.append(item)
    if failures:
        raise Several(failures)
    return found


def _mark(session: Session, info: Info, wanted: bool, strategy: str) -> None:
    word = "cordoned" if wanted else "uncordoned"
    if bool((info.obj.get("spec") or {}).get("unschedulable")) == wanted:
        session.print(f"{info.label} already {word}")
        return
    if strategy != "client":
        patch = {"spec": {"unschedulable": wanted or None}}
        query = writing.options(dry_run=strategy)
        writing.patch(session, info.path, patch, "strategic", query)
    session.print(f"{info.label} {word}{common_flags.suffix(strategy)}")  # type: ignore[arg-type]  # one of the three


def cordon(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    for info in _nodes(session, values):
        _mark(session, info, True, strategy)


def uncordon(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    for info in _nodes(session, values):
        _mark(session, info, False, strategy)


def drain(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    nodes = _nodes(session, values)
    for info in nodes:
        _mark(session, info, True, strategy)
    pending: list[str] = []
    lines: list[str] = []
    for info in nodes:
        try:
            _drain_node(session, values, info, strategy)
        except Refused as error:
            why = ", ".join(error.lines)
            why = why if len(error.lines) == 1 else f"[{why}]"
            session.complain(f'error: unable to drain node "{info.name}" due to error: {why}, '
                             "continuing command...")  # fmt: skip
            pending.append(info.name)
            lines += error.lines
    if pending:
        names = "".join(f"\n {name}" for name in pending)
        session.complain(f"There are pending nodes to be drained:{names}")
        raise Several([Plain(line) for line in lines])


class Refused(CliError):
    """Pods that only a flag lets go; a line for each reason."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(", ".join(lines))
        self.lines = lines


def _drain_node(
    session: Session, values: Values, info: Info, strategy: common_flags.DryRun
) -> None:
    pods, warnings = _choose(session, values, info)
    if warnings:
        session.warn("; ".join(warnings))
    for pod in pods:
        _evict(session, values, pod, strategy)
    if strategy == "none":
        _wait(session, values, pods)
    session.print(f"{info.label} drained{common_flags.suffix(strategy)}")


def _choose(session: Session, values: Values, info: Info) -> tuple[list[Obj], list[str]]:
    query = {"fieldSelector": f"spec.nodeName={info.name}"}
    if values["pod-selector"]:
        query["labelSelector"] = values.text("pod-selector")
    pods = session.api.json("GET", "/api/v1/pods", query).get("items") or []
    chosen: list[Obj] = []
    refused: dict[str, list[str]] = {}
    warned: dict[str, list[str]] = {}
    for pod in pods:
        if _is_long_gone(session, values, pod):
            continue
        complaint, is_fatal, skip = _verdict(values, pod)
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if complaint:
            (refused if is_fatal else warned).setdefault(complaint, []).append(name)
        if not skip and not (complaint and is_fatal):
            chosen.append(pod)
    if refused:
        lines = [f"cannot delete {why}: {', '.join(names)}" for why, names in refused.items()]
        raise Refused(lines)
    return chosen, [f"{why}: {', '.join(names)}" for why, names in warned.items()]


def _is_long_gone(session: Session, values: Values, pod: Obj) -> bool:
    """Deleted so long ago that nobody waits for it any more."""
    seconds, moment = (
        values["skip-wait-for-delete-timeout"],
        pod["metadata"].get("deletionTimestamp"),
    )
    return bool(seconds > 0 and moment and session.clock.now() - seconds_of(moment) > seconds)


def _verdict(values: Values, pod: Obj) -> tuple[str, bool, bool]:
    """What is said, whether it stops the drain, whether the pod stays."""
    if pods.is_mirror(pod):
        return "", False, True
    is_over = pods.is_terminal(pod)
    owner = controller_of(pod) or {}
    if owner.get("kind") == "DaemonSet" and not is_over:
        if values["ignore-daemonsets"]:
            return "ignoring DaemonSet-managed Pods", False, True
        return "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)", True, True
    has_local = any("emptyDir" in volume for volume in pod["spec"].get("volumes") or [])
    if has_local and not is_over and not values["delete-emptydir-data"]:
        return "Pods with local storage (use --delete-emptydir-data to override)", True, True
    if not owner and not is_over:
        if not values["force"]:
            return (
                "Pods that declare no controller (use --force to override)", True, True
            )  # fmt: skip
        return "deleting Pods that declare no controller", False, False
    return "", False, False


def _evict(session: Session, values: Values, pod: Obj, strategy: str) -> None:
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
    session.print(f"evicting pod {meta['namespace']}/{meta['name']}{common_flags.suffix(strategy)}")  # type: ignore[arg-type]  # one of the three
    if strategy == "client":
        return
    options: Obj = {}
    if values["grace-period"] >= 0:
        options["gracePeriodSeconds"] = values["grace-period"]
    if strategy == "server":
        options["dryRun"] = ["All"]
    deadline = session.clock.monotonic() + (values["timeout"] or 7 * 24 * 3600.0)
    while True:
        try:
            if values["disable-eviction"]:
                session.api.json(
                    "DELETE", path, body={"kind": "DeleteOptions", "apiVersion": "v1", **options}
                )
            else:
                body = {
                    "apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": options,
                    "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
                }  # fmt: skip
                session.api.json("POST", f"{path}/eviction", body=body)
            return
        except ApiError as error:
            if error.reason == "NotFound":
                return
            if error.reason != "TooManyRequests" or session.clock.monotonic() > deadline:
                raise
            session.complain(
                f'error when evicting pods/"{meta["name"]}" -n "{meta["namespace"]}" (will retry '
                f"after 5s): {error.message}"
            )
            time.sleep(PAUSE_SECONDS)


def _wait(session: Session, values: Values, pods: list[Obj]) -> None:
    resource = session.discovery.find("pods")
    seconds = values["timeout"] or 7 * 24 * 3600.0
    for pod in pods:
        meta = pod["metadata"]
        info = Info(resource, meta["namespace"], meta["name"], pod)
        waiting.until_gone(session, info, meta["uid"], seconds)


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
