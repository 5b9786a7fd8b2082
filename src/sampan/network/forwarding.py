"""The kernel's switches that make a machine pass packets on for its pods.

Job: switch forwarding on, for one family of addresses; say whether the machine has IPv6 at all.
Invariant: a machine that learned its own way out by router advertisements goes on doing so: the
    kernel would ignore them once it forwards.
"""

from pathlib import Path

_SWITCHES = {
    "ip": Path("/proc/sys/net/ipv4/ip_forward"),
    "ip6": Path("/proc/sys/net/ipv6/conf/all/forwarding"),
}
_INTERFACES = Path("/proc/sys/net/ipv6/conf")
_IPV6_ADDRESSES = Path("/proc/net/if_inet6")
_IPV6_OFF = _INTERFACES / "all" / "disable_ipv6"


def why_no_ipv6() -> str:
    """Empty where the machine has it."""
    if not _IPV6_ADDRESSES.exists():
        return "this machine's kernel has no IPv6 (/proc/net/if_inet6 is missing)"
    if _IPV6_OFF.read_text().strip() == "1":
        return "IPv6 is switched off on this machine (sysctl net.ipv6.conf.all.disable_ipv6 is 1)"
    return ""


def switch_on(family: str) -> None:
    """Raises OSError."""
    switch = _SWITCHES[family]
    if switch.read_text().strip() == "1":
        return
    if family == "ip6":
        _keep_advertisements()
    switch.write_text("1")


def _keep_advertisements() -> None:
    for accepts in _INTERFACES.glob("*/accept_ra"):
        if accepts.parent.name != "default" and accepts.read_text().strip() == "1":
            accepts.write_text("2")  # also while forwarding
