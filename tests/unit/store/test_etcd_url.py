import pytest

from sampan.store.etcd_url import BadEtcdUrl, Tls, parse_etcd_url


def test_endpoints_and_prefix_are_read():
    address = parse_etcd_url("etcd://10.0.0.1:2379,db.example,[::1]:22379/sampan/one/")
    assert address.endpoints == ("10.0.0.1:2379", "db.example:2379", "[::1]:22379")
    assert address.prefix == "/sampan/one"
    assert address.tls is None
    assert parse_etcd_url("etcd://[::1]").endpoints == ("[::1]:2379",)
    assert parse_etcd_url("etcd://a:1").prefix == ""


def test_tls_is_asked_for_by_the_scheme_or_by_certificates(tmp_path):
    assert parse_etcd_url("etcds://a:1").tls == Tls()
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(name)
    ca, files = f"cacert={tmp_path}/ca", f"cert={tmp_path}/crt&key={tmp_path}/key"
    assert parse_etcd_url(f"etcd://a:1?{ca}").tls == Tls(b"ca")
    assert parse_etcd_url(f"etcd://a:1/p?{ca}&{files}").tls == Tls(b"ca", b"crt", b"key")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("etcd:///prefix", "names no etcd"),
        ("etcd://a:0", "'a:0' is not host:port"),
        ("etcd://a:b", "is not host:port"),
        ("etcd://me:secret@a:1", "is not host:port"),
        ("etcd://a:1?password=x", "unknown parameter 'password'"),
        ("etcd://a:1?cert=x", "needs both cert= and key="),
        (
            "etcd://a:1?cacert=/nowhere/ca.pem",
            "cacert=/nowhere/ca.pem cannot be read: No such file",
        ),
    ],
)
def test_what_is_wrong_is_said(url, why):
    with pytest.raises(BadEtcdUrl, match=why):
        parse_etcd_url(url)
