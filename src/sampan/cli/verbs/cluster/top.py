"""`top node|pod`: use of CPU and memory.

Job: ask the metrics API, show the figures, sorted where asked.
"""

from sampan.api import quantity
from sampan.api.errors import ApiError
from sampan.api.objects import Obj, seconds_of
from sampan.api.rules.durations import human_duration
from sampan.cli.command import Command
from sampan.cli.common_flags import ALL_NAMESPACES, FIELD_SELECTOR, SELECTOR, switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import selection
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session

METRICS = "/apis/metrics.k8s.io/v1beta1"
MEASURED_AFTER_SECONDS = 120.0  # a pod older than that should have figures


def _check(session: Session, values: Values) -> None:
    if values["sort-by"] not in ("", "cpu", "memory"):
        raise CliError("--sort-by accepts only cpu or memory")


def _ask(session: Session, values: Values, path: str) -> list[Obj]:
    name = values.arguments[0] if values.arguments else ""
    if not any(resource.group == "metrics.k8s.io" for resource in session.discovery.resources):
        raise CliError("Metrics API not available")
    try:
        if name:
            return [session.api.json("GET", f"{path}/{name}")]
        items: list[Obj] = (
            session.api.json("GET", path, selection.query_of(values)).get("items") or []
        )
        return items
    except ApiError as error:
        if error.code in (404, 503) and not name:
            raise CliError("Metrics API not available") from error
        raise


def _cpu(usage: Obj) -> int:
    return quantity.value_of(usage.get("cpu") or "0").milli()


def _memory(usage: Obj) -> int:
    return quantity.value_of(usage.get("memory") or "0").value()


def _in_order(rows: list[tuple[str, int, int, list[str]]], values: Values) -> list[list[str]]:
    if values["sort-by"] == "cpu":
        rows.sort(key=lambda row: -row[1])
    elif values["sort-by"] == "memory":
        rows.sort(key=lambda row: -row[2])
    else:
        rows.sort(key=lambda row: row[0])
    return [row[3] for row in rows]


def node(session: Session, values: Values) -> None:
    _check(session, values)
    if len(values.arguments) > 1:
        raise UsageError("node [NAME | -l label]")
    items = _ask(session, values, f"{METRICS}/nodes")
    field = "capacity" if values["show-capacity"] else "allocatable"
    nodes = session.api.json("GET", "/api/v1/nodes", selection.query_of(values)).get("items") or []
    sizes = {
        entry["metadata"]["name"]: (entry.get("status") or {}).get(field) or {}
        for entry in nodes
        if not values.arguments or entry["metadata"]["name"] == values.arguments[0]
    }
    rows = []
    for item in items:
        name, cpu, memory = item["metadata"]["name"], _cpu(item["usage"]), _memory(item["usage"])
        whole = sizes.pop(name, {})
        cells = [
            name, f"{cpu}m", _share(cpu, quantity.value_of(whole.get("cpu") or "0").milli()),
            f"{memory // 2**20}Mi", _share(memory, _memory(whole)),
        ]  # fmt: skip
        rows.append((name, cpu, memory, cells))
    table = _in_order(rows, values)
    table += [[name, *["<unknown>"] * 4] for name in sizes]  # what nobody has measured
    if not values["no-headers"]:
        table.insert(0, ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"])
    _write(session, table)


def _share(part: int, whole: int) -> str:
    return f"{part * 100 // whole}%" if whole else "<unknown>"


def pod(session: Session, values: Values) -> None:
    _check(session, values)
    if len(values.arguments) > 1:
        raise UsageError("pod [NAME | -l label]")
    everywhere = bool(values["all-namespaces"])
    where = "" if everywhere else f"/namespaces/{session.namespace}"
    items = _ask(session, values, f"{METRICS}{where}/pods")
    if not items:
        _check_unmeasured(session, values, f"/api/v1{where}/pods")
        return
    rows = [row for item in items for row in _pod_rows(item, values)]
    table = _in_order(rows, values)
    lead = (1 if everywhere else 0) + (1 if values["containers"] else 0)
    if not values["no-headers"]:
        titles = ["NAMESPACE"] if everywhere else []
        titles += ["POD", "NAME"] if values["containers"] else ["NAME"]
        table.insert(0, [*titles, "CPU(cores)", "MEMORY(bytes)"])
    if values["sum"]:
        cpu, memory = sum(row[1] for row in rows), sum(row[2] for row in rows)
        table.append([*[""] * (lead + 1), "________", "________"])
        table.append([*[""] * (lead + 1), f"{cpu}m", f"{memory // 2**20}Mi"])
    _write(session, table)


def _pod_rows(item: Obj, values: Values) -> list[tuple[str, int, int, list[str]]]:
    meta, containers = item["metadata"], item.get("containers") or []
    lead = [meta["namespace"]] if values["all-namespaces"] else []
    key = "/".join([*lead, meta["name"]])
    rows = []
    for container in containers if values["containers"] else []:
        cpu, memory = _cpu(container["usage"]), _memory(container["usage"])
        cells = [*lead, meta["name"], container["name"], f"{cpu}m", f"{memory // 2**20}Mi"]
        rows.append((f"{key}/{container['name']}", cpu, memory, cells))
    if values["containers"]:
        return rows
    cpu = sum(_cpu(container["usage"]) for container in containers)
    memory = sum(_memory(container["usage"]) for container in containers)
    return [(key, cpu, memory, [*lead, meta["name"], f"{cpu}m", f"{memory // 2**20}Mi"])]


def _check_unmeasured(session: Session, values: Values, path: str) -> None:
    """Nothing was measured: is there nothing, is it too young, or does something not work?"""
    pods = session.api.json("GET", path, selection.query_of(values)).get("items") or []
    if not pods:
        where = "" if values["all-namespaces"] else f" in {session.namespace} namespace."
        session.complain(f"No resources found{where}")
        return
    for entry in pods:
        meta = entry["metadata"]
        age = session.clock.now() - seconds_of(meta["creationTimestamp"])
        if age > MEASURED_AFTER_SECONDS:
            raise CliError(
                f"Metrics not available for pod {meta['namespace']}/{meta['name']}, "
                f"age: {human_duration(age)}"
            )
    raise CliError("metrics not available yet")


def _write(session: Session, table: list[list[str]]) -> None:
    """As kubectl: every cell ends in a tab, the last one too."""
    session.write(align([[*row, ""] for row in table]))


_FLAGS = (
    SELECTOR, switch("no-headers", "Don't print headers."),
    Flag("sort-by", usage="Sort by cpu or memory."),
    switch("use-protocol-buffers", "Accepted: answers are always JSON.", default=True),
)  # fmt: skip
TOP = Command(
    "top", "top [flags] [options]", "Display resource (CPU/memory) usage.",
    children=(
        Command("node", "top node [NAME | -l label] [options]",
                "Display resource (CPU/memory) usage of nodes", node,
                (*_FLAGS, switch("show-capacity", "Node use in relation to its capacity.")),
                aliases=("nodes", "no")),
        Command("pod", "top pod [NAME | -l label] [options]",
                "Display resource (CPU/memory) usage of pods", pod,
                (*_FLAGS, ALL_NAMESPACES, FIELD_SELECTOR, switch("containers", "Usage of each container."),
                 switch("sum", "Print the sum of the resource usage.")), aliases=("pods", "po")),
    ),
)  # fmt: skip
