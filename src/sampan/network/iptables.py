"""What a machine needs of iptables: where it has no nft, or where Docker drops what is forwarded.

Job: our rules there, the reference plugins' rules that they leave behind; set and remove them.
Invariant: pods are masqueraded by one rule per sampan, never by one per pod (that costs 15 ms at
    each start of a pod and 45 ms at each end).
"""

import ipaddress
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from sampan.network.bridge import PodNetwork, family_of

_COMMAND_SECONDS = 10.0
_PROGRAMS = {"ip": "iptables", "ip6": "ip6tables"}
_PORTMAP_DNAT = "CNI-HOSTPORT-DNAT"
_PORTMAP_CHAINS = (_PORTMAP_DNAT, "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK")


def rules_of(network: PodNetwork, *, masquerade: bool, forward: bool) -> list[list[str]]:
    """Each as table, chain and rule; `forward` where the machine drops what it forwards."""
    mark = ["-m", "comment", "--comment", f"sampan {network.bridge}"]
    rules: list[list[str]] = [_loopback_guard(network.bridge, mark)]
    for subnet in network.subnets if masquerade else ():
        if family_of(subnet) == "ip":
            outside = ["!", "-d", subnet, *mark, "-j", "MASQUERADE"]
            rules.append(["nat", "POSTROUTING", "-s", subnet, *outside])
    return [*rules, *forward_rules(network)] if forward else rules


def forward_rules(network: PodNetwork) -> list[list[str]]:
    """Of either family."""
    mark = ["-m", "comment", "--comment", f"sampan {network.bridge}"]
    return [
        ["filter", "FORWARD", way, network.bridge, *mark, "-j", "ACCEPT"] for way in ("-i", "-o")
    ]


def _loopback_guard(bridge: str, mark: list[str]) -> list[str]:
    """Host ports make the kernel route 127/8 on the bridge (route_localnet), so that a pod which
    writes its own packets would reach what listens on the machine's loopback only. As kube-proxy:
    what belongs to a host port's own connection goes on."""
    known = ["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT"]
    return ["filter", "INPUT", "-i", bridge, "-d", "127.0.0.0/8", *known, *mark, "-j", "DROP"]


def portmap_leftovers(saved: str, subnet: str) -> list[list[str]]:
    """What to tell iptables so that nothing of the portmap plugin's rules for `subnet` is left.

    `saved` is the nat table as iptables-save prints it. The plugin's common chains go when
    nobody's ports are left in them: the plugin itself never removes them.
    """
    rules = [shlex.split(line) for line in saved.splitlines() if line.startswith("-A ")]
    own = {rule[1] for rule in rules if rule[1].startswith("CNI-DN-") and _leads_to(rule, subnet)}
    jumps = [rule for rule in rules if rule[1] == _PORTMAP_DNAT]
    commands = [["-D", *rule[1:]] for rule in jumps if rule[-1] in own]
    for chain in sorted(own):
        commands += [["-F", chain], ["-X", chain]]
    if f":{_PORTMAP_DNAT} " in saved and all(rule[-1] in own for rule in jumps):
        commands += [["-D", *rule[1:]] for rule in rules if rule[-1] in _PORTMAP_CHAINS[:2]]
        for chain in _PORTMAP_CHAINS:
            if f":{chain} " in saved:
                commands += [["-F", chain], ["-X", chain]]
    return commands


def _leads_to(rule: Sequence[str], subnet: str) -> bool:
    if "--to-destination" not in rule:
        return False
    address = rule[rule.index("--to-destination") + 1].rpartition(":")[0].strip("[]")
    return ipaddress.ip_address(address) in ipaddress.ip_network(subnet)


def masquerade(network: PodNetwork, *, by_nft: bool) -> bool:
    """True when one rule for all pods is in place."""
    done = by_nft
    for family in network.families:
        program = _PROGRAMS[family]
        if not shutil.which(program):
            continue
        # Docker sets this policy: without a rule, nothing leaves the pods' bridge.
        drops = "-P FORWARD DROP" in _output([program, "-w", "-S", "FORWARD"])
        if family == "ip":
            rules = rules_of(network, masquerade=not by_nft, forward=drops)
            written = [_ensure(program, rule) for rule in rules]
            done = done or all(written)
        elif drops:
            for rule in forward_rules(network):
                _ensure(program, rule)
    return done


def remove_rules(network: PodNetwork) -> None:
    for subnet in network.subnets:
        family = family_of(subnet)
        program, rules = _PROGRAMS[family], forward_rules(network)
        if not shutil.which(program):
            continue
        if family == "ip":
            rules = rules_of(network, masquerade=True, forward=True)
        for rule in rules:
            if _iptables(program, "-C", rule):
                _iptables(program, "-D", rule)
        save = f"{program}-save"
        saved = _output([save, "-t", "nat"]) if shutil.which(save) else ""
        for command in portmap_leftovers(saved, subnet):
            _run([program, "-w", "-t", "nat", *command])


def _ensure(program: str, rule: Sequence[str]) -> bool:
    return _iptables(program, "-C", rule) or _iptables(program, "-I", rule)


def _iptables(program: str, action: str, rule: Sequence[str]) -> bool:
    table, chain, *rest = rule
    return _run([program, "-w", "-t", table, action, chain, *rest])


def _run(command: Sequence[str]) -> bool:
    return _completed(command).returncode == 0


def _output(command: Sequence[str]) -> str:
    return _completed(command).stdout


def _completed(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, text=True, capture_output=True, timeout=_COMMAND_SECONDS, check=False
    )
