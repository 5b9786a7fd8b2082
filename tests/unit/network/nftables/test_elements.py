from hypothesis import given
from hypothesis import strategies as st

from sampan.network.nftables.elements import PROTOCOLS, Field, decode, encode

VALUES = {
    Field.IPV4: st.ip_addresses(v=4).map(str),
    Field.IPV6: st.ip_addresses(v=6).map(str),
    Field.PROTOCOL: st.sampled_from(sorted(PROTOCOLS)),
    Field.PORT: st.integers(0, 65535),
    Field.INTERFACE: st.from_regex(r"[a-z][a-z0-9.-]{0,14}", fullmatch=True),
    Field.HARDWARE: st.binary(min_size=6, max_size=6).map(lambda data: data.hex(":")),
}


@given(st.data(), st.lists(st.sampled_from(list(Field)), min_size=1, max_size=5))
def test_what_is_encoded_reads_back(data, fields):
    values = tuple(data.draw(VALUES[field]) for field in fields)
    assert decode(fields, encode(fields, values)) == values


def test_every_field_starts_at_a_register_of_its_own():
    fields = (Field.IPV4, Field.PROTOCOL, Field.PORT)
    assert encode(fields, ("10.96.0.1", "TCP", 443)).hex() == "0a60000106000000" + "01bb0000"
