"""Static programs of some hundred bytes for Linux, made without a compiler.

Job: machine code, put together of pieces with labels → an ELF executable. Pure.
Invariant: a jump leads to a label that is there, however far away.
"""

import struct
from collections.abc import Sequence

from sampan.core.fast_dataclass import dataclass

LOAD_ADDRESS = 0x400000
HEADERS_SIZE = 64 + 56  # the ELF header, and one program header
EM_X86_64, EM_AARCH64 = 62, 183
_NAMES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class UnsupportedMachine(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Amd64Jump:
    """Also a call, or an address relative to the instruction's end: four bytes behind `opcode`."""

    opcode: bytes
    label: str


@dataclass(frozen=True, slots=True)
class Arm64Jump:
    """`bits` of distance in instructions (bytes for `adr`), at bit `at` of the instruction."""

    instruction: int
    label: str
    bits: int = 26
    at: int = 0
    in_bytes: bool = False  # adr: its two lowest bits are elsewhere


Piece = bytes | Label | Amd64Jump | Arm64Jump


def architecture(machine: str) -> str:
    """The name of `machine` (as uname says it) in image configurations."""
    if machine not in _NAMES:
        raise UnsupportedMachine(f"no programs for {machine}: x86_64 and aarch64 have them")
    return _NAMES[machine]


def elf_file(machine: int, code: bytes) -> bytes:
    """One segment, loaded at LOAD_ADDRESS with its headers, begun at its first instruction."""
    size = HEADERS_SIZE + len(code)
    header = struct.pack(
        "<4sBBBBB7xHHIQQQIHHHHHH",
        b"\x7fELF", 2, 1, 1, 0, 0,  # 64 bits, little endian, version 1, System V
        2, machine, 1,  # an executable
        LOAD_ADDRESS + HEADERS_SIZE,  # where it begins
        64, 0, 0,  # program headers follow; no sections, no flags
        64, 56, 1, 64, 0, 0,
    )  # fmt: skip
    load = struct.pack(
        "<IIQQQQQQ",
        1, 5,  # loaded; readable and executable
        0, LOAD_ADDRESS, LOAD_ADDRESS, size, size, 0x10000,
    )  # fmt: skip
    return header + load + code


def assembled(pieces: Sequence[Piece]) -> bytes:
    """With every jump's distance filled in."""
    places: dict[str, int] = {}
    at = 0
    for piece in pieces:
        if isinstance(piece, Label):
            places[piece.name] = at
        at += _size(piece)
    code = b""
    for piece in pieces:
        match piece:
            case bytes():
                code += piece
            case Amd64Jump(opcode, label):
                distance = places[label] - (len(code) + _size(piece))
                code += opcode + struct.pack("<i", distance)
            case Arm64Jump():
                code += struct.pack("<I", _arm64(piece, places[piece.label] - len(code)))
            case Label():
                continue
    return code


def _arm64(jump: Arm64Jump, distance: int) -> int:
    if jump.in_bytes:
        high = (distance >> 2) & ((1 << 19) - 1)
        return jump.instruction | (distance & 3) << 29 | high << 5
    return jump.instruction | ((distance >> 2) & ((1 << jump.bits) - 1)) << jump.at


def _size(piece: Piece) -> int:
    match piece:
        case bytes():
            return len(piece)
        case Label():
            return 0
        case Amd64Jump(opcode, _):
            return len(opcode) + 4
        case Arm64Jump():
            return 4
