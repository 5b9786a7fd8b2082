"""Tables: objects as rows, so that every client shows them the same way.

Job: which printer a resource has; objects → meta.k8s.io Table. Pure.
Invariant: each row has a cell for every column.
To give a kind columns of its own: write its cells in printers/, add it to kinds.py.
"""

from collections.abc import Iterable
from typing import Any

from sampan.api import convert
from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import BadRequest, value_text
from sampan.api.objects import Obj, meta_of, name_of
from sampan.api.resources import Resource
from sampan.apiserver.printers.layout import CREATED, NAME, Column, Printer
from sampan.core.fast_dataclass import dataclass

_INCLUDE = ("", "None", "Metadata", "Object")


@dataclass(frozen=True, slots=True)
class TableForm:
    """How a table was asked for. A watch sends the columns with its first event only."""

    include: str = ""  # includeObject of the query
    version: str = "v1"
    with_columns: bool = True


_TEMPLATE_NUMBER = "deprecated.daemonset.template.generation"


def columns(resource: Resource) -> list[Obj]:
    """The column definitions of a resource's table."""
    return [_definition(resource, column) for column in _printer(resource).columns]


def _definition(resource: Resource, column: Column) -> Obj:
    from sampan.apiserver.printers.descriptions import description_of  # as the printers

    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": description_of(column, resource.group, resource.plural),
        "priority": column.priority,
    }


def cells(resource: Resource, obj: Obj, now: float) -> list[Any]:
    return _printer(resource).cells(obj, now)


def table_of(
    resource: Resource,
    items: Iterable[Obj],
    now: float,
    form: "TableForm",
    metadata: Obj | None = None,
) -> Obj:
    """`metadata` is that of the list."""
    if form.include not in _INCLUDE:
        raise BadRequest(f"unrecognized includeObject value: {value_text(form.include)}")
    printer = _printer(resource)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": metadata or {},
        "columnDefinitions": columns(resource) if form.with_columns else [],
        "rows": [_row(resource, printer, obj, now, form) for obj in items],
    }


def _row(resource: Resource, printer: Printer, obj: Obj, now: float, form: TableForm) -> Obj:
    # The columns of a HorizontalPodAutoscaler are those of its newest version, as upstream.
    of = convert.in_version(obj, "autoscaling/v2") if resource.group == "autoscaling" else obj
    row: Obj = {"cells": printer.cells(of, now)}
    if resource.plural == "pods" and not resource.group:
        from sampan.apiserver.printers import pods  # loaded by now: its printer was looked up

        conditions = pods.row_conditions(obj)
        if conditions:
            row["conditions"] = conditions
    if form.include == "Object":
        row["object"] = obj
    elif form.include == "None":
        row["object"] = None  # Go writes it in any case
    else:
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": metadata_alone(obj),
        }
    return row


def metadata_alone(obj: Obj) -> Obj:
    """As upstream takes it from its own form of the object, in which a DaemonSet's template has a
    number and no annotation."""
    meta = meta_of(obj)
    annotations = meta.get("annotations") or {}
    if _TEMPLATE_NUMBER not in annotations or obj.get("kind") != "DaemonSet":
        return meta
    kept = {key: value for key, value in annotations.items() if key != _TEMPLATE_NUMBER}
    found = {key: value for key, value in meta.items() if key != "annotations"}
    return {**found, "annotations": kept} if kept else found


def _created_at(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), meta_of(obj).get("creationTimestamp")]


# Kinds without columns of their own show when they were made, not how old they are.
_DEFAULT = Printer((NAME, Column("Created At", "date", description=CREATED)), _created_at)


def _printer(resource: Resource) -> Printer:
    # With the first table: a start shows none.
    from sampan.apiserver.printers.custom_columns import custom_printer
    from sampan.apiserver.printers.kinds import printer_of

    custom = custom_of(resource)
    if custom is not None:
        return custom_printer(custom.columns)
    return printer_of(resource.group, resource.plural) or _DEFAULT
