"""Profiles become filters once; what is kept is used only when it is whole."""

import base64

import pytest

from sampan.kubelet.native.seccomp import runtime_default
from sampan.runtime.seccomp_filter import CannotCompile, Rule, SeccompFilters, action_of, rules_of

PROFILE = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "architectures": ["SCMP_ARCH_X86_64"],
    "syscalls": [{"names": ["read", "write", "no_such_call"], "action": "SCMP_ACT_ALLOW"}],
}
INSTRUCTION_BYTES = 8


def compiled(filters, profile=PROFILE):
    found = filters.compiled(profile)
    if not found:
        pytest.skip("no libseccomp here")
    return found


def test_comparisons_of_one_argument_are_alternatives_of_several_one_rule():
    values = [{"index": 0, "value": value, "op": "SCMP_CMP_EQ"} for value in (1, 2)]
    other = {"index": 1, "value": 3, "op": "SCMP_CMP_MASKED_EQ", "valueTwo": 4}
    entry = {"names": ["socket"], "action": "SCMP_ACT_ALLOW"}
    allow = action_of("SCMP_ACT_ALLOW", None)
    profile = {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{**entry, "args": values}]}
    assert rules_of(profile) == [
        Rule(allow, "socket", ((0, 4, 1, 0),)),
        Rule(allow, "socket", ((0, 4, 2, 0),)),
    ]
    profile["syscalls"] = [{**entry, "args": [values[0], other]}]
    assert rules_of(profile) == [Rule(allow, "socket", ((0, 4, 1, 0), (1, 7, 3, 4)))]


def test_what_the_default_says_anyway_is_no_rule():
    entries = [
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
        {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    ]
    profile = {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": entries}
    assert [rule.name for rule in rules_of(profile)] == ["clone"]


@pytest.mark.parametrize(
    "change",
    [
        {"defaultAction": "SCMP_ACT_NOTIFY"},
        {"flags": ["SECCOMP_FILTER_FLAG_LOG"]},
        {"architectures": ["SCMP_ARCH_NONE"]},
        {"syscalls": [{"names": ["read"], "action": "SCMP_ACT_MAYBE"}]},
        {"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "errnoRet": 1}]},
        {"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 9}]}]},
        {"syscalls": [{"action": "SCMP_ACT_ALLOW"}]},
    ],
)
def test_what_cannot_be_compiled_is_left_to_the_runtime(tmp_path, change):
    assert SeccompFilters(tmp_path).compiled(PROFILE | change) == ""


def test_an_action_that_is_not_known_is_refused():
    with pytest.raises(CannotCompile):
        action_of("SCMP_ACT_NOTIFY", None)


def test_a_filter_is_a_program_of_the_kernels(tmp_path):
    found = base64.b64decode(compiled(SeccompFilters(tmp_path)))
    assert len(found) > 0
    assert len(found) % INSTRUCTION_BYTES == 0


def test_a_filter_is_kept_and_belongs_to_its_profile(tmp_path):
    found = compiled(SeccompFilters(tmp_path))
    (kept,) = tmp_path.iterdir()
    assert SeccompFilters(tmp_path).compiled(PROFILE) == found
    other = SeccompFilters(tmp_path).compiled(PROFILE | {"defaultAction": "SCMP_ACT_LOG"})
    assert other not in ("", found)
    # The file of another profile is not taken for this one's.
    (name,) = {file.name for file in tmp_path.iterdir()} - {kept.name}
    kept.write_text((tmp_path / name).read_text())
    assert SeccompFilters(tmp_path).compiled(PROFILE) == found


@pytest.mark.parametrize("damage", ["", "cut off", "\n", "changed"])
def test_a_kept_filter_that_is_not_whole_is_made_again(tmp_path, damage):
    found = compiled(SeccompFilters(tmp_path))
    (kept,) = tmp_path.iterdir()
    text = kept.read_text()
    whole = {"cut off": text[: len(text) // 2], "changed": text[:-4] + "AAA="}
    kept.write_text(whole.get(damage, damage))
    assert SeccompFilters(tmp_path).compiled(PROFILE) == found
    assert kept.read_text() == text


def test_only_so_many_are_kept(tmp_path):
    for number in range(80):
        (tmp_path / f"old-{number}").write_text("")
    compiled(SeccompFilters(tmp_path))
    assert len(list(tmp_path.iterdir())) < 80


def test_the_default_profile_is_compiled_for_both_machines(tmp_path):
    filters = SeccompFilters(tmp_path)
    compiled(filters)
    for machine in ("amd64", "arm64"):
        assert filters.compiled(runtime_default(machine, ["CAP_SYS_ADMIN"]))
