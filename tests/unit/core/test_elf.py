import struct

import pytest

from sampan.core.elf import (
    EM_AARCH64,
    EM_X86_64,
    Amd64Jump,
    Arm64Jump,
    Label,
    UnsupportedMachine,
    architecture,
    assembled,
    elf_file,
)


def test_both_machines_have_several_names_and_others_are_refused():
    assert {architecture(name) for name in ("x86_64", "amd64")} == {"amd64"}
    assert {architecture(name) for name in ("aarch64", "arm64")} == {"arm64"}
    with pytest.raises(UnsupportedMachine, match="riscv64"):
        architecture("riscv64")


def test_jumps_lead_forwards_and_backwards_to_their_labels():
    code = assembled(
        [Amd64Jump(b"\xe9", "end"), Label("middle"), b"\x90\x90", Label("end"),
         Amd64Jump(b"\x0f\x84", "middle")]
    )  # fmt: skip
    assert struct.unpack_from("<i", code, 1)[0] == 2
    assert struct.unpack_from("<i", code, 9)[0] == 5 - len(code)


def test_arm64_counts_instructions_from_the_jump_itself():
    code = assembled([Label("start"), b"\0" * 8, Arm64Jump(0x14000000, "start")])
    assert struct.unpack_from("<I", code, 8)[0] == 0x14000000 | (-2 & 0x3FFFFFF)
    near = assembled([Arm64Jump(0x10000001, "data", in_bytes=True), b"\0" * 5, Label("data")])
    assert struct.unpack_from("<I", near)[0] == 0x10000001 | (9 & 3) << 29 | (9 >> 2) << 5


def test_an_executable_begins_with_its_code():
    for number in (EM_X86_64, EM_AARCH64):
        elf = elf_file(number, b"\xcc" * 7)
        assert elf[:4] == b"\x7fELF"
        assert struct.unpack_from("<H", elf, 18)[0] == number
        entry, start = struct.unpack_from("<Q", elf, 24)[0], struct.unpack_from("<Q", elf, 80)[0]
        assert elf[entry - start :] == b"\xcc" * 7
