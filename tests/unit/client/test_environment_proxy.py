"""client/environment_proxy.py: which servers are reached through the environment's proxy."""

import pytest

from sampan.client.environment_proxy import proxy_of

PROXY = {
    "HTTPS_PROXY": "proxy.example:3128",
    "no_proxy": ".inside, own.example,10.0.0.0/8,192.0.2.7",
}


@pytest.mark.parametrize(
    ("server", "proxy"),
    [
        ("https://api.example:6443", "http://proxy.example:3128"),
        ("https://api.example:6443/path", "http://proxy.example:3128"),
        ("http://api.example", ""),
        ("https://127.0.0.1:6443", ""),
        ("https://localhost", ""),
        ("https://[::1]:6443", ""),
        ("https://api.inside", ""),
        ("https://inside", "http://proxy.example:3128"),
        ("https://own.example:6443", ""),
        ("https://a.own.example", ""),
        ("https://10.1.2.3:6443", ""),
        ("https://11.1.2.3:6443", "http://proxy.example:3128"),
        ("https://192.0.2.7", ""),
    ],
)
def test_a_server_elsewhere_is_asked_through_the_proxy(server, proxy):
    assert proxy_of(PROXY, server) == proxy


def test_all_may_be_exempt_and_small_letters_are_read():
    assert proxy_of({"https_proxy": "http://p", "NO_PROXY": "*"}, "https://api.example") == ""
    assert proxy_of({"https_proxy": "http://p"}, "https://api.example") == "http://p"
