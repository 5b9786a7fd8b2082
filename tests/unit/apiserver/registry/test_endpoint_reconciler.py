import orjson

from sampan.apiserver.registry.endpoint_reconciler import address_in, record, slice_fields, subsets


def test_a_record_says_where_the_server_is():
    assert address_in(orjson.loads(record(("10.0.0.1", 6443)))) == ("10.0.0.1", 6443)


def test_servers_at_one_port_are_one_subset():
    servers = [("10.0.0.1", 6443), ("10.0.0.2", 6443)]
    assert subsets(servers) == [
        {
            "addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
        }
    ]
    found = slice_fields(servers)
    assert [one["addresses"] for one in found["endpoints"]] == [["10.0.0.1"], ["10.0.0.2"]]


def test_servers_at_several_ports_are_several_subsets():
    servers = [("10.0.0.1", 6443), ("10.0.0.1", 7443)]
    assert [one["ports"][0]["port"] for one in subsets(servers)] == [6443, 7443]
    assert slice_fields(servers)["ports"][0]["port"] == 6443
    assert len(slice_fields(servers)["endpoints"]) == 1


def test_a_record_that_no_server_wrote_is_no_address():
    good = orjson.loads(record(("10.0.0.1", 6443)))
    subset = good["subsets"][0]
    for odd in (
        None,
        [],
        5,
        [{}],
        [{**subset, "ports": []}],
        [{**subset, "addresses": [{"ip": 5}]}],
    ):
        assert address_in({**good, "subsets": odd}) is None
