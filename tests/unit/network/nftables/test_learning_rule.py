import struct

import pytest

from sampan.network.nftables.attributes import attributes, children
from sampan.network.nftables.learning_rule import learning_rule

ADDRESS_BYTES = {"ip": 4, "ip6": 16}
REGISTERS = range(8, 24)  # of four bytes each


def number(data):
    return struct.unpack(">I", data)[0]


def expressions(rule):
    """Name and attributes of each."""
    for _, entry in children(rule):
        found = attributes(entry)
        yield found[1].rstrip(b"\0").decode(), attributes(found[2])


@pytest.mark.parametrize("family", ["ip", "ip6"])
def test_key_and_value_lie_in_registers_one_after_the_other(family):
    """As encode() lays them out: or lookups would find nothing."""
    *loads, (last, learn) = expressions(learning_rule(family, "affinity", 7))
    size = ADDRESS_BYTES[family] // 4
    expected = [8, 8 + size, 8 + 2 * size, 9 + 2 * size, 10 + 2 * size, 10 + 3 * size]
    assert [number(load[1]) for _, load in loads] == expected
    assert expected[-1] in REGISTERS
    assert last == "dynset"
    assert [number(learn[each]) for each in (4, 5)] == [expected[0], expected[4]]
    assert learn[1] == b"affinity\0"
    assert struct.unpack(">Q", learn[6])[0] == 7000


@pytest.mark.parametrize(("family", "at"), [("ip", 16), ("ip6", 24)])
def test_the_endpoint_is_the_packet_s_destination(family, at):
    headers = [load for name, load in expressions(learning_rule(family, "m", 1))
               if name == "payload"]  # fmt: skip
    assert [number(headers[0][each]) for each in (2, 3, 4)] == [1, at, ADDRESS_BYTES[family]]
    assert [number(headers[1][each]) for each in (2, 3, 4)] == [2, 2, 2]
