"""The CNI plugin that the container runtime starts: a static program of some hundred bytes.

Job: hand the environment and standard input to the node agent's socket, and what it answers to
    standard output; written here as machine code, since it is started twice for every pod and a
    Python takes ten milliseconds to start. Pure.
Invariant: without an agent that answers it says so as CNI errors are said, and ends with 1.

What it sends: the environment (each variable ends with a zero byte, one more ends them all), then
standard input. What it gets: one byte, the exit code, then what goes to standard output.
"""

import json
import struct
from pathlib import Path

from sampan.core.elf import (
    EM_AARCH64,
    EM_X86_64,
    Amd64Jump,
    Arm64Jump,
    Label,
    Piece,
    assembled,
    elf_file,
)

SOCKET = "plugin.sock"
_BUFFER_BYTES = 4096
_TRY_AGAIN_LATER = 11  # an error code of CNI
_AF_UNIX, _SOCK_STREAM, _SHUT_WR = 1, 1, 1
_BROKEN_PIPE, _SIG_BLOCK = 1 << (13 - 1), 0  # a signal as a mask


def plugin_program(arch: str, directory: Path) -> bytes:
    """The agent's socket is in `directory`: it is entered, as paths of sockets are short."""
    machine, code = EM_X86_64, _amd64_code()
    if arch == "arm64":
        machine, code = EM_AARCH64, _arm64_code()
    address = struct.pack("<H", _AF_UNIX) + SOCKET.encode() + b"\0"
    assert len(address) == _ADDRESS_BYTES
    data: list[Piece] = [
        Label("address"), address,
        Label("complaint"), _complaint(),
        Label("zero"), b"\0",
        Label("directory"), str(directory).encode() + b"\0",
    ]  # fmt: skip
    return elf_file(machine, assembled([*code, *data]))


def _complaint() -> bytes:
    said = {
        "cniVersion": "1.0.0",
        "code": _TRY_AGAIN_LATER,
        "msg": "sampan, which makes the pods' network interfaces, does not answer",
    }
    return json.dumps(said).encode()


_ADDRESS_BYTES = 2 + len(SOCKET) + 1
_COMPLAINT_BYTES = len(_complaint())


# ---- x86-64. rbp: the socket; rbx: the environment, later the exit code.


def _amd64_code() -> list[Piece]:
    return [
        b"\x48\x8b\x04\x24",  # mov rax, [rsp]: how many arguments
        b"\x48\x8d\x5c\xc4\x10",  # lea rbx, [rsp+rax*8+16]: the environment
        b"\x68" + struct.pack("<I", _BROKEN_PIPE), b"\x48\x89\xe6",  # push; mov rsi, rsp
        *_amd64_number(7, _SIG_BLOCK), *_amd64_number(2, 0), b"\x41\xba\x08\x00\x00\x00",
        *_amd64_call(14),  # rt_sigprocmask: a write fails instead
        Amd64Jump(b"\x48\x8d\x3d", "directory"), *_amd64_call(80),  # chdir
        *_amd64_jump_unless_zero("fail"),
        *_amd64_number(7, _AF_UNIX), *_amd64_number(6, _SOCK_STREAM), *_amd64_number(2, 0),
        *_amd64_call(41),  # socket
        b"\x48\x89\xc5",  # mov rbp, rax
        b"\x48\x89\xef",  # mov rdi, rbp
        Amd64Jump(b"\x48\x8d\x35", "address"),  # lea rsi, address
        *_amd64_number(2, _ADDRESS_BYTES), *_amd64_call(42),  # connect
        *_amd64_jump_unless_zero("fail"),
        *_amd64_send_environment(),
        b"\x48\x81\xec" + struct.pack("<I", _BUFFER_BYTES),  # sub rsp, buffer
        *_amd64_copy("input", b"\x31\xff", b"\x48\x89\xef"),  # from 0 to the socket
        b"\x48\x89\xef", *_amd64_number(6, _SHUT_WR), *_amd64_call(48),  # shutdown
        b"\x48\x89\xef", b"\x48\x89\xe6", *_amd64_number(2, 1), *_amd64_call(0),  # read one byte
        b"\x48\x83\xf8\x01", Amd64Jump(b"\x0f\x85", "fail"),  # cmp rax, 1; jne
        b"\x0f\xb6\x1c\x24",  # movzx ebx, byte [rsp]
        *_amd64_copy("answer", b"\x48\x89\xef", b"\xbf\x01\x00\x00\x00"),  # to standard output
        b"\x89\xdf", *_amd64_call(231),  # mov edi, ebx; exit_group
        Label("fail"),
        *_amd64_number(7, 1), Amd64Jump(b"\x48\x8d\x35", "complaint"),
        *_amd64_number(2, _COMPLAINT_BYTES), *_amd64_call(1),
        *_amd64_number(7, 1), *_amd64_call(231),
        Label("write"),  # all of rdx bytes at rsi to rdi
        *_amd64_call(1),
        b"\x48\x85\xc0", Amd64Jump(b"\x0f\x8e", "fail"),  # test rax, rax; jle
        b"\x48\x01\xc6", b"\x48\x29\xc2",  # add rsi, rax; sub rdx, rax
        Amd64Jump(b"\x0f\x85", "write"), b"\xc3",  # jnz; ret
    ]  # fmt: skip


def _amd64_send_environment() -> list[Piece]:
    """It is one piece of memory: from its first variable to the end of its last."""
    return [
        b"\x48\x8b\x33",  # mov rsi, [rbx]
        b"\x48\x85\xf6", Amd64Jump(b"\x0f\x84", "no environment"),  # test rsi, rsi; jz
        Label("next variable"),
        b"\x48\x8b\x0b",  # mov rcx, [rbx]
        b"\x48\x83\xc3\x08",  # add rbx, 8
        b"\x48\x83\x3b\x00",  # cmp qword [rbx], 0
        Amd64Jump(b"\x0f\x85", "next variable"),
        Label("next letter"),
        b"\x48\xff\xc1",  # inc rcx
        b"\x80\x79\xff\x00",  # cmp byte [rcx-1], 0
        Amd64Jump(b"\x0f\x85", "next letter"),
        b"\x48\x89\xca", b"\x48\x29\xf2",  # mov rdx, rcx; sub rdx, rsi
        b"\x48\x89\xef", Amd64Jump(b"\xe8", "write"),  # mov rdi, rbp; call
        Label("no environment"),
        b"\x48\x89\xef", Amd64Jump(b"\x48\x8d\x35", "zero"), *_amd64_number(2, 1),
        Amd64Jump(b"\xe8", "write"),
    ]  # fmt: skip


def _amd64_copy(name: str, source: bytes, target: bytes) -> list[Piece]:
    return [
        Label(name),
        source, b"\x48\x89\xe6", *_amd64_number(2, _BUFFER_BYTES), *_amd64_call(0),  # read
        b"\x48\x85\xc0", Amd64Jump(b"\x0f\x8e", f"{name} ended"),  # test rax, rax; jle
        b"\x48\x89\xc2", target, b"\x48\x89\xe6", Amd64Jump(b"\xe8", "write"),
        Amd64Jump(b"\xe9", name),
        Label(f"{name} ended"),
    ]  # fmt: skip


def _amd64_number(register: int, value: int) -> list[Piece]:
    return [bytes([0xB8 + register]) + struct.pack("<I", value)]  # mov r32, value


def _amd64_call(number: int) -> list[Piece]:
    return [*_amd64_number(0, number), b"\x0f\x05"]  # mov eax, number; syscall


def _amd64_jump_unless_zero(label: str) -> list[Piece]:
    return [b"\x48\x85\xc0", Amd64Jump(b"\x0f\x85", label)]  # test rax, rax; jne


# ---- AArch64. x19: the socket; x20: the environment, later the exit code.


def _arm64_code() -> list[Piece]:
    return [
        _word(0xF94003E0),  # ldr x0, [sp]: how many arguments
        _word(0x910003E1), _word(0x8B000C20),  # mov x1, sp; add x0, x1, x0, lsl 3
        _word(0x91004014),  # add x20, x0, 16: the environment
        _word(0xD10043FF), *_arm64_number(0, _BROKEN_PIPE), _word(0xF90003E0),  # sub sp; str x0
        *_arm64_number(0, _SIG_BLOCK), _word(0x910003E1), *_arm64_number(2, 0),
        *_arm64_number(3, 8), *_arm64_call(135),  # rt_sigprocmask: a write fails instead
        _arm64_address(0, "directory"), *_arm64_call(49),  # chdir
        Arm64Jump(0xB5000000, "fail", 19, 5),  # cbnz x0
        *_arm64_number(0, _AF_UNIX), *_arm64_number(1, _SOCK_STREAM), *_arm64_number(2, 0),
        *_arm64_call(198),  # socket
        _word(0xAA0003F3),  # mov x19, x0
        _arm64_address(1, "address"), *_arm64_number(2, _ADDRESS_BYTES),
        *_arm64_call(203),  # connect: x0 is the socket already
        Arm64Jump(0xB5000000, "fail", 19, 5),
        *_arm64_send_environment(),
        _word(0xD14007FF),  # sub sp, sp, 4096
        *_arm64_copy("input", _word(0xD2800000), _word(0xAA1303E0)),  # from 0 to the socket
        _word(0xAA1303E0), *_arm64_number(1, _SHUT_WR), *_arm64_call(210),  # shutdown
        _word(0xAA1303E0), _word(0x910003E1), *_arm64_number(2, 1), *_arm64_call(63),  # read a byte
        _word(0xF100041F), Arm64Jump(0x54000001, "fail", 19, 5),  # cmp x0, 1; b.ne
        _word(0x394003F4),  # ldrb w20, [sp]
        *_arm64_copy("answer", _word(0xAA1303E0), _word(0xD2800020)),  # to standard output
        _word(0xAA1403E0), *_arm64_call(94),  # mov x0, x20; exit_group
        Label("fail"),
        *_arm64_number(0, 1), _arm64_address(1, "complaint"),
        *_arm64_number(2, _COMPLAINT_BYTES), *_arm64_call(64),
        *_arm64_number(0, 1), *_arm64_call(94),
        Label("write"),  # all of x2 bytes at x1 to x21
        _word(0xAA1503E0), *_arm64_call(64),  # mov x0, x21; write
        _word(0xF100001F), Arm64Jump(0x5400000D, "fail", 19, 5),  # cmp x0, 0; b.le
        _word(0x8B000021), _word(0xEB000042),  # add x1, x1, x0; subs x2, x2, x0
        Arm64Jump(0x54000001, "write", 19, 5), _word(0xD65F03C0),  # b.ne; ret
    ]  # fmt: skip


def _arm64_send_environment() -> list[Piece]:
    return [
        _word(0xF9400281),  # ldr x1, [x20]
        Arm64Jump(0xB4000001, "no environment", 19, 5),  # cbz x1
        Label("next variable"),
        _word(0xF8408683),  # ldr x3, [x20], 8
        _word(0xF9400284),  # ldr x4, [x20]
        Arm64Jump(0xB5000004, "next variable", 19, 5),  # cbnz x4
        Label("next letter"),
        _word(0x38401464),  # ldrb w4, [x3], 1
        Arm64Jump(0x35000004, "next letter", 19, 5),  # cbnz w4
        _word(0xCB010062),  # sub x2, x3, x1
        _word(0xAA1303F5), Arm64Jump(0x94000000, "write"),  # mov x21, x19; bl
        Label("no environment"),
        _word(0xAA1303F5), _arm64_address(1, "zero"), *_arm64_number(2, 1),
        Arm64Jump(0x94000000, "write"),
    ]  # fmt: skip


def _arm64_copy(name: str, source: bytes, target: bytes) -> list[Piece]:
    return [
        Label(name),
        source, _word(0x910003E1), *_arm64_number(2, _BUFFER_BYTES), *_arm64_call(63),  # read
        _word(0xF100001F), Arm64Jump(0x5400000D, f"{name} ended", 19, 5),  # cmp x0, 0; b.le
        _word(0xAA0003E2), target, _word(0xAA0003F5), _word(0x910003E1),  # mov x21, x0
        Arm64Jump(0x94000000, "write"),
        Arm64Jump(0x14000000, name),
        Label(f"{name} ended"),
    ]  # fmt: skip


def _arm64_address(register: int, label: str) -> Piece:
    return Arm64Jump(0x10000000 | register, label, in_bytes=True)  # adr


def _arm64_number(register: int, value: int) -> list[Piece]:
    return [_word(0xD2800000 | value << 5 | register)]  # mov


def _arm64_call(number: int) -> list[Piece]:
    return [*_arm64_number(8, number), _word(0xD4000001)]  # svc 0


def _word(instruction: int) -> bytes:
    return struct.pack("<I", instruction)
