from sampan.network.pods.attachments import Attachment
from sampan.network.pods.veth_guard import VETHS, elements_of, skeleton

BOTH = ("10.244.0.5/24", "fd00::5/64")


def test_a_cable_passes_the_pod_s_own_addresses():
    found = elements_of(Attachment("c", "eth0", "veth1", BOTH, guarded=True))
    hardware = "0a:58:0a:f4:00:05"
    assert set(found) == {
        (VETHS, ("veth1",)),
        ("veth-ipv4", ("veth1", hardware, "10.244.0.5")),
        ("veth-ipv6", ("veth1", hardware, "fd00::5")),
    }


def test_a_cable_of_an_earlier_version_is_left_alone():
    """Its pod asks its neighbours where they are, and would find nobody."""
    assert elements_of(Attachment("c", "eth0", "veth1", BOTH)) == {}


def test_what_no_rule_accepts_is_dropped():
    rules = [line for line in skeleton("t", b"\2" * 6).splitlines() if line.startswith("add rule")]
    assert rules[-1].endswith("veth-guard drop")
    assert rules[1].endswith("ether daddr != 02:02:02:02:02:02 drop")
