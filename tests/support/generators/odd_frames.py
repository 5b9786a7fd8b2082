"""Frames that a pod with raw sockets may send, and should not get anywhere with.

Job: bytes of Ethernet frames: packets in others' names, claims of others' addresses, tags. Pure.
"""

import ipaddress
import itertools
import random
import socket
import struct
from collections.abc import Iterator, Sequence

from sampan.core.fast_dataclass import dataclass

PORT = 9090
BROADCAST = b"\xff" * 6
MANY = bytes.fromhex("01005e000001"), bytes.fromhex("333300000001")
BRIDGES = bytes.fromhex("0180c2000000"), bytes.fromhex("0180c200000e")  # never passed on
_ARP, _IPV4, _IPV6, _TAG, _OUTER_TAG = 0x0806, 0x0800, 0x86DD, 0x8100, 0x88A8


@dataclass(frozen=True, slots=True)
class Neighbour:
    hardware: bytes
    addresses: tuple[str, ...]

    def of_family(self, version: int) -> str:
        found = (each for each in self.addresses if (":" in each) == (version == 6))
        return next(found, "")


def frame(target: bytes, source: bytes, kind: int, body: bytes, tags: Sequence[int] = ()) -> bytes:
    """`tags`: of virtual networks, the outer one first; more than 0xFFFF: one of providers."""
    told = b"".join(
        struct.pack(">HH", _OUTER_TAG if tag > 0xFFFF else _TAG, tag & 0xFFFF) for tag in tags
    )
    return target + source + told + struct.pack(">H", kind) + body


def datagram(source: str, target: str, payload: bytes) -> tuple[int, bytes]:
    """The frame's kind, and a packet of UDP."""
    mine, theirs = ipaddress.ip_address(source).packed, ipaddress.ip_address(target).packed
    udp = struct.pack(">HHHH", 5555, PORT, 8 + len(payload), 0) + payload
    if ":" not in target:
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, mine, theirs)
        return _IPV4, head[:10] + struct.pack(">H", _checksum(head)) + head[12:] + udp
    pseudo = mine + theirs + struct.pack(">IxxxB", len(udp), 17)
    whole = _checksum(pseudo + udp) or 0xFFFF
    udp = udp[:6] + struct.pack(">H", whole) + udp[8:]
    return _IPV6, struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + mine + theirs + udp


def arp(operation: int, hardware: bytes, address: str, to: bytes, target: str) -> tuple[int, bytes]:
    """1: who has it; 2: `hardware` has it."""
    head = struct.pack(">HHBBH", 1, _IPV4, 6, 4, operation)
    return _ARP, head + hardware + socket.inet_aton(address) + to + socket.inet_aton(target)


def discovery(
    kind: int, source: str, target: str, about: str, hardware: bytes
) -> tuple[int, bytes]:
    """135: who has it; 136: `hardware` has it; 134: who is a router; 137: a shorter way."""
    mine, theirs = ipaddress.ip_address(source).packed, ipaddress.ip_address(target).packed
    asked = ipaddress.ip_address(about).packed
    flags = 0xE0000000 if kind == 136 else 0
    option = struct.pack(">BB", 1 if kind == 135 else 2, 1) + hardware
    more = asked if kind == 137 else b""
    said = struct.pack(">BBHI", kind, 0, 0, flags) + asked + more + option
    if kind == 134:
        said = struct.pack(">BBHBBHII", 134, 0, 0, 64, 0, 9000, 0, 0) + option
    pseudo = mine + theirs + struct.pack(">IxxxB", len(said), 58)
    said = said[:2] + struct.pack(">H", _checksum(pseudo + said)) + said[4:]
    return _IPV6, struct.pack(">IHBB", 6 << 28, len(said), 58, 255) + mine + theirs + said


def link_local(hardware: bytes) -> str:
    """The address that a kernel makes of a hardware address by itself."""
    identity = bytes([hardware[0] ^ 2, *hardware[1:3], 0xFF, 0xFE, *hardware[3:]])
    return str(ipaddress.IPv6Address(b"\xfe\x80" + b"\0" * 6 + identity))


def packets(
    attacker: Neighbour, other: Neighbour, victim: Neighbour, node: Neighbour
) -> Iterator[bytes]:
    """To the victim, which hears the other only, in every name and by every hardware address."""
    hardware = (node.hardware, victim.hardware, BROADCAST, *MANY, *BRIDGES)
    names = (attacker.hardware, other.hardware, node.hardware, b"\x02" * 6)
    tags: tuple[tuple[int, ...], ...] = ((), (0,), (5,), (0, 0), (0x10000,), (0x10000, 0))
    ends = [
        (source, target)
        for version in (4, 6)
        for source in _sources(version, attacker, other, node)
        for target in (victim.of_family(version), link_local(victim.hardware))
        if source and target and (":" in source) == (":" in target)
    ]
    for to, by, tag, (source, target) in itertools.product(hardware, names, tags, ends):
        yield frame(to, by, *datagram(source, target, f"{source} {tag}".encode()), tag)


def _sources(version: int, attacker: Neighbour, other: Neighbour, node: Neighbour) -> Iterator[str]:
    for neighbour in (attacker, other, node):
        yield neighbour.of_family(version)
    yield from ("0.0.0.0", "127.0.0.1") if version == 4 else ("::", "::1")
    if version == 6:
        yield link_local(attacker.hardware)
        yield link_local(other.hardware)


def claims(
    attacker: Neighbour, other: Neighbour, victim: Neighbour, node: Neighbour
) -> list[bytes]:
    """That the attacker has what is the other's, or the node's."""
    found = []
    for claimed, to in itertools.product((other, node), (victim, node)):
        address = claimed.of_family(4)
        for by, target in itertools.product(
            (attacker.hardware, claimed.hardware), (to.hardware, BROADCAST, *BRIDGES)
        ):
            if address:
                for operation, asked in ((1, to.of_family(4)), (2, to.of_family(4)), (2, address)):
                    said = arp(operation, attacker.hardware, address, to.hardware, asked)
                    found.append(frame(target, by, *said))
            sixth = claimed.of_family(6) or link_local(claimed.hardware)
            for kind, source in itertools.product(
                (134, 135, 136, 137), (sixth, attacker.of_family(6), link_local(attacker.hardware))
            ):
                told = to.of_family(6) or link_local(to.hardware)
                if source:
                    said = discovery(kind, source, told, sixth, attacker.hardware)
                    found.append(frame(target, by, *said))
    return found


def mutated(rng: random.Random, samples: Sequence[bytes], count: int) -> Iterator[bytes]:
    """Some bytes of a head are others."""
    for _ in range(count):
        made = bytearray(rng.choice(samples))
        for _ in range(rng.randint(1, 4)):
            made[rng.randrange(min(len(made), 60))] = rng.randrange(256)
        yield bytes(made)


def _checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF
