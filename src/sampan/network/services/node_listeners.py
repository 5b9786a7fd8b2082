"""Ports of the node that its own programs have: no Service's address leads away from them.

Job: remember what listens, for a while after it was seen last (a program may be started again), and
    say it as elements of the rules' sets.
Invariant: what is never anybody's (the machine's own doors) is always there.
Owner: ServiceProxy.
"""

from collections.abc import Callable, Iterable

from sampan.core.bounded import Recent
from sampan.core.clock import Clock
from sampan.network.listeners import Listener, listeners
from sampan.network.netlink import VXLAN_PORT
from sampan.network.nftables.elements import Elements

PORTS, ADDRESS_PORTS = "listening-ports", "listening-ips"
KEPT_SECONDS = 600.0
MOST = 4096
# The way into the machine, and the tunnel to others.
ALWAYS = (
    Listener("", "TCP", 22, ("ip", "ip6")),
    Listener("", "UDP", VXLAN_PORT, ("ip", "ip6")),
)


class NodeListeners:
    def __init__(self, clock: Clock, ask: Callable[[], Iterable[Listener]] = listeners) -> None:
        self._clock, self._ask = clock, ask
        self._seen: Recent[Listener, float] = Recent(MOST)

    def look(self) -> bool:
        """True where it is not as before. Blocking. Raises OSError."""
        now, before = self._clock.monotonic(), set(self._seen)
        for each in self._ask():
            self._seen[each] = now
        for each, at in list(self._seen.items()):
            if now - at > KEPT_SECONDS:
                del self._seen[each]
        return before != set(self._seen)

    def elements(self, family: str) -> Elements:
        found: Elements = {}
        for each in (*ALWAYS, *self._seen):
            if family in each.families:
                port = (each.protocol, each.port)
                where = (ADDRESS_PORTS, (each.address, *port)) if each.address else (PORTS, port)
                found[where] = None
        return found
