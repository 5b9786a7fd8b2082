"""Two trials of one workload side by side. Pure.

Job: two reports → rows of figures with their difference, and the pods that went elsewhere.
"""

from sampan.api.objects import Obj

Row = tuple[str, float, float, str]  # what, in the first, in the second, its unit


def rows(first: Obj, second: Obj) -> list[Row]:
    found: list[Row] = [("seconds until the end", first["seconds"], second["seconds"], "s")]
    found += [
        (f"pods {name}", first["totals"][name], second["totals"][name], "")
        for name in first["totals"]
        if name != "pods" and (first["totals"][name] or second["totals"][name])
    ]
    found += [
        (f"wait {name}", first["waits"][name], second["waits"][name], "s")
        for name in first["waits"]
    ]
    for word in ("utilisation", "peak"):
        found += [
            (f"{name} {word}", first[word][name], second[word].get(name, 0.0), "%")
            for name in first[word]
        ]
    costs = [sum(cost["seconds"] for cost in report["plugins"]) for report in (first, second)]
    found.append(("plugins' time", costs[0], costs[1], "s"))
    return found


def moved(first: Obj, second: Obj) -> tuple[int, int]:
    """How many pods of both (by their names) are on another node, and of how many."""
    there = {(each["namespace"], each["name"]): each["node"] for each in second["placements"]}
    both = [
        (each["node"], there[each["namespace"], each["name"]])
        for each in first["placements"]
        if (each["namespace"], each["name"]) in there
    ]
    return sum(here != other for here, other in both), len(both)
