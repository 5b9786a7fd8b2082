"""Limits of connections and bodies per client of a server.

Job: count connections and the bytes of bodies that are arriving, by client and in all.
"""

from collections import Counter

from sampan.core.http.messages import Limits


class Clients:
    """How many connections and bytes of bodies there are, by client and in all."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connections: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._all_connections = self._all_bytes = 0

    def came(self, remote: str) -> bool:
        """False: there are too many of them."""
        self._connections[remote] += 1
        self._all_connections += 1
        limits = self._limits
        return (
            self._all_connections <= limits.connections
            and self._connections[remote] <= limits.connections_per_client
        )

    def holds(self, remote: str, change: int) -> bool:
        """False: it holds too much."""
        self._all_bytes += change
        self._bytes[remote] += change
        limits = self._limits
        return change <= 0 or (
            self._all_bytes <= limits.bodies_bytes
            and self._bytes[remote] <= limits.bodies_bytes_per_client
        )

    def left(self, remote: str, buffered: int) -> None:
        self.holds(remote, -buffered)
        self._all_connections -= 1
        self._connections[remote] -= 1
        if not self._connections[remote]:
            del self._connections[remote], self._bytes[remote]
