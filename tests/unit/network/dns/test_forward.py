import random

from sampan.core.clock import SystemClock
from sampan.network.dns.forward import Forwarder, ForwardSettings

MACHINE, CORP, DEEP = ("192.0.2.1", 53), ("10.0.0.53", 5353), ("10.0.0.54", 53)


def test_names_in_a_stub_domain_are_asked_of_its_own_servers():
    stubs = {"corp.example": (CORP,), "deep.corp.example": (DEEP,)}
    forwarder = Forwarder(ForwardSettings((MACHINE,), stubs), SystemClock(), random.Random(1))
    assert forwarder.servers_for("www.corp.example") == (CORP,)
    assert forwarder.servers_for("corp.example") == (CORP,)
    assert forwarder.servers_for("a.deep.corp.example") == (DEEP,)
    assert forwarder.servers_for("www.example") == (MACHINE,)
    assert forwarder.servers_for("notcorp.example") == (MACHINE,)
