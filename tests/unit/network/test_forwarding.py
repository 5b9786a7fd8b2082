"""The kernel's switches, in files that stand for them."""

import pytest

from sampan.network import forwarding


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    for interface, accepts in (("all", "1"), ("default", "1"), ("eth0", "1"), ("br0", "0")):
        (tmp_path / interface).mkdir()
        (tmp_path / interface / "accept_ra").write_text(f"{accepts}\n")
    switch = tmp_path / "all" / "forwarding"
    switch.write_text("0\n")
    (tmp_path / "all" / "disable_ipv6").write_text("0\n")
    (tmp_path / "if_inet6").write_text("")
    monkeypatch.setattr(forwarding, "_SWITCHES", {"ip6": switch})
    monkeypatch.setattr(forwarding, "_INTERFACES", tmp_path)
    monkeypatch.setattr(forwarding, "_IPV6_ADDRESSES", tmp_path / "if_inet6")
    monkeypatch.setattr(forwarding, "_IPV6_OFF", tmp_path / "all" / "disable_ipv6")
    return tmp_path


def test_a_machine_that_forwards_goes_on_hearing_its_router(kernel):
    forwarding.switch_on("ip6")
    assert (kernel / "all" / "forwarding").read_text() == "1"
    assert (kernel / "eth0" / "accept_ra").read_text() == "2"
    # Who heard nobody before hears nobody now.
    assert (kernel / "br0" / "accept_ra").read_text() == "0\n"
    assert (kernel / "default" / "accept_ra").read_text() == "1\n"


def test_a_machine_that_forwards_already_is_left_as_it_is(kernel):
    (kernel / "all" / "forwarding").write_text("1\n")
    forwarding.switch_on("ip6")
    assert (kernel / "eth0" / "accept_ra").read_text() == "1\n"


def test_it_is_said_why_there_is_no_ipv6(kernel):
    assert forwarding.why_no_ipv6() == ""
    (kernel / "all" / "disable_ipv6").write_text("1\n")
    assert "disable_ipv6 is 1" in forwarding.why_no_ipv6()
    (kernel / "if_inet6").unlink()
    assert "kernel has no IPv6" in forwarding.why_no_ipv6()
