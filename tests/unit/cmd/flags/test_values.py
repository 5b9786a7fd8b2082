import argparse

import pytest

from sampan.cmd.flags import values


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("corp.example=10.0.0.53", (("10.0.0.53", 53),)),
        (".Corp.Example.=10.0.0.53:5353,10.0.0.54", (("10.0.0.53", 5353), ("10.0.0.54", 53))),
        ("corp.example=fd00::53", (("fd00::53", 53),)),
        ("corp.example=[fd00::53]:5353", (("fd00::53", 5353),)),
        ("corp.example=[fd00::53]", (("fd00::53", 53),)),
    ],
)
def test_a_stub_domain_has_name_servers_of_its_own(text, servers):
    assert values.stub_domain(text) == ("corp.example", servers)


@pytest.mark.parametrize("text", ["corp.example", "=10.0.0.53", "corp.example=", "a=host", "a=1:x"])
def test_a_stub_domain_without_servers_or_name_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        values.stub_domain(text)
