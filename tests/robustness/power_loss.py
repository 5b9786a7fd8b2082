"""A machine that loses its power: what it had running is gone, its files are not.

Job: end every process of a cluster, its containers' too, and take away its mounts, cgroups,
    interfaces and rules of the packet filter; give the machine another boot id.
Invariant: nothing is touched but what is known as this cluster's by its data directory.
"""

import os
import shlex
import signal
import subprocess
import time
import uuid
from contextlib import suppress
from pathlib import Path

from tests.support.parts.leftovers import leftovers, network_of

SECONDS = 60.0


def lose_power(process, layer):
    process.kill()
    network, ends = network_of(process.data_dir), time.monotonic() + SECONDS
    while left := taken_by_a_boot(leftovers(process.data_dir, network)):
        assert time.monotonic() < ends, f"still there: {left}"
        for line in left.get("processes", ()):
            with suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)
        for line in reversed([*left.get("mounts", ()), *left.get("namespaces", ())]):
            subprocess.run(["umount", "-l", line.split(" ")[4]], capture_output=True)
        for group in left.get("cgroups", ()):
            remove_groups(Path(group))
        for interface in left.get("interfaces", ()):
            subprocess.run(["ip", "link", "del", interface], capture_output=True)
        for rule in left.get("rules", ()):
            if rule.startswith("table "):
                subprocess.run(["nft", "delete", *rule.split()], capture_output=True)
            elif rule.startswith("-A "):
                subprocess.run(["iptables", "-D", *shlex.split(rule[3:])], capture_output=True)
        time.sleep(0.05)
    if layer is not None:
        layer.boot(str(uuid.uuid4()))


def taken_by_a_boot(left):
    """Files stay, and loop devices are found again by theirs."""
    kinds = ("processes", "mounts", "namespaces", "cgroups", "interfaces", "rules")
    return {kind: left[kind] for kind in kinds if kind in left}


def remove_groups(top):
    for folder, _, _ in os.walk(top, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)
