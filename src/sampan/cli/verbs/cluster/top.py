"""`top node|pod`: use of CPU, memory and swap.

Job: ask the metrics API, show the figures, sorted where asked.
"""

from sampan.api import quantity
from sampan.api.objects import Obj, seconds_of
from sampan.api.quantity import Quantity
from sampan.api.rules.selectors import (
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from sampan.cli.command import Command
from sampan.cli.common_flags import ALL_NAMESPACES, FIELD_SELECTOR, SELECTOR, switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import selection
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session
from sampan.core.durations import NANO, duration_text

METRICS = "/apis/metrics.k8s.io/v1beta1"
MEASURED_AFTER_SECONDS = 120.0  # a pod older than that should have figures
UNKNOWN = "<unknown>"


def _name(values: Values, usage: str) -> str:
    if len(values.arguments) > 1:
        raise UsageError(usage)
    return values.arguments[0] if values.arguments else ""


def _check(session: Session, values: Values, name: str, what: str) -> None:
    if values["sort-by"] not in ("", "cpu", "memory"):
        raise CliError("--sort-by accepts only cpu or memory")
    if name and (values["selector"] or values.get("field-selector")):
        raise CliError(f"only one of NAME or {what} can be provided")
    try:
        parse_label_selector(values.text("selector"))
        if values.get("field-selector"):
            parse_field_selector(values.text("field-selector"))
    except SelectorError as error:
        raise CliError(str(error)) from error
    if not any(resource.group == "metrics.k8s.io" for resource in session.discovery.resources):
        raise CliError("Metrics API not available")


def _ask(session: Session, values: Values, path: str, name: str) -> list[Obj]:
    if name:
        return [session.api.json("GET", f"{path}/{name}")]
    found: list[Obj] = session.api.json("GET", path, selection.query_of(values)).get("items") or []
    return found


def _measured(values: Values) -> tuple[str, ...]:
    return ("cpu", "memory", "swap") if values["show-swap"] else ("cpu", "memory")


def _figure(resource: str, amount: Quantity) -> str:
    return f"{amount.milli()}m" if resource == "cpu" else f"{amount.value() // 2**20}Mi"


def _usage(usage: Obj, resource: str) -> Quantity:
    return quantity.value_of(usage.get(resource) or "0")


def _order(values: Values, name: str, usages: list[Obj]) -> tuple[object, ...]:
    """Most first where a resource is named, else by name."""
    by = values.text("sort-by")
    if not by:
        return (name,)
    return (-sum(_usage(usage, by).nanos for usage in usages),)


def node(session: Session, values: Values) -> None:
    name = _name(values, "node [NAME | -l label]")
    _ = session.connection
    _check(session, values, name, "--selector")
    items = _ask(session, values, f"{METRICS}/nodes", name)
    if not items:
        raise CliError("metrics not available yet")
    nodes = _nodes(session, values, name)
    items.sort(key=lambda item: _order(values, item["metadata"]["name"], [item["usage"]]))
    rows = []
    for item in items:
        own = nodes.pop(item["metadata"]["name"], None)
        rows.append(_node_row(values, item, own))
    measured = _measured(values)
    rows += [[missing, *[UNKNOWN] * (2 * len(measured))] for missing in nodes]
    if not values["no-headers"]:
        titles = ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]
        titles += ["SWAP(bytes)", "SWAP(%)"] if values["show-swap"] else []
        rows.insert(0, titles)
    _write(session, rows)


def _nodes(session: Session, values: Values, name: str) -> dict[str, Obj]:
    if name:
        found = [session.api.json("GET", f"/api/v1/nodes/{name}")]
    else:
        query = selection.query_of(values)
        found = session.api.json("GET", "/api/v1/nodes", query).get("items") or []
    return {entry["metadata"]["name"]: entry for entry in found}


def _node_row(values: Values, item: Obj, node: Obj | None) -> list[str]:
    status = (node or {}).get("status") or {}
    sizes = dict(status.get("capacity" if values["show-capacity"] else "allocatable") or {})
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if swap is not None:
        sizes["swap"] = str(swap)
    cells = [item["metadata"]["name"]]
    for resource in _measured(values):
        if resource == "swap" and node is not None and swap is None:
            cells += [UNKNOWN, UNKNOWN]
            continue
        amount = _usage(item["usage"], resource)
        cells.append(_figure(resource, amount))
        if resource in sizes:
            whole = quantity.value_of(sizes[resource])
            share = amount.milli() / whole.milli() * 100 if whole.milli() else 0.0
            cells.append(f"{int(share)}%")
    return cells


def pod(session: Session, values: Values) -> None:
    name = _name(values, "pod [NAME | -l label]")
    session.check_context()
    _ = session.connection
    _check(session, values, name, "selector")
    everywhere = bool(values["all-namespaces"])
    where = "" if everywhere else f"/namespaces/{session.namespace}"
    items = _ask(session, values, f"{METRICS}{where}/pods", name)
    if not items:
        _check_unmeasured(session, values, name)
        return
    items.sort(key=lambda item: _pod_order(values, item))
    rows = [row for item in items for row in _pod_rows(item, values)]
    measured = _measured(values)
    columns = ["NAME", "CPU(cores)", "MEMORY(bytes)", "SWAP(bytes)"][: len(measured) + 1]
    width = len(columns)
    if not values["no-headers"]:
        lead = ["NAMESPACE"] if everywhere else []
        lead += ["POD"] if values["containers"] else []
        width += len(lead)
        rows.insert(0, [*lead, *columns])
    if values["sum"]:
        usages = [one["usage"] for item in items for one in item.get("containers") or []]
        # As kubectl counts the empty cells before them.
        rows.append([*[""] * (width - 2), "________", "________"])
        rows.append([*[""] * (width - 2), *_sums(values, usages)])
    _write(session, rows)


def _pod_order(values: Values, item: Obj) -> tuple[object, ...]:
    meta = item["metadata"]
    usages = [one["usage"] for one in item.get("containers") or []]
    name = f"{meta['namespace']}/{meta['name']}" if values["all-namespaces"] else meta["name"]
    return _order(values, name, usages)


def _sums(values: Values, usages: list[Obj]) -> list[str]:
    return [
        _figure(resource, sum((_usage(usage, resource) for usage in usages), quantity.ZERO))
        for resource in _measured(values)
    ]


def _pod_rows(item: Obj, values: Values) -> list[list[str]]:
    meta, containers = item["metadata"], list(item.get("containers") or [])
    lead = [meta["namespace"]] if values["all-namespaces"] else []
    if not values["containers"]:
        return [[*lead, meta["name"], *_sums(values, [one["usage"] for one in containers])]]
    containers.sort(key=lambda one: _order(values, one["name"], [one["usage"]]))
    return [
        [*lead, meta["name"], one["name"], *_sums(values, [one["usage"]])] for one in containers
    ]


def _check_unmeasured(session: Session, values: Values, name: str) -> None:
    """Nothing was measured: is there nothing, is it too young, or does something not work?"""
    path = f"/api/v1/namespaces/{session.namespace}/pods"
    if name:
        pods = [session.api.json("GET", f"{path}/{name}")]
    else:
        pods = session.api.json("GET", path, selection.query_of(values)).get("items") or []
    for entry in pods:
        meta = entry["metadata"]
        age = session.clock.now() - seconds_of(meta["creationTimestamp"])
        if age > MEASURED_AFTER_SECONDS:
            raise CliError(
                f"Metrics not available for pod {meta['namespace']}/{meta['name']}, "
                f"age: {duration_text(int(age * NANO))}"
            )
    if pods:
        raise CliError("metrics not available yet")
    where = "" if values["all-namespaces"] else f" in {session.namespace} namespace."
    session.complain(f"No resources found{where}")


def _write(session: Session, table: list[list[str]]) -> None:
    """As kubectl: every cell ends in a tab, the last one too."""
    session.write(align([[*row, ""] for row in table]))


_FLAGS = (
    SELECTOR, switch("no-headers", "Don't print headers."),
    Flag("sort-by", usage="Sort by cpu or memory."),
    switch("show-swap", "Show the use of swap, too."),
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
