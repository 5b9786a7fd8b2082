"""A report of the lab as tables of text. Pure.

Job: one report, or two beside each other → lines.
"""

from collections.abc import Mapping, Sequence

from sampan.api.objects import Obj
from sampan.api.rules.durations import human_duration
from sampan.cmd.cluster.table import table
from sampan.cmd.lab import comparison

BARS = " ▁▂▃▄▅▆▇█"
WIDTH = 60
MOST_ROWS = 12  # of nodes, of plugins, of preemptions


def lines(reports: Sequence[Obj]) -> list[str]:
    found: list[str] = []
    for report in reports:
        found += [*_report(report), ""]
    if len(reports) == 2:
        found += _comparison(*reports)
    return [_plain(line) for line in found]


def percent(part: float) -> str:
    return f"{100 * part:.1f}%"


def amount(value: float, unit: str) -> str:
    match unit:
        case "%":
            return percent(value)
        case "s":
            return f"{value:.3f}" if value < 1 else human_duration(value)
        case _:
            return f"{value:g}"


def _report(report: Obj) -> list[str]:
    totals = report["totals"]
    told = ", ".join(f"{totals[name]} {name}" for name in totals if name != "pods" and totals[name])
    waits = ", ".join(f"{name} {amount(value, 's')}" for name, value in report["waits"].items())
    found = [
        f"=== {report['title']}: {human_duration(report['seconds'])}, seed {report['seed']}",
        f"{totals['pods']} pods: {told or 'none'}",
        f"waited: {waits}",
        "",
    ]
    for name, mean in report["utilisation"].items():
        points = [point["used"][name] for point in report["timeline"]]
        found.append(f"{name:<18} {_line(points, 1.0)} mean {percent(mean)}, "
                     f"peak {percent(report['peak'][name])}")  # fmt: skip
    pending = [float(point["pending"]) for point in report["timeline"]]
    found += [f"{'pending pods':<18} {_line(pending, max(pending, default=0.0))} "
              f"at most {max(pending, default=0.0):g}", ""]  # fmt: skip
    found += [*_streams(report), "", *_nodes(report), *_pending(report)]
    return [*found, *_preemptions(report), *_plugins(report)]


def _streams(report: Obj) -> list[str]:
    heads = ("STREAM", "PODS", "SUCCEEDED", "PENDING", "PREEMPTED", "P50", "P95", "WENT TO")
    return table(heads, [
        (stream["name"] or "-", str(stream["pods"]), str(stream["succeeded"]),
         str(stream["pending"]), str(stream["preempted"]), amount(stream["waits"]["p50"], "s"),
         amount(stream["waits"]["p95"], "s"), _counts(stream["types"]))
        for stream in report["streams"]
    ])  # fmt: skip


def _nodes(report: Obj) -> list[str]:
    names = [*report["utilisation"]]
    heads = ("NODE", "TYPE", "ZONE", "PODS", *(name.upper() for name in names))
    rows = [
        (node["name"], node["type"], node["zone"], str(node["pods"]),
         *(percent(node["utilisation"][name]) for name in names))
        for node in report["nodes"]
    ]  # fmt: skip
    return [*table(heads, rows[:MOST_ROWS]), *_more(rows)]


def _pending(report: Obj) -> list[str]:
    if not report["pending"]:
        return []
    found = ["", "still Pending:"]
    for group in report["pending"]:
        found.append(f"  {group['count']} ({', '.join(group['pods'])}): {group['why'] or '-'}")
    return found


def _preemptions(report: Obj) -> list[str]:
    if not report["preemptions"]:
        return []
    rows = [
        (human_duration(each["at"]), each["victim"], each["node"], each["by"] or "-",
         human_duration(each["ran"]))
        for each in report["preemptions"]
    ]  # fmt: skip
    shown = table(("AT", "PREEMPTED", "ON", "BY", "HAD RUN"), rows[:MOST_ROWS])
    return ["", *shown, *_more(rows)]


def _plugins(report: Obj) -> list[str]:
    whole = sum(cost["seconds"] for cost in report["plugins"])
    rows = [
        (cost["plugin"], cost["point"], str(cost["calls"]), f"{1000 * cost['seconds']:.1f}",
         percent(cost["seconds"] / whole if whole else 0.0))
        for cost in report["plugins"]
    ]  # fmt: skip
    return ["", *table(("PLUGIN", "POINT", "CALLS", "MS", "SHARE"), rows[:MOST_ROWS]), *_more(rows)]


def _comparison(first: Obj, second: Obj) -> list[str]:
    rows = [
        (what, amount(here, unit), amount(there, unit), _change(here, there))
        for what, here, there, unit in comparison.rows(first, second)
    ]
    gone, both = comparison.moved(first, second)
    heads = ("", first["title"], second["title"], "CHANGE")
    return ["=== compared", *table(heads, rows), f"{gone} of {both} pods went elsewhere"]


def _change(before: float, after: float) -> str:
    if before == after:
        return "="
    return f"{100 * (after - before) / before:+.1f}%" if before else "new"


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{name or '-'} {count}" for name, count in counted.items()) or "-"


def _more(rows: Sequence[object]) -> list[str]:
    return [f"… and {len(rows) - MOST_ROWS} more"] if len(rows) > MOST_ROWS else []


def _line(points: Sequence[float], most: float) -> str:
    """As bars of text: the highest of each stretch."""
    if not points or not most:
        return BARS[0] * WIDTH
    step = len(points) / WIDTH
    stretches = [points[int(at * step) : int((at + 1) * step) or 1] for at in range(WIDTH)]
    highest = [max(stretch, default=0.0) / most for stretch in stretches]
    return "".join(BARS[min(8, round(8 * max(0.0, part)))] for part in highest)


def _plain(line: str) -> str:
    """What the cluster's objects say moves no terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)
