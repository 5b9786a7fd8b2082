"""Whether something grows: a fit of samples over time, as figures, and the same as a picture.

Job: samples → growth per hour with its bounds (Theil and Sen) → a verdict, a table, an SVG.
Invariant: grown is only what the fit says with 95 % certainty, and by more than its share.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

SHARE = 0.02  # of its level, that something may grow by from the beginning to the end
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 440, 150, 70, 24, 22


@dataclass(frozen=True)
class Fit:
    level: float  # median
    per_hour: float
    least: float  # of growth per hour, with 95 % certainty
    most: float
    hours: float

    @property
    def growth(self) -> float:
        return self.per_hour * self.hours

    @property
    def is_flat(self) -> bool:
        return self.least <= 0 or self.growth <= max(SHARE * self.level, 1.0)


def fitted(hours: Sequence[float], values: Sequence[float]) -> Fit:
    """The median of the slopes between all pairs; its bounds are Kendall's."""
    count = len(values)
    slopes = sorted(
        (values[j] - values[i]) / (hours[j] - hours[i])
        for i in range(count)
        for j in range(i + 1, count)
    )
    spread = 1.96 * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, round((len(slopes) - spread) / 2) - 1)
    high = min(len(slopes) - 1, round((len(slopes) + spread) / 2))
    return Fit(median(values), median(slopes), slopes[low], slopes[high], hours[-1] - hours[0])


def table(fits: dict[str, Fit]) -> str:
    lines = ["| what | level | growth per hour | 95 % | flat |", "|---|---:|---:|---:|---|"]
    lines += [
        f"| {name} | {fit.level:,.4g} | {fit.per_hour:+,.3g} | {fit.least:+,.3g} to "
        f"{fit.most:+,.3g} | {'yes' if fit.is_flat else 'NO'} |"
        for name, fit in fits.items()
    ]
    return "\n".join(lines)


def svg(hours: Sequence[float], rows: dict[str, Sequence[float]], warm_hours: float) -> str:
    """A small picture for each row; what was before the fit is grey."""
    high = HEIGHT * math.ceil(len(rows) / 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {high}" '
        f'font-family="sans-serif" font-size="11">',
        f'<rect width="{2 * WIDTH}" height="{high}" fill="white"/>',
    ]
    for number, (name, values) in enumerate(rows.items()):
        at_x, at_y = WIDTH * (number % 2), HEIGHT * (number // 2)
        parts.append(f'<g transform="translate({at_x} {at_y})">')
        parts += _small(name, hours, values, warm_hours)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _small(
    name: str, hours: Sequence[float], values: Sequence[float], warm_hours: float
) -> list[str]:
    most = max(values) * 1.1 or 1.0
    right, bottom = WIDTH - 20, HEIGHT - BOTTOM

    def place(hour: float, value: float) -> str:
        x = LEFT + hour / hours[-1] * (right - LEFT)
        return f"{x:.1f},{bottom - value / most * (bottom - TOP):.1f}"

    points = [place(*point) for point in zip(hours, values, strict=True)]
    warm = sum(hour <= warm_hours for hour in hours)
    minutes = round(hours[-1] * 60)
    return [
        f'<text x="{LEFT}" y="{TOP - 8}">{name}</text>',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="black"/>',
        f'<text x="{LEFT - 4}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{LEFT - 4}" y="{TOP + 8}" text-anchor="end">{most:,.4g}</text>',
        f'<text x="{right}" y="{bottom + 14}" text-anchor="end">{minutes} min</text>',
        f'<polyline points="{" ".join(points[:warm])}" fill="none" stroke="#aaaaaa"/>',
        f'<polyline points="{" ".join(points[max(0, warm - 1) :])}" fill="none" stroke="#4477aa"/>',
    ]
