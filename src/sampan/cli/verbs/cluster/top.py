"""`top node|pod`: use of CPU and memory.

Job: ask the metrics API, show the figures, sorted where asked.
"""

from sampan.api import quantity
from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import ALL_NAMESPACES, FIELD_SELECTOR, SELECTOR, switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import selection
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session

METRICS = "/apis/metrics.k8s.io/v1beta1"


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
    sizes = {
        entry["metadata"]["name"]: (entry.get("status") or {}).get("allocatable") or {}
        for entry in session.api.json("GET", "/api/v1/nodes").get("items") or []
    }
    rows = []
    for item in items:
        name, cpu, memory = item["metadata"]["name"], _cpu(item["usage"]), _memory(item["usage"])
        whole = sizes.get(name) or {}
        cells = [
            name, f"{cpu}m", _share(cpu, quantity.value_of(whole.get("cpu") or "0").milli()),
            f"{memory // 2**20}Mi", _share(memory, _memory(whole)),
        ]  # fmt: skip
        rows.append((name, cpu, memory, cells))
    table = _in_order(rows, values)
    if not values["no-headers"]:
        table.insert(0, ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"])
    session.write(align(table))


def _share(part: int, whole: int) -> str:
    return f"{part * 100 // whole}%" if whole else "<unknown>"


def pod(session: Session, values: Values) -> None:
    _check(session, values)
    if len(values.arguments) > 1:
        raise UsageError("pod [NAME | -l label]")
    everywhere = bool(values["all-namespaces"])
    path = f"{METRICS}/pods" if everywhere else f"{METRICS}/namespaces/{session.namespace}/pods"
    items = _ask(session, values, path)
    if not items:
        where = "" if everywhere else f" in {session.namespace} namespace."
        session.complain(f"No resources found{where}")
        return
    rows = []
    for item in items:
        containers = item.get("containers") or []
        cpu = sum(_cpu(container["usage"]) for container in containers)
        memory = sum(_memory(container["usage"]) for container in containers)
        name = item["metadata"]["name"]
        lead = [item["metadata"]["namespace"]] if everywhere else []
        key = "/".join([*lead, name])
        if values["containers"]:
            for container in containers:
                own_cpu, own_memory = _cpu(container["usage"]), _memory(container["usage"])
                cells = [*lead, name, container["name"], f"{own_cpu}m", f"{own_memory // 2**20}Mi"]
                rows.append((f"{key}/{container['name']}", own_cpu, own_memory, cells))
        else:
            rows.append((key, cpu, memory, [*lead, name, f"{cpu}m", f"{memory // 2**20}Mi"]))
    table = _in_order(rows, values)
    if not values["no-headers"]:
        titles = ["NAMESPACE"] if everywhere else []
        titles += ["POD", "NAME"] if values["containers"] else ["NAME"]
        table.insert(0, [*titles, "CPU(cores)", "MEMORY(bytes)"])
    session.write(align(table))


_FLAGS = (
    SELECTOR, switch("no-headers", "Don't print headers."),
    Flag("sort-by", usage="Sort by cpu or memory."),
    switch("use-protocol-buffers", "Accepted: answers are always JSON.", default=True),
    switch("show-capacity", "Node use in relation to its capacity."),
)  # fmt: skip
TOP = Command(
    "top", "top [flags] [options]", "Display resource (CPU/memory) usage.",
    children=(
        Command("node", "top node [NAME | -l label] [options]",
                "Display resource (CPU/memory) usage of nodes", node, _FLAGS, aliases=("nodes", "no")),
        Command("pod", "top pod [NAME | -l label] [options]",
                "Display resource (CPU/memory) usage of pods", pod,
                (*_FLAGS, ALL_NAMESPACES, FIELD_SELECTOR, switch("containers", "Usage of each container."),
                 switch("sum", "Print the sum of the resource usage.")), aliases=("pods", "po")),
    ),
)  # fmt: skip
