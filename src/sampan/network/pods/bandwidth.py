"""A limit on what an interface sends, as the kernel's token bucket filter is told of it. Pure.

Job: a rate and, where it is given, a burst → one netlink request's content.
Invariant: a burst that would let everything through for minutes is none: runtimes name 2 or 4 Gbit
    where nobody has said how large it is to be.
"""

import struct

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.attributes import attribute, nested_attribute, text

_QDISC = struct.Struct("=BxxxiIII")  # family, interface, handle, parent, info
_RATE = struct.Struct("=BBHhHI")  # cell size, link layer, overhead, alignment, least packet, rate
_LIMITS = struct.Struct("=III")  # bytes that may wait, burst in ticks, size of a packet
_KIND, _OPTIONS = 1, 2
_PARAMETERS, _LARGE_RATE, _BURST = 1, 4, 6
_HANDLE, _ROOT, _ETHERNET = 0x10000, 0xFFFFFFFF, 1
_MOST = 0xFFFFFFFF
_NO_BURST = (1 << 31) - 1  # bits; from here on it is only "as large as can be"
# What may go at once, and how long the rest waits until it is dropped.
_BURST_SECONDS, _LEAST_BURST, _WAIT_SECONDS, _LEAST_WAITING = 0.05, 64 << 10, 0.1, 18 << 10


@dataclass(frozen=True, slots=True)
class Limit:
    """In bits, and bits per second; a rate of 0: none."""

    rate: int = 0
    burst: int = 0


@dataclass(frozen=True, slots=True)
class Bandwidth:
    ingress: Limit = Limit()  # of what comes to the pod
    egress: Limit = Limit()


UNLIMITED = Bandwidth()


def shaper(interface: int, limit: Limit) -> bytes:
    """The content of a request for a new queueing discipline."""
    rate = max(limit.rate // 8, 1)
    burst = _burst(limit)
    waiting = min(burst + max(int(rate * _WAIT_SECONDS), _LEAST_WAITING), _MOST)
    parameters = _RATE.pack(0, _ETHERNET, 0, 0, 0, min(rate, _MOST))
    parameters += _RATE.pack(0, 0, 0, 0, 0, 0) + _LIMITS.pack(waiting, 0, 0)
    options = attribute(_PARAMETERS, parameters) + attribute(_BURST, struct.pack("=I", burst))
    if rate >= _MOST:
        options += attribute(_LARGE_RATE, struct.pack("=Q", rate))
    head = _QDISC.pack(0, interface, _HANDLE, _ROOT, 0)
    return head + text(_KIND, "tbf") + nested_attribute(_OPTIONS, options)


def _burst(limit: Limit) -> int:
    """In bytes."""
    if 0 < limit.burst < _NO_BURST:
        return max(limit.burst // 8, 1)
    return min(max(int(limit.rate / 8 * _BURST_SECONDS), _LEAST_BURST), _MOST)
