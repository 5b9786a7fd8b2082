"""What a cgroup is called, for both drivers. Pure.

Job: a path such as /kubepods/burstable/podU → its folder, and the name that the runtime gets.
Invariant: with systemd every folder is a slice whose name tells all of its parents, because that
    is how systemd finds the place of a slice.
"""

CPU_PERIOD = 100_000  # microseconds: of which a quota is a share
CGROUPFS, SYSTEMD = "cgroupfs", "systemd"
DRIVERS = (CGROUPFS, SYSTEMD)
NOBODY = "none"  # pods have no cgroups of their own: for machines where they cannot be made


def folder(path: str, driver: str) -> str:
    """Inside of a hierarchy; also what the runtime is given as the parent of a pod's containers."""
    if driver == CGROUPFS or not path:
        return path
    # As upstream's ToSystemd: a dash would be read as the border between two slices.
    parts = [part.replace("-", "_") for part in path.strip("/").split("/") if part]
    slices = ["-".join(parts[: at + 1]) + ".slice" for at in range(len(parts))]
    return "/" + "/".join(slices)


def unit(path: str) -> str:
    """The slice itself: kubepods-burstable-podU.slice."""
    return folder(path, SYSTEMD).rpartition("/")[2]


def pod_folder(uid: str) -> str:
    return f"pod{uid}"


def uid_in(name: str, driver: str) -> str:
    """The uid in a pod's folder; empty for other folders."""
    if driver == CGROUPFS:
        return name.removeprefix("pod") if name.startswith("pod") else ""
    last = name.removesuffix(".slice").rpartition("-")[2]
    if not name.endswith(".slice") or not last.startswith("pod"):
        return ""
    return last.removeprefix("pod").replace("_", "-")


def container_folder(container_id: str, driver: str, runtime_name: str) -> str:
    """Below the pod's: systemd has a scope for each container, named by the runtime."""
    if driver == CGROUPFS:
        return f"crio-{container_id}" if runtime_name == "cri-o" else container_id
    prefix = "crio" if runtime_name == "cri-o" else "cri-containerd"
    return f"{prefix}-{container_id}.scope"


class WrongDriver(ValueError):
    """Runtime, configuration and machine do not go together; the text says what to change."""


def settled_driver(asked: str, said: str, *, private: bool, systemd_runs: bool) -> str:
    """Which driver this node uses: `asked` by the user, `said` by the runtime (both may be empty).
    Empty: the runtime alone decides where containers go. Raises WrongDriver."""
    if asked == NOBODY:
        return ""
    if asked and said and asked != said and not private:
        raise WrongDriver(
            f"--cgroup-driver is {asked}, but the runtime uses {said}: leave the flag out, or set "
            "SystemdCgroup (containerd) or cgroup_manager (CRI-O) in the runtime's configuration"
        )
    driver = (asked or CGROUPFS) if private else (said or asked)
    if driver == SYSTEMD and not systemd_runs:
        who = "--cgroup-driver systemd" if asked else "the runtime's cgroup driver"
        change = "leave the flag out" if asked else "set SystemdCgroup = false (containerd)"
        raise WrongDriver(
            f"{who} needs systemd as the machine's first process, and it does not run: {change}"
        )
    return driver
