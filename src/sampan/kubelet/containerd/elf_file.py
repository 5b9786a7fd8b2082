"""Static programs written as machine code: nobody needs a compiler.

Job: code and data → an ELF file that Linux runs on this machine.
"""

import struct

LOAD_ADDRESS = 0x400000
HEADERS_SIZE = 64 + 56  # the ELF header, and one program header
EM_X86_64, EM_AARCH64 = 62, 183


class UnsupportedMachine(Exception):
    pass


def architecture(machine: str) -> str:
    """The name of `machine` (as uname says it) in image configurations."""
    names = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    if machine not in names:
        raise UnsupportedMachine(f"no programs for {machine}: x86_64 and aarch64 have them")
    return names[machine]


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
