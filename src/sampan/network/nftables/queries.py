"""Queries to nf_tables about the whole machine: its generation, and all base chains.

Job: ask by netlink (a program takes ten times as long). Blocking; the kernel answers at once.
Invariant: every question is answered or raises OSError; none waits for longer than ten seconds.
"""

import socket
import struct
from collections.abc import Iterator

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.attributes import GENERIC, attributes, message
from sampan.network.nftables.dumps import answers

_NETLINK_NETFILTER = 12
_REQUEST, _DUMP = 0x1, 0x300
_SUBSYSTEM = 10 << 8
# linux/netfilter/nf_tables.h
_GET_CHAIN, _GET_GENERATION = 4, 16
_CHAIN_TABLE, _CHAIN_NAME, _CHAIN_HOOK, _CHAIN_POLICY = 1, 3, 4, 5
_HOOK_NUMBER, _GENERATION_ID = 1, 1
_ANSWER_SECONDS = 10.0
_FAMILIES = {1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}


@dataclass(frozen=True, slots=True)
class BaseChain:
    """A chain that the kernel itself enters."""

    family: str
    table: str
    name: str
    hook: int
    policy: int  # what becomes of what no rule of it decides: 0 drop, 1 accept


@dataclass(frozen=True, slots=True)
class WrittenRules:
    """What we wrote, and that nobody has written anything since. (Anything: every transaction, of
    whichever table, makes a new generation.)"""

    generation: int

    @classmethod
    def now(cls) -> "WrittenRules | None":
        """None where the kernel does not say."""
        try:
            return cls(generation())
        except OSError:
            return None

    def are_the_last(self) -> bool:
        return WrittenRules.now() == self


def generation() -> int:
    for content in _answers(_GET_GENERATION, 0):
        return _number(attributes(content[GENERIC.size :])[_GENERATION_ID])
    raise OSError("nf_tables says no generation")


def base_chains() -> list[BaseChain]:
    """Everybody's, of every family."""
    found = []
    for content in _answers(_GET_CHAIN, _DUMP):
        family, chain = content[0], attributes(content[GENERIC.size :])
        if _CHAIN_HOOK not in chain or _CHAIN_POLICY not in chain:
            continue
        hook = attributes(chain[_CHAIN_HOOK])[_HOOK_NUMBER]
        found.append(
            BaseChain(
                _FAMILIES.get(family, str(family)), _text(chain[_CHAIN_TABLE]),
                _text(chain[_CHAIN_NAME]), _number(hook), _number(chain[_CHAIN_POLICY]),
            )
        )  # fmt: skip
    return found


def _answers(question: int, flags: int) -> Iterator[bytes]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as netlink:
        netlink.settimeout(_ANSWER_SECONDS)
        body = GENERIC.pack(0, 0, 0)
        netlink.send(message(_SUBSYSTEM | question, _REQUEST | flags, 1, body))
        yield from answers(netlink)


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode()


def _number(data: bytes) -> int:
    return int(struct.unpack(">I", data)[0])
