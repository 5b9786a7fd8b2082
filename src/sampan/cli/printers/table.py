"""Tables that the server made (meta.k8s.io Table), as lines.

Job: choose the columns, add namespace, kind and labels, keep one header per kind.
"""

import re
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.printers.tabs import align
from sampan.core.fast_dataclass import dataclass

# What a server that knows tables is asked for.
ACCEPT = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@dataclass(frozen=True, slots=True)
class TableStyle:
    wide: bool = False
    headers: bool = True
    namespaces: bool = False
    labels: bool = False
    label_columns: tuple[str, ...] = ()

    def of(self, namespaced: bool) -> "TableStyle":
        """For objects of one kind: without namespaces where they have none."""
        if namespaced or not self.namespaces:
            return self
        return TableStyle(self.wide, self.headers, False, self.labels, self.label_columns)


def columns_of(table: Obj, style: TableStyle) -> list[int]:
    definitions = table.get("columnDefinitions") or []
    return [
        index
        for index, column in enumerate(definitions)
        if style.wide or not column.get("priority")
    ]


def header_of(table: Obj, style: TableStyle) -> list[str]:
    definitions = table.get("columnDefinitions") or []
    cells = [definitions[index]["name"].upper() for index in columns_of(table, style)]
    if style.namespaces:
        cells.insert(0, "NAMESPACE")
    cells += [label.rpartition("/")[2].upper() for label in style.label_columns]
    if style.labels:
        cells.append("LABELS")
    return cells


def row_of(table: Obj, row: Obj, style: TableStyle, kind: str = "") -> list[str]:
    cells = [cell_text(row["cells"][index]) for index in columns_of(table, style)]
    meta = (row.get("object") or {}).get("metadata") or {}
    if kind and cells:
        cells[0] = f"{kind}/{cells[0]}"
    if style.namespaces:
        cells.insert(0, meta.get("namespace") or "")
    labels = meta.get("labels") or {}
    cells += [labels.get(label, "") for label in style.label_columns]
    if style.labels:
        cells.append(labels_text(labels))
    return cells


def labels_text(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or "<none>"


def cell_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    first = re.split(r"[\f\n\r]", text, maxsplit=1)[0]
    return first.replace("\t", " ").replace("\x1b", "^[") + ("..." if first != text else "")


def table_text(table: Obj, style: TableStyle, kind: str = "", *, header: bool = True) -> str:
    rows = [row_of(table, row, style, kind) for row in table.get("rows") or []]
    if header and style.headers:
        rows.insert(0, header_of(table, style))
    return align(rows)
