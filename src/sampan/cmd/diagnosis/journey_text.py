"""A journey as text: the waterfall that `sampan trace` prints. Pure."""

from collections.abc import Sequence

from sampan.cmd.diagnosis.journey import Journey, Step, advice_on

BAR_CELLS = 40
SHORT_SECONDS = 0.0005  # parts of a request that are shorter are left out
_MARK, _PLAIN = "█", "▒"


def waterfall(title: str, journey: Journey, *, everything: bool = False) -> list[str]:
    """Steps on the critical path have full bars."""
    lines = [_head(title, journey), ""]
    shown = [
        step
        for step in journey.steps
        if everything or not step.depth or step.seconds >= SHORT_SECONDS
    ]
    width = max((len(_label(step)) for step in shown), default=0)
    lanes = max((len(step.lane) for step in shown), default=0)
    critical = {(step.lane, step.name) for step in journey.critical}
    axis = f"0{milliseconds(journey.seconds):>{BAR_CELLS - 1}}"
    lines.append(f"{'':{lanes}}  {'':{width}}  {'':>10}  {axis}")
    before = ""
    for step in shown:
        lane, before = ("" if step.lane == before else step.lane), step.lane
        mark = _MARK if (step.lane, step.name) in critical else _PLAIN
        bar = _bar(step, journey, mark)
        took = milliseconds(step.seconds)
        lines.append(f"{lane:{lanes}}  {_label(step):{width}}  {took:>10}  {bar}".rstrip())
    return [*lines, "", *_summary(journey)]


def milliseconds(seconds: float) -> str:
    value = 1000 * seconds
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


def _head(title: str, journey: Journey) -> str:
    took = milliseconds(journey.seconds)
    if any(dict(step.facts).get("phase") == "Running" for step in journey.steps):
        return f"{title}: create → Running in {took}"
    reached = journey.reached or "nothing"
    return f"{title}: {reached} {took} after its create; `sampan why {title}` may know why"


def _label(step: Step) -> str:
    facts = dict(step.facts)
    more = facts.get("node") or facts.get("phase") or facts.get("refused by") or ""
    name = "  " * step.depth + step.name
    return f"{name} ({more})" if more else name


def _bar(step: Step, journey: Journey, mark: str) -> str:
    whole = max(journey.seconds, 1e-9)
    begin = int(BAR_CELLS * (step.began - journey.began) / whole)
    if begin >= BAR_CELLS:
        return " " * BAR_CELLS + "→"
    cells = max(1, round(BAR_CELLS * (min(step.ended, journey.ended) - step.began) / whole))
    return " " * begin + mark * min(cells, BAR_CELLS - begin)


def _summary(journey: Journey) -> list[str]:
    lines = []
    whole = max(journey.seconds, 1e-9)
    longest = sorted(journey.critical, key=lambda step: -step.seconds)[:3]
    for step in longest:
        share = f"{100 * step.seconds / whole:.0f} %"
        lines.append(f"{share:>5}  {step.lane}: {step.name}, {milliseconds(step.seconds)}")
    heading = ["What it waited for, the longest first:"] if lines else []
    slowest = journey.slowest
    advice = advice_on(slowest) if slowest is not None else ""
    if slowest is not None and advice:
        lines += ["", f"{slowest.name}: {advice}."]
    if journey.dropped:
        lines += ["", f"{journey.dropped} later steps are not here: the trace was full."]
    return [*heading, *lines]


def rollout(title: str, journeys: Sequence[tuple[str, Journey]]) -> list[str]:
    """Many pods on one axis: a line for each."""
    if not journeys:
        return [f"{title}: no pod of it has a trace"]
    began = min(journey.began for _, journey in journeys)
    ended = max(journey.ended for _, journey in journeys)
    whole = Journey(began, ended, "", (), (), 0)
    width = max(len(name) for name, _ in journeys)
    lines = [f"{title}: {len(journeys)} pods in {milliseconds(whole.seconds)}", ""]
    for name, journey in sorted(journeys, key=lambda item: item[1].began):
        step = Step("", name, journey.began, journey.ended)
        slowest = journey.slowest
        told = f"  {slowest.name} {milliseconds(slowest.seconds)}" if slowest is not None else ""
        bar = f"{_bar(step, whole, _MARK):{BAR_CELLS + 1}}"
        lines.append(f"{name:{width}}  {milliseconds(journey.seconds):>10}  {bar}{told}")
    return lines
