"""The image of a first pod: a web server of some hundred bytes, so that nothing is downloaded.

Job: a static ELF program, assembled here (nobody needs a compiler), packed as an image archive.

The program: end with 0 on SIGTERM and SIGINT (the first process of a container has no default for
them); listen on port 8080; say so on its output; answer every connection with a greeting, and
write a line about it. A client that sends nothing is given up after some seconds.
"""

import platform
import struct
from collections.abc import Mapping
from typing import Literal, Protocol

from sampan.core.elf import (
    EM_AARCH64,
    EM_X86_64,
    HEADERS_SIZE,
    LOAD_ADDRESS,
    architecture,
    elf_file,
)
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from sampan.kubelet.images.reference import HELLO_IMAGE

PORT = 8080
PATIENCE_SECONDS = 5
GREETING = b"hello from sampan\n"
STARTED = b"hello: listening on port 8080\n"
ANSWERED = b"hello: answered a request\n"
REPLY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    + f"Content-Length: {len(GREETING)}\r\n\r\n".encode()
    + GREETING
)
_USER = "65535:65535"
_SIGINT, _SIGTERM = 2, 15
_SA_RESTORER = 0x04000000  # x86 delivers no signal without it; it is never reached
_AF_INET, _SOCK_STREAM, _SOL_SOCKET, _SO_RCVTIMEO = 2, 1, 1, 20
_MSG_NOSIGNAL = 0x4000
_BUFFER_BYTES = 4096

Kept = Literal["listener", "accepted"]


@dataclass(frozen=True, slots=True)
class Call:
    """A system call. Arguments: a number, a piece of data by its name, what was kept (only as the
    first one), or `buffer` (only as the second one)."""

    name: str
    arguments: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """The result of the call before."""

    name: Kept


@dataclass(frozen=True, slots=True)
class If:
    """Only where the call before failed."""

    then: Literal["leave", "again"]


Step = Call | Keep | If
LEAVE, FAIL = Call("exit_group", (0,)), Call("exit_group", (1,))

BEGIN: tuple[Step, ...] = (
    Call("rt_sigaction", (_SIGTERM, "action", 0, 8)),
    Call("rt_sigaction", (_SIGINT, "action", 0, 8)),
    Call("socket", (_AF_INET, _SOCK_STREAM, 0)),
    Keep("listener"),
    # Accepted connections inherit it.
    Call("setsockopt", ("listener", _SOL_SOCKET, _SO_RCVTIMEO, "patience", 16)),
    Call("bind", ("listener", "address", 16)),
    If("leave"),
    Call("listen", ("listener", 16)),
    Call("write", (1, "started", len(STARTED))),
)
LOOP: tuple[Step, ...] = (
    Call("accept", ("listener", 0, 0)),
    Keep("accepted"),
    If("again"),  # nobody came in time
    Call("read", ("accepted", "buffer", _BUFFER_BYTES)),
    Call("sendto", ("accepted", "reply", len(REPLY), _MSG_NOSIGNAL, 0, 0)),
    Call("close", ("accepted",)),
    Call("write", (1, "answered", len(ANSWERED))),
)


def hello_archive(machine: str = "") -> bytes:
    """The archive of HELLO_IMAGE for this machine, or for the one that is named."""
    arch = architecture(machine or platform.machine())
    settings = ImageSettings(architecture=arch, entrypoint=("/hello",), user=_USER)
    return build_archive(HELLO_IMAGE, {"hello": ArchiveFile(hello_program(arch))}, settings)


def hello_program(arch: str) -> bytes:
    """The ELF file."""
    if arch == "amd64":
        return elf_file(EM_X86_64, _assembled(_Amd64()))
    return elf_file(EM_AARCH64, _assembled(_Arm64()))


class _Machine(Protocol):
    """Steps as instructions, whose length does not depend on the addresses in them."""

    prologue: bytes

    def call(self, step: Call, places: Mapping[str, int]) -> bytes: ...

    def keep(self, name: Kept) -> bytes: ...

    def if_failed(self, code: bytes) -> bytes:
        """`code` is passed over where the call before succeeded."""

    def jump(self, distance: int) -> bytes:
        """Counted in bytes, from where the instruction begins."""


def _assembled(machine: _Machine) -> bytes:
    places: dict[str, int] = {}
    code = _code(machine, places)
    for _ in range(2):  # first the lengths, then the addresses that follow from them
        end = LOAD_ADDRESS + HEADERS_SIZE + len(code)
        padding = -end % 8
        leave = end - len(machine.call(LEAVE, {}))
        places, data = _data(end + padding, leave)
        code = _code(machine, places)
    return code + bytes(padding) + data


def _data(base: int, leave: int) -> tuple[dict[str, int], bytes]:
    """Where each piece is once they lie at `base`, and all of them."""
    pieces = {
        "action": struct.pack("<QQQQ", leave, _SA_RESTORER, leave, 0),  # struct sigaction
        "patience": struct.pack("<qq", PATIENCE_SECONDS, 0),
        "address": struct.pack("<H", _AF_INET) + struct.pack(">HI8x", PORT, 0),
        "started": STARTED,
        "answered": ANSWERED,
        "reply": REPLY,
    }
    places, whole = {}, b""
    for name, data in pieces.items():
        places[name] = base + len(whole)
        whole += data + bytes(-len(data) % 8)
    return places, whole


def _code(machine: _Machine, places: Mapping[str, int]) -> bytes:
    code, loop = machine.prologue, 0
    for step in BEGIN:
        code += _instructions(machine, step, places, 0)
    loop = len(code)
    for step in LOOP:
        code += _instructions(machine, step, places, loop - len(code))
    code += machine.jump(loop - len(code))
    return code + machine.call(LEAVE, places)


def _instructions(machine: _Machine, step: Step, places: Mapping[str, int], back: int) -> bytes:
    match step:
        case Call():
            return machine.call(step, places)
        case Keep(name):
            return machine.keep(name)
        case If("leave"):
            return machine.if_failed(machine.call(FAIL, places))
        case If():
            test = len(machine.if_failed(b""))
            return machine.if_failed(machine.jump(back - test))


class _Amd64:
    """Listener and accepted connection are in r12 and r13, the buffer is where the stack ends."""

    prologue = b"\x48\x81\xec" + struct.pack("<I", _BUFFER_BYTES)  # sub rsp, BUFFER_BYTES
    numbers: Mapping[str, int] = {
        "rt_sigaction": 13, "socket": 41, "setsockopt": 54, "bind": 49, "listen": 50, "write": 1,
        "accept": 43, "read": 0, "sendto": 44, "close": 3, "exit_group": 231,
    }  # fmt: skip
    registers = (b"\xbf", b"\xbe", b"\xba", b"\x41\xba", b"\x41\xb8", b"\x41\xb9")
    moves: Mapping[str, bytes] = {
        "listener": b"\x44\x89\xe7",  # mov edi, r12d
        "accepted": b"\x44\x89\xef",  # mov edi, r13d
        "buffer": b"\x48\x89\xe6",  # mov rsi, rsp
    }

    def call(self, step: Call, places: Mapping[str, int]) -> bytes:
        code = b""
        for register, argument in zip(self.registers, step.arguments, strict=False):
            if isinstance(argument, str) and argument in self.moves:
                code += self.moves[argument]
            else:
                number = places.get(argument, 0) if isinstance(argument, str) else argument
                code += register + struct.pack("<I", number)  # mov register, number
        # mov eax, number; syscall
        return code + b"\xb8" + struct.pack("<I", self.numbers[step.name]) + b"\x0f\x05"

    def keep(self, name: Kept) -> bytes:
        return b"\x41\x89" + (b"\xc4" if name == "listener" else b"\xc5")  # mov r12d, eax

    def if_failed(self, code: bytes) -> bytes:
        return b"\x85\xc0\x79" + bytes([len(code)]) + code  # test eax, eax; jns

    def jump(self, distance: int) -> bytes:
        return b"\xe9" + struct.pack("<i", distance - 5)  # counted from its end


class _Arm64:
    """Listener and accepted connection are in x19 and x20, the buffer is where the stack ends."""

    prologue = struct.pack("<I", 0xD14007FF)  # sub sp, sp, #4096
    numbers: Mapping[str, int] = {
        "rt_sigaction": 134, "socket": 198, "setsockopt": 208, "bind": 200, "listen": 201,
        "write": 64, "accept": 202, "read": 63, "sendto": 206, "close": 57, "exit_group": 94,
    }  # fmt: skip
    moves: Mapping[str, int] = {
        "listener": 0xAA1303E0,  # mov x0, x19
        "accepted": 0xAA1403E0,  # mov x0, x20
        "buffer": 0x910003E1,  # mov x1, sp
    }

    def call(self, step: Call, places: Mapping[str, int]) -> bytes:
        words: list[int] = []
        for register, argument in enumerate(step.arguments):
            if isinstance(argument, str) and argument in self.moves:
                words.append(self.moves[argument])
            else:
                number = places.get(argument, 0) if isinstance(argument, str) else argument
                words.append(0xD2800000 | (number & 0xFFFF) << 5 | register)  # movz
                words.append(0xF2A00000 | (number >> 16) << 5 | register)  # movk, lsl 16
        # mov x8, number; svc 0
        words += [0xD2800000 | self.numbers[step.name] << 5 | 8, 0xD4000001]
        return b"".join(struct.pack("<I", word) for word in words)

    def keep(self, name: Kept) -> bytes:
        return struct.pack("<I", 0xAA0003F3 if name == "listener" else 0xAA0003F4)  # mov x19, x0

    def if_failed(self, code: bytes) -> bytes:
        # tbz w0, #31: over the code where the result is not negative
        return struct.pack("<I", 0x36F80000 | (len(code) // 4 + 1) << 5) + code

    def jump(self, distance: int) -> bytes:
        return struct.pack("<I", 0x14000000 | distance // 4 & 0x3FFFFFF)
