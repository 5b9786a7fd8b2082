"""The rules behind Services, as nftables text: they are few, and no Service is named in them.

Job: the skeleton of the table, and the chains that pick one of N endpoints. Pure.
Invariant: a rule looks a Service up in a map; so a Service that changes is a change of elements,
    and costs the same however many there are.
Invariant: what is addressed to a service range and was not sent on to an endpoint is rejected on
    this machine: nothing for it ever leaves.

A connection's way: `services` finds the chain by address, protocol and port (or by node port); that
chain, say `cluster-3`, takes a number below three and goes on to, say, `endpoints-2`, which finds
the third endpoint by address, protocol and port again. (One map with the number in its key would
do, but nft 1.0 cannot read its own rules on it back.) The `local-` maps are for
externalTrafficPolicy: Local and hold what traffic from outside the cluster may reach; they are
asked first, and only for such traffic.
"""

import functools
import ipaddress
from collections.abc import Iterable, Sequence

from sampan.core.fast_dataclass import dataclass
from sampan.network.nftables.elements import Field, SetShape

# As kube-proxy's: whoever sees it masquerades, in whichever table.
MASQUERADE_MARK = "0x4000"
MOST_CLIENTS = 65536

CLUSTER, EXTERNAL, LOCAL = "cluster", "external", "local"
NODE_PORT, LOCAL_NODE_PORT = "nodeport", "local-nodeport"
AFFINITY = "affinity"
SLOTS_AT_START = 4
# Which maps of endpoints each sort of chain looks into.
_ENDPOINT_MAPS = {
    CLUSTER: "endpoints",
    EXTERNAL: "endpoints",
    LOCAL: "local-endpoints",
    NODE_PORT: "nodeport-endpoints",
    LOCAL_NODE_PORT: "local-nodeport-endpoints",
}


@dataclass(frozen=True, slots=True)
class ProxyPlace:
    """Where the rules are, and what they must know of it."""

    table: str
    bridge: str = ""  # the pods' own; empty: not known, as in a process of its own
    cluster_cidrs: tuple[str, ...] = ()  # of all pods; empty: not known
    service_cidrs: tuple[str, ...] = ()
    other_bridges: str = ""  # a pattern: pods behind these are another cluster's
    pod_cidrs: tuple[str, ...] = ()  # of this node's pods, where they are masqueraded here
    gateways: tuple[str, ...] = ()  # the bridge's own addresses: for this machine and its pods
    # Where pods may come by any interface: those that other machines come by.
    uplinks: tuple[str, ...] = ()

    @property
    def families(self) -> tuple[str, ...]:
        """As nftables calls them: those of the ranges."""
        known = (*self.service_cidrs, *self.cluster_cidrs)
        return tuple(dict.fromkeys("ip6" if ":" in cidr else "ip" for cidr in known)) or ("ip",)


def chain_name(sort: str, number: int) -> str:
    return f"{sort}-{number}"


def _address(family: str) -> Field:
    return Field.IPV4 if family == "ip" else Field.IPV6


def shapes(family: str) -> dict[str, SetShape]:
    """Every set and map that a Service has elements in; `affinity` is filled by packets."""
    address = _address(family)
    by_address = (address, Field.PROTOCOL, Field.PORT)
    by_port = (Field.PROTOCOL, Field.PORT)
    return {
        shape.name: shape
        for shape in (
            SetShape("service-ips", by_address, verdicts=True),
            SetShape("local-ips", by_address, verdicts=True),
            SetShape("service-nodeports", by_port, verdicts=True),
            SetShape("local-nodeports", by_port, verdicts=True),
            SetShape("no-endpoint-ips", by_address),
            SetShape("no-endpoint-nodeports", by_port),
            SetShape("affinity-ips", by_address, verdicts=True),
            SetShape("affinity-nodeports", by_port, verdicts=True),
            SetShape("hairpin", (address, address)),
            SetShape("restricted-ips", by_address),
            SetShape("allowed-sources", (*by_address, address), intervals=True),
            SetShape("listening-ports", by_port),
            SetShape("listening-ips", by_address),
        )
    }


def slot_name(sort: str, slot: int) -> str:
    """The map with every Service's endpoint number `slot`."""
    return f"{_ENDPOINT_MAPS[sort]}-{slot}"


@functools.cache
def shape_of(family: str, name: str) -> SetShape:
    """Of a set of `shapes`, or of the map that `slot_name` made the name of."""
    found = shapes(family).get(name)
    if found is not None:
        return found
    by_port = "nodeport" in name
    address = _address(family)
    key = (Field.PROTOCOL, Field.PORT) if by_port else (address, Field.PROTOCOL, Field.PORT)
    return SetShape(name, key, (address, Field.PORT))


def slot_names(slot: int) -> list[str]:
    return [f"{sort}-{slot}" for sort in dict.fromkeys(_ENDPOINT_MAPS.values())]


def affinity_seconds_of(chain: str) -> int | None:
    """For how long a client stays whom this chain remembers; None: a chain of another sort."""
    sort, _, number = chain.rpartition("-")
    return int(number) if sort == AFFINITY else None


def affinity_shape(family: str) -> SetShape:
    address = _address(family)
    key = (address, address, Field.PROTOCOL, Field.PORT)
    return SetShape("affinity", key, (address, Field.PORT))


def skeleton(family: str, place: ProxyPlace) -> str:
    """Repeating it changes nothing, and what the maps hold stays: rules are adopted."""
    table = f"{family} {place.table}"
    chains = _static_chains(family, place)
    lines = [f"add table {table}", *_maps(family, table)]
    lines += [f"add chain {table} {name} {{ {hook} }}" for name, hook, _ in chains]
    for name, _, rules in chains:
        lines.append(f"flush chain {table} {name}")
        lines += [f"add rule {table} {name} {rule}" for rule in rules]
    return "\n".join(lines) + "\n" + slots(family, place, range(SLOTS_AT_START))


def pick_chains(family: str, place: ProxyPlace, names: Iterable[str]) -> str:
    """The chains that `chain_name` made the names of; those that learn are empty still."""
    table = f"{family} {place.table}"
    lines: list[str] = []
    for name in sorted(names):
        lines += [f"add chain {table} {name}", f"flush chain {table} {name}"]
        if affinity_seconds_of(name) is None:
            sort, _, number = name.rpartition("-")
            rules = _pick(family, sort, int(number), place)
            lines += [f"add rule {table} {name} {rule}" for rule in rules]
    return "\n".join(lines) + "\n"


def refusals(family: str, place: ProxyPlace) -> str:
    """The chain of what is refused, where the ranges of Services are others than they were."""
    table = f"{family} {place.table}"
    name, _, rules = _refusing_chain(family, place)
    lines = [f"flush chain {table} {name}"]
    return "\n".join([*lines, *(f"add rule {table} {name} {rule}" for rule in rules)]) + "\n"


def slots(family: str, place: ProxyPlace, numbers: Iterable[int]) -> str:
    """For each number four maps, and the chains that send a connection where they say."""
    table = f"{family} {place.table}"
    address = "ipv4_addr" if family == "ip" else "ipv6_addr"
    lines: list[str] = []
    for number in numbers:
        for name in slot_names(number):
            by_port = "nodeport" in name
            key = (
                "inet_proto . inet_service" if by_port else f"{address} . inet_proto . inet_service"
            )
            packet = _PORT_KEY if by_port else f"{family} daddr . {_PORT_KEY}"
            lines += [
                f"add map {table} {name} {{ type {key} : {address} . inet_service; }}",
                f"add chain {table} {name}",
                f"flush chain {table} {name}",
                f"add rule {table} {name} {_TRANSPORT} dnat {family} to {packet} map @{name}",
            ]
    return "\n".join(lines) + "\n"


_TRANSPORT = "meta l4proto { tcp, udp, sctp }"
_PORT_KEY = "meta l4proto . th dport"


def _pick(family: str, sort: str, number: int, place: ProxyPlace) -> list[str]:
    endpoints = _ENDPOINT_MAPS[sort]
    sticky = f"{family} saddr . {family} daddr . {_PORT_KEY}"
    numbered = ", ".join(f"{slot} : goto {endpoints}-{slot}" for slot in range(number))
    return [
        *_masquerade(family, sort, place),
        f"{_TRANSPORT} dnat {family} to {sticky} map @affinity",
        f"numgen random mod {number} vmap {{ {numbered} }}",
    ]


def _masquerade(family: str, sort: str, place: ProxyPlace) -> list[str]:
    """Answers must come back through this node where another way would be open to them."""
    mark = f"meta mark set meta mark or {MASQUERADE_MARK}"
    if sort in (EXTERNAL, NODE_PORT):
        return [mark]
    pods = _in_family(family, place.cluster_cidrs)
    if sort == CLUSTER and pods:
        return [f"{family} saddr != {_set(pods)} {mark}"]
    return []


def _maps(family: str, table: str) -> list[str]:
    address = "ipv4_addr" if family == "ip" else "ipv6_addr"
    verdict = f"type {address} . inet_proto . inet_service : verdict"
    port_verdict = "type inet_proto . inet_service : verdict"
    client = f"type {address} . {address} . inet_proto . inet_service"
    maps = {
        "service-ips": verdict,
        "local-ips": verdict,
        "service-nodeports": port_verdict,
        "local-nodeports": port_verdict,
        "affinity-ips": verdict,
        "affinity-nodeports": port_verdict,
        "affinity": f"{client} : {address} . inet_service; "
        f"flags dynamic,timeout; size {MOST_CLIENTS}",
    }
    sets = {
        "no-endpoint-ips": f"type {address} . inet_proto . inet_service",
        "no-endpoint-nodeports": "type inet_proto . inet_service",
        "hairpin": f"type {address} . {address}",
        "restricted-ips": f"type {address} . inet_proto . inet_service",
        "allowed-sources": f"type {address} . inet_proto . inet_service . {address}; "
        "flags interval",
        **listening_sets(family),
    }
    return [
        *(f"add map {table} {name} {{ {spec}; }}" for name, spec in maps.items()),
        *(f"add set {table} {name} {{ {spec}; }}" for name, spec in sets.items()),
    ]


Chain = tuple[str, str, Sequence[str]]  # name, hook (empty: reached by a jump only), rules


def _static_chains(family: str, place: ProxyPlace) -> list[Chain]:
    """Jumped-to chains come first: a rule may only name a chain that is there."""
    return [
        _services(family),
        _from_outside(family, place),
        _refusing_chain(family, place),
        _affinity(family),
        ("nat-prerouting", _hook("nat", "prerouting", "dstnat"), _incoming(family, place)),
        ("nat-output", _hook("nat", "output", "-100"), [*own_ports(family), "jump services"]),
        ("nat-postrouting", _hook("nat", "postrouting", "srcnat"), _postrouting(family, place)),
        ("pod-sources", _hook("filter", "prerouting", "raw - 10"), _strangers(family, place)),
        ("filter-prerouting", _hook("filter", "prerouting", "dstnat - 10"), _sources(family)),
        # Before the packet is routed: a way back out of the pods' bridge would make the kernel send
        # a redirect instead of the refusal.
        ("refuse-prerouting", _hook("filter", "prerouting", "dstnat + 10"), ["jump refused"]),
        ("guard-input", _hook("filter", "input", "filter - 10"), _guard(family, place)),
        ("filter-output", _hook("filter", "output", "filter - 10"), ["jump refused"]),
        ("learn-input", _hook("filter", "input", "filter + 10"), ["jump affine"]),
        ("learn-postrouting", _hook("filter", "postrouting", "srcnat - 10"), ["jump affine"]),
    ]


def _hook(sort: str, hook: str, priority: str) -> str:
    return f"type {sort} hook {hook} priority {priority}; policy accept;"


def _local(family: str) -> str:
    loopback = "127.0.0.0/8" if family == "ip" else "::1"
    return f"fib daddr type local {family} daddr != {loopback}"


def _services(family: str) -> Chain:
    return (
        "services",
        "",
        [
            # Before addresses: nobody claims another Service's node port by the node's address.
            f"{_TRANSPORT} {_local(family)} {_PORT_KEY} vmap @service-nodeports",
            f"{_TRANSPORT} {family} daddr . {_PORT_KEY} vmap @service-ips",
        ],
    )


def _from_outside(family: str, place: ProxyPlace) -> Chain:
    pods = _in_family(family, place.cluster_cidrs)
    return (
        "from-outside",
        "",
        [
            *([f"{family} saddr {_set(pods)} return"] if pods else []),
            f"{_TRANSPORT} {_local(family)} {_PORT_KEY} vmap @local-nodeports",
            f"{_TRANSPORT} {family} daddr . {_PORT_KEY} vmap @local-ips",
        ],
    )


def listening_sets(family: str) -> dict[str, str]:
    """Where the node's own programs listen: at every address, and at one."""
    address = "ipv4_addr" if family == "ip" else "ipv6_addr"
    return {
        "listening-ports": "type inet_proto . inet_service",
        "listening-ips": f"type {address} . inet_proto . inet_service",
    }


def own_ports(family: str, state: str = "") -> list[str]:
    """What a program of the node listens for is its own, whatever address a Service claims: the
    kubelet, the API server, sshd. `state`: of connections, where others are asked for, too."""
    return [
        f"{state}{_TRANSPORT} {family} daddr . {_PORT_KEY} @listening-ips return",
        f"{state}{_TRANSPORT} fib daddr type local {_PORT_KEY} @listening-ports return",
    ]


def _incoming(family: str, place: ProxyPlace) -> list[str]:
    rules = [*own_ports(family), "jump from-outside", "jump services"]
    if place.bridge and place.other_bridges:
        others = f'iifname "{place.other_bridges}" iifname != "{place.bridge}" return'
        return [others, *rules]
    return rules


def _refusing_chain(family: str, place: ProxyPlace) -> Chain:
    ranges = _disjoint(_in_family(family, place.service_cidrs))
    new = f"ct state new {_TRANSPORT}"
    known = [
        f"{new} {family} daddr . {_PORT_KEY} @no-endpoint-ips",
        f"{new} {_local(family)} {_PORT_KEY} @no-endpoint-nodeports",
        *([f"{family} daddr {_set(ranges)}"] if ranges else []),
    ]
    # A reset reaches a TCP client at once; it would overhear an ICMP error that comes before its
    # own call has returned, and try again after a second.
    reset = [f"{rule} meta l4proto tcp reject with tcp reset" for rule in known]
    own = own_ports(family, "ct state new ")
    return "refused", "", [*own, *reset, *(f"{rule} reject" for rule in known)]


def _affinity(family: str) -> Chain:
    original = "meta l4proto . ct original proto-dst"
    seen = f"ct state new ct status dnat {_TRANSPORT}"
    return (
        "affine",
        "",
        [
            f"{seen} ct original {family} daddr . {original} vmap @affinity-ips",
            f"{seen} {original} vmap @affinity-nodeports",
        ],
    )


def _sources(family: str) -> list[str]:
    service = f"{family} daddr . {_PORT_KEY}"
    return [
        *own_ports(family, "ct state new "),
        f"ct state new {_TRANSPORT} {service} @restricted-ips "
        f"{service} . {family} saddr != @allowed-sources drop",
    ]


def _strangers(family: str, place: ProxyPlace) -> list[str]:
    """What says it is from this node's pods, and comes from elsewhere. (The node's own programs
    speak to themselves by its address among pods.)"""
    elsewhere = f'iifname != {{ "lo", "{place.bridge}" }}'
    pods = _in_family(family, place.pod_cidrs)
    return [f"{elsewhere} {family} saddr {_set(pods)} drop"] if pods else []


def _guard(family: str, place: ProxyPlace) -> list[str]:
    """The API server and the name server listen there for pods: the kernel would answer for it on
    every interface."""
    gateways = _in_family(family, place.gateways)
    if not gateways:
        return []
    # The node's own connections to pods elsewhere start there, too: their answers come back.
    strange = f'iifname != {{ "lo", "{place.bridge}" }}'
    if place.uplinks:
        names = ", ".join(f'"{name}"' for name in place.uplinks)
        strange = f"iifname {{ {names} }}"
    return [
        f"{strange} {family} daddr {_set(gateways)} ct state != {{ established, related }} drop"
    ]


def _postrouting(family: str, place: ProxyPlace) -> list[str]:
    return [
        f"ct status dnat {family} saddr . {family} daddr @hairpin masquerade",
        *_leaving(family, place),
        f"meta mark and {MASQUERADE_MARK} == 0 return",
        f"meta mark set meta mark xor {MASQUERADE_MARK}",
        "masquerade fully-random",
    ]


def _leaving(family: str, place: ProxyPlace) -> list[str]:
    """What pods send beyond the cluster carries the node's address."""
    pods, cluster = _in_family(family, place.pod_cidrs), _in_family(family, place.cluster_cidrs)
    if not pods:
        return []
    multicast = "224.0.0.0/4" if family == "ip" else "ff00::/8"
    return [
        f"{family} saddr {_set(pods)} {family} daddr != {_set([*(cluster or pods), multicast])} "
        f'oifname != "{place.bridge}" masquerade'
    ]


def _set(cidrs: Sequence[str]) -> str:
    return f"{{ {', '.join(cidrs)} }}" if len(cidrs) > 1 else cidrs[0]


def _disjoint(cidrs: Sequence[str]) -> list[str]:
    """The same addresses: nft refuses a set whose ranges overlap, and ServiceCIDRs may."""
    fourth = [ipaddress.IPv4Network(cidr, strict=False) for cidr in _in_family("ip", cidrs)]
    sixth = [ipaddress.IPv6Network(cidr, strict=False) for cidr in _in_family("ip6", cidrs)]
    collapse = ipaddress.collapse_addresses
    return [*map(str, collapse(fourth)), *map(str, collapse(sixth))]


def _in_family(family: str, cidrs: Sequence[str]) -> list[str]:
    return [cidr for cidr in cidrs if (":" in cidr) == (family == "ip6")]
