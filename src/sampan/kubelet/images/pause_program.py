"""The program whose only process holds a pod's namespaces open: a static ELF of some hundred bytes.

Job: write it as machine code: nobody needs a compiler.

The program: block SIGINT, SIGTERM and SIGCHLD, then wait for one of them for ever. A signal that
is blocked is queued even for PID 1, which otherwise never sees one that it has no handler for. On
SIGCHLD it reaps whatever has died (with a shared process namespace it is everybody's parent), on
the other two it ends with 0.
"""

import struct

from sampan.core.elf import EM_AARCH64, EM_X86_64, elf_file

_SIGINT, _SIGTERM, _SIGCHLD = 2, 15, 17
_MASK = sum(1 << (signal - 1) for signal in (_SIGINT, _SIGTERM, _SIGCHLD))


def pause_program(arch: str) -> bytes:
    """The ELF file."""
    if arch == "amd64":
        return elf_file(EM_X86_64, _amd64_code())
    return elf_file(EM_AARCH64, _arm64_code())


def _amd64_code() -> bytes:
    """System calls: 14 rt_sigprocmask, 128 rt_sigtimedwait, 61 wait4, 231 exit_group."""
    block = (
        b"\x68" + struct.pack("<I", _MASK)  # push MASK
        + b"\x48\x89\xe6"  # mov rsi, rsp
        + b"\x31\xff"  # xor edi, edi: SIG_BLOCK
        + b"\x31\xd2"  # xor edx, edx: no old set
        + b"\x41\xba\x08\x00\x00\x00"  # mov r10d, 8
        + _amd64_call(14)
    )  # fmt: skip
    wait = (
        b"\x48\x89\xe7"  # mov rdi, rsp
        + b"\x31\xf6"  # xor esi, esi: no siginfo
        + b"\x31\xd2"  # xor edx, edx: no timeout
        + b"\x41\xba\x08\x00\x00\x00"  # mov r10d, 8
        + _amd64_call(128)
    )
    reap = (
        b"\xbf\xff\xff\xff\xff"  # mov edi, -1: any child
        + b"\x31\xf6"  # xor esi, esi
        + b"\xba\x01\x00\x00\x00"  # mov edx, WNOHANG
        + b"\x45\x31\xd2"  # xor r10d, r10d
        + _amd64_call(61)
        + b"\x85\xc0"  # test eax, eax
    )
    leave = b"\x31\xff" + _amd64_call(231)
    # Jumps are two bytes long, relative to their end. Order: block, wait, choice, reap, leave.
    choice_size, reap_size = 3 + 2 + 3 + 2 + 3 + 2 + 2, len(reap) + 2 + 2
    choice = (
        b"\x83\xf8" + bytes([_SIGCHLD]) + b"\x74" + bytes([choice_size - 5])  # je reap
        + b"\x83\xf8" + bytes([_SIGTERM]) + b"\x74" + bytes([choice_size - 10 + reap_size])
        + b"\x83\xf8" + bytes([_SIGINT]) + b"\x74" + bytes([choice_size - 15 + reap_size])
        + b"\xeb" + _back(len(wait) + choice_size)  # something else: wait again
    )  # fmt: skip
    assert len(choice) == choice_size
    again = b"\x7f" + _back(len(reap) + 2)  # jg: there may be more
    again += b"\xeb" + _back(len(wait) + choice_size + reap_size)
    return block + wait + choice + reap + again + leave


def _amd64_call(number: int) -> bytes:
    return b"\xb8" + struct.pack("<I", number) + b"\x0f\x05"  # mov eax, number; syscall


def _back(distance: int) -> bytes:
    return struct.pack("<b", -distance)


def _arm64_code() -> bytes:
    """System calls: 135 rt_sigprocmask, 137 rt_sigtimedwait, 260 wait4, 94 exit_group."""
    block = [
        0xD10043FF,  # sub sp, sp, #16
        _movz(0, _MASK & 0xFFFF),
        0xF2A00000 | (_MASK >> 16) << 5,  # movk x0, #high, lsl #16
        0xF90003E0,  # str x0, [sp]
        _movz(0, 0),  # SIG_BLOCK
        0x910003E1,  # mov x1, sp
        _movz(2, 0),
        _movz(3, 8),
        *_arm64_call(135),
    ]
    wait = [0x910003E0, _movz(1, 0), _movz(2, 0), _movz(3, 8), *_arm64_call(137)]
    reap = [
        0x92800000,  # mov x0, #-1
        _movz(1, 0),
        _movz(2, 1),  # WNOHANG
        _movz(3, 0),
        *_arm64_call(260),
        0x7100001F,  # cmp w0, #0
    ]
    leave = [_movz(0, 0), *_arm64_call(94)]
    # Branches count instructions from their own place. Order: block, wait, choice, reap, leave.
    choice_size, reap_size = 7, len(reap) + 2
    choice = [
        _compare(_SIGCHLD), _branch_if(_EQUAL, choice_size - 1),
        _compare(_SIGTERM), _branch_if(_EQUAL, choice_size - 3 + reap_size),
        _compare(_SIGINT), _branch_if(_EQUAL, choice_size - 5 + reap_size),
        _branch(-(len(wait) + choice_size - 1)),
    ]  # fmt: skip
    again = [
        _branch_if(_GREATER, -len(reap)),
        _branch(-(len(wait) + choice_size + reap_size - 1)),
    ]
    code = [*block, *wait, *choice, *reap, *again, *leave]
    return b"".join(struct.pack("<I", instruction) for instruction in code)


_EQUAL, _GREATER = 0x0, 0xC


def _movz(register: int, value: int) -> int:
    return 0xD2800000 | value << 5 | register


def _arm64_call(number: int) -> list[int]:
    return [_movz(8, number), 0xD4000001]  # mov x8, number; svc #0


def _compare(value: int) -> int:
    return 0x7100001F | value << 10  # cmp w0, #value


def _branch_if(condition: int, distance: int) -> int:
    return 0x54000000 | (distance & 0x7FFFF) << 5 | condition


def _branch(distance: int) -> int:
    return 0x14000000 | distance & 0x3FFFFFF
