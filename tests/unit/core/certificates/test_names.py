"""Names in certificates: which host they mean, and what a CA may sign for."""

import ipaddress

import pytest
from cryptography import x509

from sampan.core.certificates.names import Names, NotPermitted, check_permitted, mismatch


@pytest.mark.parametrize(
    ("dns", "host"),
    [
        (["a.example.com"], "A.Example.COM"),
        (["*.example.com"], "a.example.com"),
        (["a.example.com"], "a.example.com."),
        (["x_y.example.com"], "x_y.example.com"),
    ],
)
def test_a_name_means_a_host(dns, host):
    assert mismatch(Names(tuple(dns), given=True), "", host) == ""


@pytest.mark.parametrize(
    ("dns", "host", "why"),
    [
        (["*.example.com"], "example.com", "x509: certificate is valid for *.example.com, not "
         "example.com"),
        (["*.example.com"], "b.a.example.com", "x509: certificate is valid for *.example.com, not "
         "b.a.example.com"),
        (["*"], "a", "x509: certificate is valid for *, not a"),
        ([], "a", "x509: certificate is not valid for any names, but wanted to match a"),
        (["a"] * 100, "b", "x509: certificate is valid for 100 names, but none matched b"),
        ([], "10.0.0.1", "x509: cannot validate certificate for 10.0.0.1 because it doesn't "
         "contain any IP SANs"),
    ],
)  # fmt: skip
def test_another_host_is_told_which_names_there_are(dns, host, why):
    assert mismatch(Names(tuple(dns), given=True), host, host) == why


def test_the_common_name_counts_for_nothing():
    why = "x509: certificate relies on legacy Common Name field, use SANs instead"
    assert mismatch(Names(), "a.example.com", "a.example.com") == why


def test_addresses_are_compared_as_addresses():
    names = Names((), (ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("::1")), given=True)
    for host in ("10.0.0.1", "::ffff:10.0.0.1", "[::1]", "0:0:0:0:0:0:0:1"):
        assert mismatch(names, "", host) == ""
    assert mismatch(names, "", "10.0.0.2").endswith("valid for 10.0.0.1, ::1, not 10.0.0.2")


@pytest.mark.parametrize(
    ("permitted", "excluded", "name", "why"),
    [
        (["example.com"], [], "a.example.com", ""),
        (["example.com"], [], "example.com", ""),
        ([".example.com"], [], "example.com", "is not permitted by any constraint"),
        (["other.org"], [], "a.example.com", "is not permitted by any constraint"),
        ([], ["example.com"], "a.example.com", 'is excluded by constraint "example.com"'),
        ([], ["a.example.com"], "*.example.com", 'is excluded by constraint "a.example.com"'),
        (["example.com"], [], "", "cannot parse domain"),
    ],
)
def test_a_ca_signs_for_what_it_may(permitted, excluded, name, why):
    constraints = x509.NameConstraints(
        [x509.DNSName(one) for one in permitted] or None,
        [x509.DNSName(one) for one in excluded] or None,
    )
    if not why:
        check_permitted(constraints, Names((name,), given=True))
        return
    with pytest.raises(NotPermitted, match=why):
        check_permitted(constraints, Names((name,), given=True))


def test_addresses_mails_and_uris_have_constraints_too():
    constraints = x509.NameConstraints(
        [
            x509.IPAddress(ipaddress.ip_network("10.0.0.0/8")),
            x509.RFC822Name("example.com"),
            x509.UniformResourceIdentifier("example.com"),
        ],
        None,
    )
    good = Names(
        (), (ipaddress.ip_address("10.1.2.3"),), ("a@example.com",), ("spiffe://example.com/x",)
    )
    check_permitted(constraints, good)
    for bad in (
        Names((), (ipaddress.ip_address("192.168.0.1"),)),
        Names((), (), ("a@other.org",)),
        Names((), (), (), ("https://10.0.0.1/",)),
        Names((), (), (), ("urn:x",)),
    ):
        with pytest.raises(NotPermitted):
            check_permitted(constraints, bad)
