from sampan.network.listeners import Listener
from sampan.network.services.node_listeners import KEPT_SECONDS, NodeListeners


class Clock:
    at = 0.0

    def monotonic(self):
        return self.at


HERE = Listener("", "TCP", 10250, ("ip", "ip6"))
SSH, TUNNEL = ("listening-ports", ("TCP", 22)), ("listening-ports", ("UDP", 8472))


def test_a_port_is_its_program_s_for_a_while_after_it_was_heard_of_last():
    clock, heard = Clock(), [HERE]
    known = NodeListeners(clock, lambda: heard)
    assert known.look()
    assert not known.look()
    heard.clear()
    clock.at += KEPT_SECONDS - 1
    assert not known.look(), "it may be started again"
    assert ("listening-ports", ("TCP", 10250)) in known.elements("ip")
    clock.at += 2
    assert known.look()
    assert set(known.elements("ip")) == {SSH, TUNNEL}


def test_who_listens_at_one_address_has_it_there():
    known = NodeListeners(Clock(), lambda: [Listener("192.0.2.1", "TCP", 80, ("ip",))])
    known.look()
    assert ("listening-ips", ("192.0.2.1", "TCP", 80)) in known.elements("ip")
    assert set(known.elements("ip6")) == {SSH, TUNNEL}
