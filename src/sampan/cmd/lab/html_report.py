"""A report of the lab as one page that needs nothing else. Pure.

Job: one report, or two beside each other → HTML with lines over time and the tables.
Invariant: whatever names and messages say, they are text: nothing of them is markup, and the page
    may run no script and load nothing.
"""

from collections.abc import Iterable, Sequence
from html import escape

from sampan.api.objects import Obj
from sampan.api.rules.durations import human_duration
from sampan.cmd.lab import comparison
from sampan.cmd.lab.text_report import amount, percent

COLOURS = ("#2563eb", "#d97706", "#059669", "#7c3aed", "#db2777", "#475569")
WIDTH, HEIGHT = 860, 160
MOST_ROWS = 500
STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:900px;color:#0f172a}
table{border-collapse:collapse;margin:.6em 0 1.6em}th,td{padding:.2em .8em .2em 0;text-align:left}
th{border-bottom:1px solid #94a3b8}td.n{text-align:right}svg{background:#f8fafc;display:block}
h2{margin-top:2em}.key span{margin-right:1.2em}.why{max-width:600px}
"""


def page(reports: Sequence[Obj]) -> str:
    titles = " and ".join(report["title"] for report in reports)
    parts = [_comparison(*reports)] if len(reports) == 2 else []
    parts += [_report(report) for report in reports]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(titles)}</title><style>{STYLE}</style></head><body>"
        f"<h1>Scheduler lab</h1>{''.join(parts)}</body></html>\n"
    )


def _report(report: Obj) -> str:
    totals = report["totals"]
    told = [f"{count} {name}" for name, count in totals.items() if count and name != "pods"]
    waits = [f"{name} {amount(value, 's')}" for name, value in report["waits"].items()]
    means = [
        f"{name} {percent(mean)} (peak {percent(report['peak'][name])})"
        for name, mean in report["utilisation"].items()
    ]
    facts = [
        f"{totals['pods']} pods: {', '.join(told)}",
        f"waited: {', '.join(waits)}",
        f"used: {', '.join(means) or 'nothing'}",
        f"{human_duration(report['seconds'])} of virtual time, seed {report['seed']}",
    ]
    items = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    return f"<h2>{escape(report['title'])}</h2><ul>{items}</ul>{_charts(report)}{_tables(report)}"


def _charts(report: Obj) -> str:
    timeline = report["timeline"]
    used = {name: [point["used"][name] for point in timeline] for name in report["utilisation"]}
    counts = {
        name: [float(point[name]) for point in timeline] for name in ("pending", "running", "nodes")
    }
    most = max((value for values in counts.values() for value in values), default=0.0)
    return _chart("used of what there is", used, 1.0, "100%") + _chart(
        "pods and nodes", counts, most or 1.0, f"{most:g}"
    )


def _chart(title: str, series: dict[str, list[float]], most: float, top: str) -> str:
    lines, keys = [], []
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        step = WIDTH / max(1, len(values) - 1)
        points = " ".join(
            f"{at * step:.1f},{HEIGHT - HEIGHT * max(0.0, value) / most:.1f}"
            for at, value in enumerate(values)
        )
        lines.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>'
        )
        keys.append(f'<span style="color:{colour}">{escape(name)}</span>')
    return (
        f'<p class="key">{escape(title)} (top: {escape(top)}): {"".join(keys)}</p>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
        f"{''.join(lines)}</svg>"
    )


def _tables(report: Obj) -> str:
    names = [*report["utilisation"]]
    parts = [
        _table("Streams", ("stream", "pods", "succeeded", "pending", "preempted", "wait p50",
                           "wait p95", "went to", "zones"), (
            (s["name"], s["pods"], s["succeeded"], s["pending"], s["preempted"],
             amount(s["waits"]["p50"], "s"), amount(s["waits"]["p95"], "s"),
             _counts(s["types"]), _counts(s["zones"]))
            for s in report["streams"]
        )),
        _table("Nodes", ("node", "type", "zone", "pods", *names), (
            (n["name"], n["type"], n["zone"], n["pods"],
             *(percent(n["utilisation"][name]) for name in names))
            for n in report["nodes"]
        )),
        _table("Still Pending", ("pods", "some of them", "why"), (
            (p["count"], ", ".join(p["pods"]), p["why"]) for p in report["pending"]
        )),
        _table("Preemptions", ("at", "victim", "on", "by", "had run"), (
            (human_duration(p["at"]), p["victim"], p["node"], p["by"], human_duration(p["ran"]))
            for p in report["preemptions"]
        )),
        _table("What plugins cost", ("plugin", "point", "calls", "ms"), (
            (c["plugin"], c["point"], c["calls"], f"{1000 * c['seconds']:.1f}")
            for c in report["plugins"]
        )),
        _table("Who went where", ("pod", "stream", "node", "arrived", "scheduled", "ended", ""), (
            (p["name"], p["stream"], p["node"], _time(p["arrived"]), _time(p["scheduled"]),
             _time(p["ended"]), p["outcome"])
            for p in report["placements"]
        )),
    ]  # fmt: skip
    return "".join(parts)


def _comparison(first: Obj, second: Obj) -> str:
    gone, both = comparison.moved(first, second)
    rows = (
        (what, amount(here, unit), amount(there, unit))
        for what, here, there, unit in comparison.rows(first, second)
    )
    told = f"<p>{gone} of {both} pods went elsewhere.</p>"
    return _table("Compared", ("", first["title"], second["title"]), rows) + told


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    every = list(rows)
    if not every:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in every[:MOST_ROWS])
    more = f"<p>… and {len(every) - MOST_ROWS} more</p>" if len(every) > MOST_ROWS else ""
    return f"<h3>{escape(title)}</h3><table><tr>{head}</tr>{body}</table>{more}"


def _cell(value: object) -> str:
    kind = ' class="n"' if isinstance(value, int | float) else ""
    return f"<td{kind}>{escape(str(value))}</td>"


def _counts(counted: dict[str, int]) -> str:
    return ", ".join(f"{name or '-'} {count}" for name, count in counted.items())


def _time(seconds: float | None) -> str:
    return "" if seconds is None else human_duration(seconds)
