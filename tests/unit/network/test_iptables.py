from sampan.network import iptables
from sampan.network.bridge import PodNetwork

NETWORK = PodNetwork("sampan3", "10.244.3.0/24")


def test_iptables_gets_only_the_rules_that_are_needed():
    [guard] = iptables.rules_of(NETWORK, masquerade=False, forward=False)
    assert guard[:2] == ["filter", "INPUT"]
    rules = iptables.rules_of(NETWORK, masquerade=True, forward=True)
    assert [rule[:2] for rule in rules] == [
        ["filter", "INPUT"],
        ["nat", "POSTROUTING"],
        ["filter", "FORWARD"],
        ["filter", "FORWARD"],
    ]


def test_pods_do_not_reach_the_loopback_of_their_machine():
    """An attack: host ports switch on route_localnet, and a pod writes packets to 127.0.0.1."""
    [guard] = iptables.rules_of(NETWORK, masquerade=False, forward=False)
    text = " ".join(guard)
    assert f"-i {NETWORK.bridge} -d 127.0.0.0/8" in text
    assert "! --ctstate RELATED,ESTABLISHED,DNAT" in text
    assert text.endswith("-j DROP")


SAVED = """*nat
:PREROUTING ACCEPT [0:0]
:CNI-DN-aaa - [0:0]
:CNI-DN-bbb - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-MASQ - [0:0]
:CNI-HOSTPORT-SETMARK - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A CNI-DN-aaa -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.244.3.2:80
-A CNI-DN-bbb -p tcp -m tcp --dport 8081 -j DNAT --to-destination 10.244.4.2:80
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"sampan\\"" -j CNI-DN-aaa
-A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 8081 -j CNI-DN-bbb
COMMIT
"""


def test_ports_of_other_networks_stay_mapped():
    commands = iptables.portmap_leftovers(SAVED, "10.244.3.0/24")
    assert commands == [
        [
            *("-D", "CNI-HOSTPORT-DNAT", "-p", "tcp", "-m", "comment", "--comment"),
            *('dnat name: "sampan"', "-j", "CNI-DN-aaa"),
        ],
        ["-F", "CNI-DN-aaa"],
        ["-X", "CNI-DN-aaa"],
    ]


def test_the_last_one_takes_the_common_chains_along():
    alone = "\n".join(line for line in SAVED.splitlines() if "bbb" not in line)
    commands = iptables.portmap_leftovers(alone, "10.244.3.0/24")
    assert ["-X", "CNI-HOSTPORT-SETMARK"] in commands
    assert [
        "-D",
        "PREROUTING",
        "-m",
        "addrtype",
        "--dst-type",
        "LOCAL",
        "-j",
        "CNI-HOSTPORT-DNAT",
    ] in commands
    assert iptables.portmap_leftovers("*nat\nCOMMIT\n", "10.244.3.0/24") == []
