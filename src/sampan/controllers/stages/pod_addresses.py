"""Address allocation for pods that Stages play.

Job: pod → one address of each range of its node, the same as long as it is there.
Invariant: no two pods have the same address of a range, before and after a start.
Invariant: a range that is used up gives none.
"""

import heapq
import ipaddress
from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, status_of, uid_of

DEFAULT_RANGE = "10.0.0.0/24"  # of nodes that have none of their own
FIRST = 2  # the first two are the range's own, and its gateway's


class PodAddresses:
    def __init__(self) -> None:
        self._ranges: dict[str, _Range] = {}

    def of(self, uid: str, ranges: Sequence[str], others: Iterable[Obj]) -> list[str]:
        """`others`: all pods, looked at where a range was not asked before."""
        found = []
        for text in ranges or (DEFAULT_RANGE,):
            if text not in self._ranges:
                self._ranges[text] = _Range(text, others)
            address = self._ranges[text].address(uid)
            if address:
                found.append(address)
        return found

    def release(self, uid: str) -> None:
        for each in self._ranges.values():
            each.release(uid)


class _Range:
    def __init__(self, text: str, pods: Iterable[Obj]) -> None:
        self._network = ipaddress.ip_network(text, strict=False)
        self._next = FIRST
        self._free: list[int] = []  # given back, below the next
        self._given: dict[str, int] = {}
        for pod in pods:
            for item in status_of(pod).get("podIPs") or ():
                address = ipaddress.ip_address(item["ip"])
                if address in self._network:
                    self._given[uid_of(pod)] = int(address) - int(self._network.network_address)
        taken = set(self._given.values())
        if taken:
            self._next = max(FIRST, *(place + 1 for place in taken))
            self._free = sorted(set(range(FIRST, min(self._next, FIRST + len(taken)))) - taken)

    def address(self, uid: str) -> str:
        """Empty: there is none left."""
        if uid not in self._given:
            if self._free:
                self._given[uid] = heapq.heappop(self._free)
            elif self._next < self._network.num_addresses - 1:
                self._given[uid] = self._next
                self._next += 1
            else:
                return ""
        return str(self._network[self._given[uid]])

    def release(self, uid: str) -> None:
        place = self._given.pop(uid, None)
        if place is not None:
            heapq.heappush(self._free, place)
