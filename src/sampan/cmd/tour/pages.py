"""A page of the tour: what happens at a step, who does it, what the pod is like now. Pure."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from sampan.api.objects import Obj, name_of, namespace_of, spec_of, status_of
from sampan.api.rules.journey import printable
from sampan.cli.printers.yaml_text import to_yaml
from sampan.cmd.diagnosis.journey_text import milliseconds
from sampan.cmd.tour.lesson import PACKAGE, UPSTREAM, LessonStep, line_of

WIDTH = 96


def page(step: LessonStep, count: int, spans: Sequence[Obj], *, links: bool) -> list[str]:
    """`spans`: of the pod's trace, those that are of this step. `links`: for a terminal."""
    original = step.original
    file, _, function = original.function.partition(":")
    line = line_of(original.function)
    here = _link(f"{file}:{line}", f"file://{PACKAGE / file}" if links else "")
    there = _link(original.file, UPSTREAM + original.file if links else "")
    return [
        f"{step.number}/{count}  {step.title}", "",
        *_paragraph(original.idea), "",
        "  Where it happens:",
        *_paragraph(step.text.replace("`", "")), "",
        f"  in sampan      {here}  {function}",
        f"  in Kubernetes  {there}",
        *_paragraph(original.does, " " * 17),
        *(_took(span) for span in spans),
    ]  # fmt: skip


def spans_of(step: LessonStep, trace: Obj | None) -> list[Obj]:
    """In the order in which they began; of a step that was repeated the first ones."""
    heads = step.original.spans
    found: list[Obj] = []
    for span in sorted((trace or {}).get("spans") or (), key=lambda span: span["began"]):
        name = span["name"]
        if heads and name.startswith(heads) and name not in {item["name"] for item in found}:
            found.append(span)
    return found


def pod_lines(pod: Obj, before: Sequence[str] = ()) -> list[str]:
    """What of it changes on its way; lines that are new since the last page are marked."""
    lines = [printable(line) for line in to_yaml(_gist(pod)).splitlines()]
    return [f"{'+' if before and line not in before else ' '} {line}" for line in lines]


def plain_lines(pod: Obj) -> list[str]:
    return [printable(line) for line in to_yaml(_gist(pod)).splitlines()]


def _gist(pod: Obj) -> Obj:
    meta, spec, status = pod.get("metadata") or {}, spec_of(pod), status_of(pod)
    conditions = [
        item["type"] for item in status.get("conditions") or () if item.get("status") == "True"
    ]
    gist: Obj = {
        "pod": f"{namespace_of(pod)}/{name_of(pod)}", "uid": meta.get("uid"),
        "resourceVersion": meta.get("resourceVersion"),
        "writtenBy": sorted({item.get("manager") for item in meta.get("managedFields") or ()}),
        "schedulingGates": [item["name"] for item in spec.get("schedulingGates") or ()],
        "nodeName": spec.get("nodeName"), "phase": status.get("phase"),
        "qosClass": status.get("qosClass"), "conditionsTrue": conditions,
        "podIP": status.get("podIP"),
        "containers": {
            item["name"]: next(iter(item.get("state") or {"": None}))
            for item in status.get("containerStatuses") or ()
        },
    }  # fmt: skip
    return {key: value for key, value in gist.items() if value}


def _took(span: Obj) -> str:
    took = milliseconds(span["ended"] - span["began"])
    return f"  {took:>12}   {printable(span['lane'])}: {printable(span['name'])}"


def _paragraph(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _link(text: str, target: str) -> str:
    """What terminals make a link of (OSC 8), and print as text where they do not."""
    return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\" if target else text


def source_note() -> str:
    return f"Files are below {Path(PACKAGE)}."
