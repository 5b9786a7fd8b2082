"""The figures of growth as a picture and as a table.

Job: figures → SVG, with one line per workload on logarithmic axes; figures → Markdown.
"""

import math
from collections.abc import Sequence

from sampan.core.fast_dataclass import dataclass

WIDTH, HEIGHT, LEFT, TOP, ROW = 900, 520, 60, 20, 15
COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#888888")


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    sizes: Sequence[int]
    seconds: Sequence[float]  # of processor time
    kib: float  # of the largest
    cpu: float | None  # exponents
    memory: float | None


def exponent_text(found: float | None) -> str:
    return "–" if found is None else f"{found:.2f}"


def table(curves: Sequence[Curve]) -> str:
    lines = [
        "| workload | N | CPU s | CPU ms/N | KiB/N | exponent of CPU | of memory |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for curve in curves:
        n, seconds = curve.sizes[-1], curve.seconds[-1]
        lines.append(
            f"| {curve.name} | {n} | {seconds:.2f} | {seconds / n * 1000:.2f} | {curve.kib / n:.1f}"
            f" | {exponent_text(curve.cpu)} | {exponent_text(curve.memory)} |"
        )
    return "\n".join(lines)


def svg(curves: Sequence[Curve]) -> str:
    points = [
        (n, max(seconds, 1e-3))
        for curve in curves
        for n, seconds in zip(curve.sizes, curve.seconds, strict=True)
    ]
    if not points:
        return ""
    right, bottom = WIDTH - 320, HEIGHT - 40
    x = _Scale([n for n, _ in points], LEFT, right)
    y = _Scale([seconds for _, seconds in points], bottom, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="black"/>',
        f'<text x="{right - 20}" y="{bottom + 28}">N</text>',
        f'<text x="4" y="{TOP + 4}">CPU s</text>',
    ]
    parts += [
        f'<text x="{x(n):.0f}" y="{bottom + 14}" text-anchor="middle">{n}</text>'
        for n in sorted({n for n, _ in points})
    ]
    parts += [
        f'<text x="{LEFT - 4}" y="{y(10.0**power):.0f}" text-anchor="end">{10.0**power:g}</text>'
        for power in range(-3, 3)
        if min(s for _, s in points) <= 10.0**power <= max(s for _, s in points)
    ]
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        line = " ".join(
            f"{x(n):.1f},{y(max(seconds, 1e-3)):.1f}"
            for n, seconds in zip(curve.sizes, curve.seconds, strict=True)
        )
        at = TOP + number * ROW
        text = f"{curve.name}: {exponent_text(curve.cpu)}"
        parts += [
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
            f'<path d="M{right + 20} {at}h16" stroke="{colour}" stroke-width="3"/>',
            f'<text x="{right + 42}" y="{at + 4}">{text}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """Logarithmic, from values to a place between two."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        self._least, self._most = math.log(min(values)), math.log(max(values))
        self._first, self._last = first, last

    def __call__(self, value: float) -> float:
        share = (math.log(value) - self._least) / ((self._most - self._least) or 1.0)
        return self._first + share * (self._last - self._first)
