"""A journey as text: the waterfall that `sampan trace` prints. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from sampan.api.rules.journey import Journey, Step, advice_on

BAR_CELLS = 40
SHORT_SECONDS = 0.0005  # parts of a request that are shorter are left out
MOST_ERROR = 60  # characters of an error, in a line of the chart
MOST_LATER = 12  # steps after Running
_MARK, _PLAIN = "█", "▒"


def waterfall(
    title: str, journey: Journey, down: Journey | None = None, *, everything: bool = False
) -> list[str]:
    """Steps on the critical path have full bars. `down`: what came after it was deleted."""
    until = journey.ended if journey.ready is None else journey.ready
    up = [step for step in journey.steps if step.began <= until]
    whole = replace(journey, ended=until)
    critical = (*journey.critical, *journey.until_ready)
    lines = [_head(title, journey), "", *chart(up, whole, critical, everything=everything)]
    lines += ["", *_summary(journey)]
    gone = down.began if down is not None else float("inf")
    lines += _later([step for step in journey.steps if until < step.began < gone], journey.began)
    if down is not None:
        lines += ["", *way_down("", down, everything=everything)]
    return lines


def way_down(title: str, down: Journey, *, everything: bool = False) -> list[str]:
    head = f"{title}: delete" if title else "delete"
    gone = f"{head} → gone in {milliseconds(down.seconds)}"
    return [gone, "", *chart(down.steps, down, down.critical, everything=everything), "",
            *_waits(down.critical, down.seconds)]  # fmt: skip


def chart(
    steps: Sequence[Step], whole: Journey, critical: Sequence[Step], *, everything: bool
) -> list[str]:
    steps_shown = [
        step for step in steps if everything or not step.depth or step.seconds >= SHORT_SECONDS
    ]
    width = max((len(_label(step)) for step in steps_shown), default=0)
    lanes = max((len(step.lane) for step in steps_shown), default=0)
    marked = {(step.lane, step.name) for step in critical}
    axis = f"0{milliseconds(whole.seconds):>{BAR_CELLS - 1}}"
    lines = [f"{'':{lanes}}  {'':{width}}  {'':>10}  {axis}"]
    before = ""
    for step in steps_shown:
        lane, before = ("" if step.lane == before else step.lane), step.lane
        mark = _MARK if (step.lane, step.name) in marked else _PLAIN
        bar = _bar(step, whole, mark)
        took = milliseconds(step.seconds)
        lines.append(f"{lane:{lanes}}  {_label(step):{width}}  {took:>10}  {bar}".rstrip())
        if everything and (costs := dict(step.facts).get("costs")):
            lines.append(f"{'':{lanes}}  {'':{width}}  {'':>10}  {costs}")
    return lines


def milliseconds(seconds: float) -> str:
    value = 1000 * seconds
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


def _head(title: str, journey: Journey) -> str:
    took = milliseconds(journey.seconds)
    since = "create" if journey.created else "start"
    if journey.stopped is None and journey.reached == "Succeeded":
        return f"{title}: {since} → Succeeded in {took}"
    if any(dict(step.facts).get("phase") == "Running" for step in journey.steps):
        later = ""
        if journey.ready is not None:
            later = f", Ready in {milliseconds(journey.ready - journey.began)}"
        return f"{title}: {since} → Running in {took}{later}"
    reached = journey.reached or "nothing"
    return f"{title}: {reached} {took} after its {since}; `sampan why {title}` may know why"


def _label(step: Step) -> str:
    facts = dict(step.facts)
    details = [facts[key] for key in ("node", "phase", "refused by", "result") if facts.get(key)][
        :1
    ]
    if "bytes" in facts:
        details.append(f"pulled {facts['bytes']} bytes")
    details += [f"{word} {facts[word]}" for word in ("exit code", "restart") if word in facts]
    if "error" in facts:
        details.append(facts["error"][:MOST_ERROR])
    name = "  " * step.depth + step.name
    return f"{name} ({', '.join(details)})" if details else name


def _bar(step: Step, journey: Journey, mark: str) -> str:
    whole = max(journey.seconds, 1e-9)
    begin = int(BAR_CELLS * (step.began - journey.began) / whole)
    if begin >= BAR_CELLS:
        return " " * BAR_CELLS + "→"
    cells = max(1, round(BAR_CELLS * (min(step.ended, journey.ended) - step.began) / whole))
    return " " * begin + mark * min(cells, BAR_CELLS - begin)


def _summary(journey: Journey) -> list[str]:
    lines = _waits(journey.critical, journey.seconds)
    if journey.ready is not None:
        took = journey.ready - journey.ended
        lines += ["", f"From Running to Ready, {milliseconds(took)}:"]
        lines += _waits(journey.until_ready, took)[1:]
    if journey.stopped is not None:
        step = journey.stopped
        lines += ["", f"It stopped at: {step.lane}: {_label(step).strip()}."]
    if journey.dropped:
        lines += ["", f"{journey.dropped} steps in between are not here: the trace was full."]
    return lines


def _waits(path: Sequence[Step], seconds: float) -> list[str]:
    """The longest of a critical path, and what would make the slowest faster."""
    if not path:
        return []
    lines = ["What it waited for, the longest first:"]
    whole = max(seconds, 1e-9)
    for step in sorted(path, key=lambda step: -step.seconds)[:3]:
        share = f"{100 * step.seconds / whole:.0f} %"
        lines.append(f"{share:>5}  {step.lane}: {step.name}, {milliseconds(step.seconds)}")
    slowest = max(path, key=lambda step: step.seconds)
    advice = advice_on(slowest)
    return [*lines, "", f"{slowest.name}: {advice}."] if advice else lines


def _later(steps: Sequence[Step], began: float) -> list[str]:
    """What happened to a pod that ran: restarts, probes. Requests and syncs say nothing new."""
    told = [
        step
        for step in sorted(steps, key=lambda step: step.began)
        if step.name.endswith(" ran") or step.name.startswith("back-off") or "probe" in step.name
    ]
    if not told:
        return []
    lines = ["", "Later:"]
    if len(told) > MOST_LATER:
        lines.append(f"  … {len(told) - MOST_LATER} steps …")
    for step in told[-MOST_LATER:]:
        at, took = milliseconds(step.began - began), milliseconds(step.seconds)
        lines.append(f"  {'+' + at:>12}  {took:>10}  {step.lane}: {_label(step).strip()}")
    return lines


def rollout(title: str, journeys: Sequence[tuple[str, Journey]], what: str = "pods") -> list[str]:
    """Many pods on one axis: a line for each."""
    if not journeys:
        return [f"{title}: no pod of it has a trace"]
    began = min(journey.began for _, journey in journeys)
    ended = max(journey.ended for _, journey in journeys)
    whole = Journey(began, ended, "", (), (), 0)
    width = max(len(name) for name, _ in journeys)
    lines = [f"{title}: {len(journeys)} {what} in {milliseconds(whole.seconds)}", ""]
    for name, journey in sorted(journeys, key=lambda item: item[1].began):
        step = Step("", name, journey.began, journey.ended)
        slowest = journey.slowest
        told = f"  {slowest.name} {milliseconds(slowest.seconds)}" if slowest is not None else ""
        bar = f"{_bar(step, whole, _MARK):{BAR_CELLS + 1}}"
        lines.append(f"{name:{width}}  {milliseconds(journey.seconds):>10}  {bar}{told}")
    return lines


def side_by_side(journeys: Sequence[tuple[str, Journey]]) -> Journey:
    """Many ways as one, a lane for each: for pictures."""
    steps = tuple(
        replace(step, lane=name)
        for name, journey in sorted(journeys, key=lambda item: item[1].began)
        for step in journey.steps
    )
    began = min((journey.began for _, journey in journeys), default=0.0)
    ended = max((journey.ended for _, journey in journeys), default=began)
    critical = tuple(
        replace(step, lane=name) for name, journey in journeys for step in journey.critical
    )
    return Journey(began, ended, "", steps, critical, 0)
