import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.verbs.why_network import parsed_target


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("db:5432", ("pod", "db", 5432, "TCP")),
        ("pod/db:5432", ("pod", "db", 5432, "TCP")),
        ("prod/dns:53/udp", ("pod", "prod/dns", 53, "UDP")),
        ("service/db:80", ("service", "db", 80, "TCP")),
        ("svc/prod/db:80/sctp", ("service", "prod/db", 80, "SCTP")),
        ("192.0.2.7:80", ("address", "192.0.2.7", 80, "TCP")),
        ("[fd00::7]:53/udp", ("address", "fd00::7", 53, "UDP")),
    ],
)
def test_a_target_is_a_pod_a_service_or_an_address_and_a_port(text, found):
    assert parsed_target(text) == found


@pytest.mark.parametrize("text", ["db", "db:", ":80", "db:http"])
def test_anything_else_is_said_to_be_none(text):
    with pytest.raises(CannotStart, match="is no target"):
        parsed_target(text)
