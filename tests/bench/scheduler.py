"""`make bench-scheduler`: how many pods per second find their node.

Job: decisions alone (the columns and the rules), and end to end (pods created through the real API
    server with a SQLite store, bindings stored), over simulated nodes; a table with the targets,
    and a row in docs/bench.csv. Figures are for people: nothing is asserted.
"""

import argparse
import asyncio
import gc
import os
import random
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path

import uvloop

from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.decision.batch import Batches
from sampan.scheduler.decision.decide import Chosen, Decision, decide
from sampan.scheduler.decision.nominated_pods import Nominator
from sampan.scheduler.model.assigned_pod import assigned_pod_of, once_assigned
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import PodShape, pod_info_of
from sampan.scheduler.preemption.victims import Candidate, Preemptor, preempt
from sampan.scheduler.profile import DEFAULT_PROFILE
from tests.bench.record import append
from tests.bench.scheduler_cases import CASES, SMALL, Case, node, pod
from tests.bench.scheduler_end_to_end import rates

SIZES = (1000, 5000, 15000)
# Pods per second at so many nodes, from the project's own targets.
DECISIONS_AT_LEAST = {
    ("basic", 5000): 8000, ("node affinity", 5000): 1000, ("spread over zones", 5000): 1000,
    ("anti-affinity", 5000): 1000,
}  # fmt: skip
END_TO_END_AT_LEAST = {("basic", 1000): 600, ("basic", 5000): 500, ("preemption", 1000): 200}
MOST_MIB = 150


def main() -> int:
    parser = argparse.ArgumentParser(description="pods per second")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="default: %(default)s")
    parser.add_argument("--pods", type=int, default=2000, help="per case (default: %(default)s)")
    parser.add_argument("--only", choices=("decisions", "end-to-end", "memory"), default="")
    parser.add_argument("--no-csv", action="store_true", help="print only")
    given = parser.parse_args()
    sizes = [int(one) for one in given.sizes.split(",")]
    print(f"load average before: {' '.join(f'{one:.2f}' for one in os.getloadavg())}")
    row: dict[str, float] = {}
    if given.only in ("", "decisions"):
        _print_decisions(sizes, given.pods, row)
    if given.only in ("", "memory"):
        _print_memory(row)
    if given.only in ("", "end-to-end"):
        _print_end_to_end(sizes, given.pods, row)
    if not given.no_csv:
        append(row)
    return 0


def _print_decisions(sizes: list[int], pods: int, row: dict[str, float]) -> None:
    heads = ("decisions alone", "nodes", "pods/s", "without batches", "target")
    print("\n{:<20} {:>6} {:>8} {:>16} {:>8}".format(*heads))
    for size in sizes:
        for case in CASES:
            batched = decided(case, size, pods, batches=True)
            single = decided(case, size, min(pods, 500), batches=False)
            row[f"decisions {case.name} {size}, pods/s"] = batched
            target = DECISIONS_AT_LEAST.get((case.name, size))
            row_text = f"{case.name:<20} {size:>6} {batched:>8.0f} {single:>16.0f}"
            print(row_text, _against(batched, target), flush=True)


def _print_end_to_end(sizes: list[int], pods: int, row: dict[str, float]) -> None:
    print(f"\n{'end to end':<20} {'nodes':>6} {'bind/s':>8} {'create+bind/s':>16} {'target':>8}")
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="sampan-bench-") as folder:
            found = _run(rates(Path(folder), size, pods))
        for name, (bound, both) in found.items():
            row[f"end to end {name} {size}, pods/s"] = bound
            row[f"end to end with create {name} {size}, pods/s"] = both
            target = END_TO_END_AT_LEAST.get((name, size))
            print(
                f"{name:<20} {size:>6} {bound:>8.0f} {both:>16.0f} {_against(bound, target)}",
                flush=True,
            )


def _print_memory(row: dict[str, float]) -> None:
    mib = columns_mib(5000, 30000)
    row["scheduler columns 5000 nodes 30000 pods, MiB"] = mib
    print(f"\ncolumns of 5000 nodes and 30000 pods: {mib:.1f} MiB (target: at most {MOST_MIB})")


def _against(rate: float, target: int | None) -> str:
    return "" if target is None else f"{target:>8} ×{rate / target:.1f}"


def _run(
    work: Coroutine[None, None, dict[str, tuple[float, float]]],
) -> dict[str, tuple[float, float]]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def decided(case: Case, nodes: int, pods: int, *, batches: bool) -> float:
    """Pods per second, each decision taken into account by the next."""
    cache = CacheState()
    for number in range(nodes):
        cache.put_node(node_info_of(node(number)))
    for number, (name, there) in enumerate(case.before(nodes)):
        cache.put_pod(f"before-{number}", name, assigned_pod_of(there))
    rows = [pod_info_of(one) for one in case.pods(pods)]
    rng = random.Random(1)
    batch = Batches(cache.columns, DEFAULT_PROFILE)

    def one_by_one(shape: PodShape, rng: random.Random) -> Decision:
        return decide(shape, cache.snapshot(), DEFAULT_PROFILE, rng)

    choose: Callable[[PodShape, random.Random], Decision] = batch.decide if batches else one_by_one
    asked = Preemptor(cache, DEFAULT_PROFILE, (), Nominator())
    gc.collect()
    began = time.perf_counter()
    for row in rows:
        decision = choose(row.shape, rng)
        if isinstance(decision, Chosen):
            cache.assume(row.uid, decision.node, once_assigned(row))
        elif case.preempts:
            found = preempt(row, asked, rng)
            assert isinstance(found, Candidate), found
            for victim in found.victims:
                cache.remove_pod(victim.uid)
            cache.assume(row.uid, found.node, once_assigned(row))
    return len(rows) / (time.perf_counter() - began)


def columns_mib(nodes: int, pods: int) -> float:
    numbers: Iterator[int] = count()
    tracemalloc.start()
    cache = CacheState()
    for number in range(nodes):
        cache.put_node(node_info_of(node(number)))
    for number in range(pods):
        cache.put_pod(
            f"{next(numbers):036d}", f"node-{number % nodes}", assigned_pod_of(pod(number, SMALL))
        )
    found = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return found / 1024 / 1024


if __name__ == "__main__":
    sys.exit(main())
