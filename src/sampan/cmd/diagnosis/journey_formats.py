"""Journeys for other programs: Chrome's and Perfetto's trace events, OTLP/JSON, SVG. Pure."""

from html import escape

from sampan.api.objects import Obj
from sampan.api.rules.journey import Journey, printable
from sampan.cmd.diagnosis.journey_text import SHORT_SECONDS, milliseconds
from sampan.core.telemetry.otlp import request_of
from sampan.core.telemetry.spans import Span

_ROW, _WIDTH, _LEFT = 22, 900, 320
_COLOURS = {"apiserver": "#3b7dd8", "scheduler": "#8a5cd1", "kubelet": "#2f9e6e"}


def perfetto(title: str, journey: Journey) -> Obj:
    """One thread per component; opens in ui.perfetto.dev and chrome://tracing."""
    lanes = list(dict.fromkeys(step.lane for step in journey.steps))
    events: list[Obj] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": title}},
        *(
            {"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": lane}}
            for number, lane in enumerate(lanes, 1)
        ),
    ]
    for step in journey.steps:
        events.append(
            {
                "ph": "X", "pid": 1, "tid": lanes.index(step.lane) + 1, "name": step.name,
                "cat": step.lane, "ts": round(1e6 * (step.began - journey.began), 1),
                "dur": round(1e6 * step.seconds, 1), "args": dict(step.facts),
            }
        )  # fmt: skip
    return {"displayTimeUnit": "ms", "traceEvents": events}


def otlp(trace: Obj) -> Obj:
    """An ExportTraceServiceRequest, as OTLP/HTTP takes it in JSON: as the server exports it."""
    spans = [
        Span(printable(item["lane"]), printable(item["name"]), item["began"], item["ended"],
             item["parent"], {printable(key): printable(str(value))
                              for key, value in item["facts"].items()})
        for item in trace["spans"]
    ]  # fmt: skip
    made: Obj = request_of([(trace["uid"], spans)], {trace["uid"]: trace.get("traceId", "")})
    return made


def svg(title: str, journey: Journey, *, everything: bool = False) -> str:
    """Until it ran; without `everything` short parts of a step are left out, as in the terminal."""
    until = journey.ended if journey.ready is None else journey.ready
    whole = max(until - journey.began, 1e-9)
    steps = [
        step
        for step in journey.steps
        if everything or (step.began <= until and (not step.depth or step.seconds >= SHORT_SECONDS))
    ]
    critical = {(step.lane, step.name) for step in (*journey.critical, *journey.until_ready)}
    height = _ROW * (len(steps) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 100}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="8" y="16" font-weight="bold">{escape(title)}: '
        f"{milliseconds(journey.seconds)}</text>",
    ]
    for row, step in enumerate(steps, 1):
        top = _ROW * row + 6
        left = _LEFT + _WIDTH * min(1.0, (step.began - journey.began) / whole)
        right = _LEFT + _WIDTH * min(1.0, (step.ended - journey.began) / whole)
        colour = _COLOURS.get(step.lane, "#777777")
        shade = 1 if (step.lane, step.name) in critical else 0.45
        label = f"{step.lane}: {'· ' * step.depth}{step.name}"
        lines.append(f'<text x="8" y="{top + 12}">{escape(label)}</text>')
        lines.append(
            f'<rect x="{left:.1f}" y="{top}" width="{max(1.5, right - left):.1f}" height="14" '
            f'fill="{colour}" fill-opacity="{shade}"/>'
        )
        lines.append(
            f'<text x="{right + 5:.1f}" y="{top + 12}" fill="#555555">'
            f"{milliseconds(step.seconds)}</text>"
        )
    return "\n".join([*lines, "</svg>", ""])
