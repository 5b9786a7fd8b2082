"""The AppArmor profile of containers that name none: sampan's own, loaded into the kernel.

Job: the profile's text; load it where the machine has AppArmor and its parser; say whether it is
    there.
Invariant: where it cannot be loaded, nobody is told that it is enforced.
"""

import shutil
import subprocess
from pathlib import Path

DEFAULT_PROFILE = "sampan-default"
ENABLED = Path("/sys/module/apparmor/parameters/enabled")
LOADED = Path("/sys/kernel/security/apparmor/profiles")
PARSER = "apparmor_parser"
_LOAD_SECONDS = 20.0

# Everything that the other confinements (capabilities, seccomp, masked paths) leave to a container,
# but no mounts, no writes to the kernel's settings, and no signals to those outside.
PROFILE = f"""\
#include <tunables/global>

profile {DEFAULT_PROFILE} flags=(attach_disconnected,mediate_deleted) {{
  #include <abstractions/base>

  capability,
  file,
  network,
  umount,
  deny mount,

  signal (receive) peer=unconfined,
  signal (receive) peer={{/usr,}}/{{bin,sbin}}/{{crun,runc,conmon}},
  signal (receive) peer={{crun,runc,conmon}},
  signal (send, receive) peer={DEFAULT_PROFILE},
  ptrace (trace, tracedby, read, readby) peer={DEFAULT_PROFILE},

  # Of /proc a process may write to what is its own; of the settings to those of its network, its
  # messages and its shared memory, which are the pod's.
  deny @{{PROC}}/{{kcore,kmem,mem,sysrq-trigger}} rwklx,
  deny @{{PROC}}/* w,
  deny @{{PROC}}/sys/{{abi,debug,dev,fs,vm}}/** wkl,
  deny @{{PROC}}/sys/kernel/[^ms]** wkl,
  deny @{{PROC}}/sys/kernel/{{m[^s],s[^eh]}}** wkl,

  deny /sys/{{block,bus,class,dev,devices,firmware,hypervisor,module,power}}/** wkl,
  deny /sys/fs/[^c]*/** wkl,
  deny /sys/kernel/** wkl,
  deny /sys/kernel/security/** rwklx,
}}
"""


def is_loaded(profiles: Path = LOADED) -> bool:
    try:
        lines = profiles.read_text().splitlines()
    except OSError:
        return False
    return any(line.startswith(f"{DEFAULT_PROFILE} (") for line in lines)


def load_default(search_path: str, enabled: Path = ENABLED) -> str:
    """What kept it from being loaded; "" where it was, or where there is no AppArmor. Takes a
    moment. One of an earlier version is replaced."""
    try:
        if not enabled.read_text().startswith("Y"):
            return ""
    except OSError:
        return ""
    parser = shutil.which(PARSER, path=search_path)
    if parser is None:
        return f"no {PARSER} (apt-get install apparmor)"
    try:
        done = subprocess.run(
            [parser, "--replace", "--skip-cache"], input=PROFILE, text=True,
            capture_output=True, timeout=_LOAD_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{PARSER}: {error}"
    return f"{PARSER}: {done.stderr.strip()}" if done.returncode else ""
