"""Descriptions: indented lines whose tabs become columns.

Job: collect lines and blocks; lay each block out as kubectl's describe does.
"""

from sampan.api.objects import Obj, annotations_of, labels_of
from sampan.cli.printers.tabs import align

LONGEST_ANNOTATION = 140
HIDDEN = "kubectl.kubernetes.io/last-applied-configuration"


class Writer:
    def __init__(self) -> None:
        self._blocks: list[list[list[str]]] = [[]]

    def line(self, level: int, *cells: object) -> None:
        texts = [str(cell) for cell in cells]
        texts[0] = "  " * level + texts[0]
        first, *rest = "\t".join(texts).split("\n")
        self._blocks[-1].append(first.split("\t"))
        for more in rest:
            self._blocks[-1].append(more.split("\t"))

    def flush(self) -> None:
        """What follows is laid out by itself."""
        if self._blocks[-1]:
            self._blocks.append([])

    def text(self) -> str:
        return "".join(align(block, minimum=0, padding=2) for block in self._blocks if block)

    def tabbed_text(self) -> str:
        """The cells as they are, a tab between them."""
        return "".join("\t".join(row) + "\n" for block in self._blocks for row in block)

    def labels(self, title: str, labels: dict[str, str] | None) -> None:
        pairs = [f"{key}={labels[key]}" for key in sorted(labels or {})] if labels else []
        self.many(title, pairs)

    def many(self, title: str, values: list[str], level: int = 0) -> None:
        """The first beside the title, the others below it."""
        self.line(level, title, values[0] if values else "<none>")
        for value in values[1:]:
            self.line(0, "  " * level if level else "", value)

    def annotations(self, obj: Obj, title: str = "Annotations:") -> None:
        found = {key: text for key, text in annotations_of(obj).items() if key != HIDDEN}
        if not found:
            self.line(0, title, "<none>")
            return
        lead = title
        for key in sorted(found):
            value = found[key].removesuffix("\n")
            if len(value) + len(key) + 2 > LONGEST_ANNOTATION or "\n" in value:
                self.line(0, lead, f"{key}:")
                for part in value.split("\n"):
                    self.line(0, "", f"  {_shorten(part)}")
            else:
                self.line(0, lead, f"{key}: {value}")
            lead = ""

    def head(self, obj: Obj, *, namespaced: bool = True, annotations: bool = True) -> None:
        """Name, namespace, labels, annotations: how most descriptions begin."""
        meta = obj["metadata"]
        self.line(0, "Name:", meta["name"])
        if namespaced:
            self.line(0, "Namespace:", meta.get("namespace") or "")
        self.labels("Labels:", labels_of(obj))
        if annotations:
            self.annotations(obj)


def _shorten(text: str) -> str:
    limit = LONGEST_ANNOTATION - 2
    return text if len(text) <= limit else text[:limit] + "..."


def selector_text(selector: Obj | None) -> str:
    """A LabelSelector in one line."""
    if selector is None:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for entry in selector.get("matchExpressions") or []:
        values = ",".join(sorted(entry.get("values") or []))
        match entry["operator"]:
            case "In":
                parts.append(f"{entry['key']} in ({values})")
            case "NotIn":
                parts.append(f"{entry['key']} notin ({values})")
            case "Exists":
                parts.append(entry["key"])
            case _:
                parts.append(f"!{entry['key']}")
    return ",".join(parts) or "<none>"


def pairs_text(pairs: dict[str, str] | None, none: str = "<none>") -> str:
    if not pairs:
        return none
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs))


def truth(value: object) -> str:
    return "True" if value else "False"


def long_time(text: str | None, unset: str = "<unset>") -> str:
    """`Mon, 02 Jan 2006 15:04:05 +0000`."""
    if not text:
        return unset
    from datetime import datetime

    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment.strftime("%a, %d %b %Y %H:%M:%S +0000")
