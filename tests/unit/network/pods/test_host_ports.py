from sampan.network.listeners import Listener
from sampan.network.pods.attachments import Attachment
from sampan.network.pods.host_ports import (
    ADDRESS_PORTS,
    HAIRPIN,
    PORTS,
    elements_of,
    skeleton,
    taken_port,
)
from sampan.network.pods.plugin_protocol import PortMapping

BOTH = ("10.244.0.2/24", "fd00::2/64")


def pod(*ports, addresses=BOTH):
    return Attachment("abc", "eth0", "veth1", addresses, ports)


def test_a_port_of_every_address_leads_to_the_pod_in_each_family():
    attachment = pod(PortMapping(8080, 80, "TCP"))
    assert elements_of(attachment, "ip") == {
        (PORTS, ("TCP", 8080)): ("10.244.0.2", 80),
        (HAIRPIN, ("10.244.0.2", "10.244.0.2")): None,
    }
    assert elements_of(attachment, "ip6")[PORTS, ("TCP", 8080)] == ("fd00::2", 80)


def test_a_port_of_one_address_is_of_its_family_only():
    attachment = pod(PortMapping(53, 53, "UDP", "192.0.2.1"))
    assert (ADDRESS_PORTS, ("192.0.2.1", "UDP", 53)) in elements_of(attachment, "ip")
    assert elements_of(attachment, "ip6") == {}


def test_who_has_no_ports_or_no_address_of_the_family_is_in_no_map():
    assert elements_of(pod(), "ip") == {}
    assert elements_of(pod(PortMapping(1, 1, "TCP"), addresses=BOTH[:1]), "ip6") == {}


def test_pods_do_not_reach_the_loopback_of_their_machine():
    """An attack: host ports switch on route_localnet, and a pod writes packets to 127.0.0.1."""
    text = skeleton("ip", "t", "sampan3")
    [guard] = [line for line in text.splitlines() if line.endswith(" drop")]
    assert 'iifname "sampan3" ip daddr 127.0.0.0/8' in guard
    assert "127.0.0.0" not in skeleton("ip6", "t", "sampan3")


def test_a_port_that_a_program_of_the_node_listens_at_is_taken():
    known = [Listener("", "TCP", 22, ("ip",)), Listener("127.0.0.1", "TCP", 5432, ("ip",))]
    assert taken_port([PortMapping(80, 80, "TCP"), PortMapping(22, 1, "TCP")], known) == "22/TCP"
    assert taken_port([PortMapping(22, 1, "UDP")], known) == ""
    assert taken_port([PortMapping(5432, 1, "TCP")], known) == "5432/TCP"
    assert taken_port([PortMapping(5432, 1, "TCP", "192.0.2.1")], known) == ""
