"""Our filters are those that crun compiles itself, byte for byte. [R4]"""

import asyncio
import base64
import json
import os
import platform
import secrets
from pathlib import Path

import pytest

from sampan.core.elf import architecture
from sampan.kubelet.images.pause_program import pause_program
from sampan.kubelet.native.seccomp import runtime_default
from sampan.runtime import monitor
from sampan.runtime.programs import ProgramsMissing, find_programs
from sampan.runtime.seccomp_filter import SeccompFilters

pytestmark = [pytest.mark.containerd, pytest.mark.slow]
MACHINE = architecture(platform.machine())


@pytest.fixture
def crun(tmp_path):
    try:
        programs = find_programs(tmp_path / "state", os.environ["PATH"])
    except ProgramsMissing as error:
        pytest.skip(str(error))
    if programs.name != "crun" or os.geteuid() != 0:
        pytest.skip("needs crun and root")
    return programs


def write_bundle(directory, name, profile):
    root = directory / "rootfs"
    root.mkdir(parents=True)
    program = root / "pause"
    program.write_bytes(pause_program(MACHINE))
    program.chmod(0o755)
    spec = {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": True},
        "process": {"user": {"uid": 0, "gid": 0}, "args": ["/pause"], "cwd": "/"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
        ],
        "linux": {
            "namespaces": [{"type": "mount"}, {"type": "pid"}],
            "cgroupsPath": f"/sampan-{name}",
            "seccomp": profile,
        },
    }
    (directory / "config.json").write_text(json.dumps(spec))


def filter_by_crun(programs, directory, profile):
    name = f"test-{secrets.token_hex(8)}"
    write_bundle(directory, name, profile)

    async def story():
        await monitor.call(programs, "create", "--bundle", str(directory), name)
        try:
            return (Path(programs.state) / name / "seccomp.bpf").read_bytes()
        finally:
            await monitor.call(programs, "delete", "--force", name)

    return asyncio.run(story())


@pytest.mark.parametrize("capabilities", [[], ["CAP_SYS_ADMIN", "CAP_SYS_NICE"]])
def test_the_default_is_what_crun_makes_of_it(crun, tmp_path, capabilities):
    profile = runtime_default(MACHINE, capabilities)
    ours = SeccompFilters(tmp_path / "filters").compiled(profile)
    if not ours:
        pytest.skip("no libseccomp here")
    assert base64.b64decode(ours) == filter_by_crun(crun, tmp_path / "bundle", profile)


def test_a_profile_of_the_nodes_is_what_crun_makes_of_it(crun, tmp_path):
    values = [{"index": 0, "value": value, "op": "SCMP_CMP_EQ"} for value in (8, 16)]
    masked = {"index": 1, "value": 7, "valueTwo": 4, "op": "SCMP_CMP_MASKED_EQ"}
    profile = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [
            {"names": ["personality"], "action": "SCMP_ACT_ERRNO", "args": values},
            {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 97, "args": [masked]},
            {"names": ["reboot", "not_a_call"], "action": "SCMP_ACT_KILL_PROCESS"},
        ],
    }
    ours = SeccompFilters(tmp_path / "filters").compiled(profile)
    if not ours:
        pytest.skip("no libseccomp here")
    assert base64.b64decode(ours) == filter_by_crun(crun, tmp_path / "bundle", profile)
