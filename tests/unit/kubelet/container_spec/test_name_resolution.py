import pytest

from sampan.kubelet.container_spec.environment import ConfigError
from sampan.kubelet.container_spec.name_resolution import (
    Dns,
    dns,
    hostname_and_domain,
    hosts_file,
    kernel_hostname,
    missing_cluster_dns,
    parse_resolv_conf,
)

NODE = Dns(("192.0.2.53",), ("corp.example",), ("timeout:1",))
CLUSTER = ("10.96.0.10",)


def pod(name="web", **spec):
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def resolved(**spec):
    return dns(pod(**spec), NODE, CLUSTER, "cluster.local")


def test_a_pod_is_called_by_its_name_unless_the_spec_says_otherwise():
    assert hostname_and_domain(pod(), "cluster.local") == ("web", "")
    assert hostname_and_domain(pod(hostname="db", subdomain="data"), "cluster.local") == (
        "db",
        "data.shop.svc.cluster.local",
    )
    assert kernel_hostname(pod(hostnameOverride="a.b"), "cluster.local") == "a.b"


def test_a_long_name_is_cut_and_ends_with_a_letter():
    name = "a" * 62 + "-" + "b" * 10
    assert hostname_and_domain(pod(name), "cluster.local") == ("a" * 62, "")


def test_the_full_name_becomes_the_hostname_where_asked_for():
    asked = pod(hostname="db", subdomain="data", setHostnameAsFQDN=True)
    assert kernel_hostname(asked, "cluster.local") == "db.data.shop.svc.cluster.local"
    with pytest.raises(
        ConfigError, match=r"too long \(64 characters is the max, 87 characters requested\)"
    ):
        kernel_hostname(
            pod(hostname="d" * 59, subdomain="data", setHostnameAsFQDN=True), "cluster.local"
        )


def test_the_hosts_file_has_the_pod_s_addresses_and_aliases():
    aliases = [{"ip": "192.0.2.9", "hostnames": ["old.example", "older.example"]}]
    text = hosts_file(
        pod(hostname="db", subdomain="data", hostAliases=aliases),
        ["10.244.0.9", "fd00::9"],
        "cluster.local",
        "ignored",
    )
    assert text == (
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n"
        "10.244.0.9\tdb.data.shop.svc.cluster.local\tdb\n"
        "fd00::9\tdb.data.shop.svc.cluster.local\tdb\n"
        "\n# Entries added by HostAliases.\n"
        "192.0.2.9\told.example\tolder.example\n"
    )


def test_in_the_node_s_network_the_node_s_hosts_file_is_kept():
    text = hosts_file(pod(hostNetwork=True), [], "cluster.local", "127.0.0.1 localhost\n")
    assert text == "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n"


def test_cluster_first_asks_the_cluster_s_server_only():
    assert resolved() == Dns(
        CLUSTER,
        ("shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"),
        ("ndots:5",),
    )
    assert resolved(hostNetwork=True) == NODE
    assert resolved(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet").servers == CLUSTER


def test_the_other_policies_start_from_the_node_or_from_nothing():
    assert resolved(dnsPolicy="Default") == NODE
    assert resolved(dnsPolicy="None", dnsConfig={"nameservers": ["1.1.1.1"]}) == Dns(("1.1.1.1",))


def test_without_a_cluster_dns_the_node_s_is_used():
    assert dns(pod(), NODE, (), "cluster.local") == NODE


def test_the_pod_s_own_settings_are_added_and_win():
    config = {
        "nameservers": ["1.1.1.1", "10.96.0.10"],
        "searches": ["extra.example"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    }
    found = resolved(dnsConfig=config)
    assert found.servers == ("10.96.0.10", "1.1.1.1")
    assert found.searches[-1] == "extra.example"
    assert found.options == ("ndots:2", "edns0")


def test_what_resolvers_cannot_take_is_cut_off():
    config = {
        "nameservers": [f"10.0.0.{n}" for n in range(9)],
        "searches": [f"{n:060}.example" for n in range(40)] + ["x" * 254],
    }
    found = resolved(dnsPolicy="None", dnsConfig=config)
    assert len(found.servers) == 3
    assert len(found.searches) <= 32
    assert len(" ".join(found.searches)) <= 2048


def test_a_resolv_conf_is_read_as_resolvers_do():
    text = (
        "# comment\n; another\nnameserver 1.1.1.1\nnameserver 8.8.8.8\n"
        "search old.example\nsearch a.example. b.example\noptions rotate\noptions ndots:2 edns0\n"
    )
    assert parse_resolv_conf(text) == Dns(
        ("1.1.1.1", "8.8.8.8"), ("a.example", "b.example"), ("ndots:2", "edns0")
    )


def test_a_pod_that_wants_a_cluster_dns_where_none_is_is_told_so():
    assert missing_cluster_dns(pod(), CLUSTER) == ""
    assert missing_cluster_dns(pod(dnsPolicy="Default"), ()) == ""
    assert missing_cluster_dns(pod(hostNetwork=True), ()) == ""
    assert missing_cluster_dns(pod(dnsPolicy="ClusterFirstWithHostNet", hostNetwork=True), ())
    assert missing_cluster_dns(pod(), ()) == (
        "kubelet does not have ClusterDNS IP configured and cannot create Pod using "
        '"ClusterFirst" policy. Falling back to "Default" policy.'
    )
