"""Messages as dnspython, a library of others, reads and writes them."""

import dns.edns
import dns.flags
import dns.message
import dns.rdatatype
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.network.dns import wire
from sampan.network.dns.wire import Answer, BadMessage, Record

pytestmark = pytest.mark.slow
LABEL = st.text("ab-09", min_size=1, max_size=12)
NAME = st.lists(LABEL, min_size=1, max_size=4).map(".".join)
TTL = st.integers(0, 2**31 - 1)
RECORD = st.one_of(
    st.builds(Record, NAME, st.just(wire.A), TTL, st.ip_addresses(v=4).map(str)),
    st.builds(Record, NAME, st.just(wire.AAAA), TTL, st.ip_addresses(v=6).map(str)),
    st.builds(Record, NAME, st.sampled_from([wire.CNAME, wire.PTR, wire.NS]), TTL, NAME),
    st.builds(
        Record, NAME, st.just(wire.SRV), TTL,
        st.tuples(*[st.integers(0, 65535)] * 3, NAME),
    ),
    st.builds(Record, NAME, st.just(wire.TXT), TTL, LABEL),
    st.builds(
        Record, NAME, st.just(wire.SOA), TTL, st.tuples(NAME, NAME, *[st.integers(0, 2**31)] * 5)
    ),
)  # fmt: skip


def as_text(record):
    data = record.data
    if record.type in (wire.CNAME, wire.PTR, wire.NS):
        return f"{data}."
    if record.type == wire.SRV:
        return f"{data[0]} {data[1]} {data[2]} {data[3]}."
    if record.type == wire.SOA:
        return f"{data[0]}. {data[1]}. " + " ".join(str(each) for each in data[2:])
    if record.type == wire.TXT:
        return f'"{data}"'
    return str(data)


def as_others(record):
    kind = dns.rdatatype.to_text(record.type)
    return dns.rrset.from_text(f"{record.name}.", record.ttl, "IN", kind, as_text(record))


@given(NAME, st.integers(0, 65535), st.booleans())
def test_a_question_is_read_as_it_was_asked(name, number, edns):
    asked = dns.message.make_query(
        name.upper(), "SRV", use_edns=0 if edns else False, payload=900, id=number
    )
    question = wire.read_question(asked.to_wire())
    assert (question.id, question.name, question.type) == (number, name, wire.SRV)
    assert question.udp_size == (900 if edns else 512)


@given(NAME, st.lists(RECORD, max_size=8), st.lists(RECORD, max_size=2), st.booleans())
def test_an_answer_says_to_others_what_it_should(name, answers, authority, edns):
    asked = dns.message.make_query(name, "A", use_edns=0 if edns else False)
    question = wire.read_question(asked.to_wire())
    written = wire.write_answer(question, Answer(wire.NXDOMAIN, tuple(answers), tuple(authority)))
    read = dns.message.from_wire(written, one_rr_per_rrset=True)
    assert read.id == asked.id
    assert read.rcode() == dns.message.Message.rcode(read) == 3
    assert read.question == asked.question
    assert [set(each.to_text().split("\n")) for each in read.answer] == [
        set(as_others(record).to_text().split("\n")) for record in answers
    ]
    assert len(read.authority) == len(authority)
    assert (read.edns >= 0) is edns


@given(st.integers(1, 60), st.integers(1, 40), st.integers(512, 1232))
def test_what_does_not_fit_is_cut_at_a_record_and_says_so(count, length, limit):
    records = [
        Record(f"{'x' * length}{number}.org", wire.A, 5, f"192.0.2.{number}")
        for number in range(count)
    ]
    question = wire.read_question(dns.message.make_query("a.b", "A").to_wire())
    written = wire.write_answer(question, Answer(answers=tuple(records)), limit)
    assert len(written) <= limit
    read = dns.message.from_wire(written, one_rr_per_rrset=True)
    assert bool(read.flags & dns.flags.TC) == (len(read.answer) < len(records))


@given(st.binary(max_size=120))
def test_any_bytes_are_a_question_or_refused(data):
    for read in (wire.read_question, wire.read_reply):
        try:
            read(data)
        except BadMessage:
            continue


def test_a_name_cannot_point_at_itself():
    message = wire.HEADER.pack(1, 0x100, 1, 0, 0, 0) + b"\xc0\x0c\0\x01\0\x01"
    with pytest.raises(BadMessage):
        wire.read_question(message)


def test_a_reply_knows_how_long_it_holds():
    asked = dns.message.make_query("www.example.org", "A")
    reply = dns.message.make_response(asked)
    for name, ttl, kind, data in (
        ("www.example.org.", 300, "CNAME", "web.example.org."),
        ("web.example.org.", 60, "A", "192.0.2.1"),
    ):
        reply.answer.append(dns.rrset.from_text(name, ttl, "IN", kind, data))
    message = reply.to_wire()
    read = wire.read_reply(message)
    assert read.ttl == 60
    assert [record.data for record in read.records] == ["web.example.org", "192.0.2.1"]
    older = dns.message.from_wire(wire.aged(message, read.ttl_places, 45))
    assert [each.ttl for each in older.answer] == [255, 15]


def test_what_is_not_there_holds_for_as_long_as_the_zone_says():
    reply = dns.message.make_response(dns.message.make_query("x.example.org", "A"))
    data = "ns.example.org. host.example.org. 1 2 3 4 20"
    reply.authority.append(dns.rrset.from_text("example.org.", 3600, "IN", "SOA", data))
    assert wire.read_reply(reply.to_wire()).ttl == 20


def test_the_neighbour_s_edns_is_not_passed_on():
    reply = dns.message.make_response(dns.message.make_query("a.org", "A", use_edns=0))
    message = reply.to_wire()
    shorter = wire.without_opt(message, wire.read_reply(message))
    assert dns.message.from_wire(shorter).edns == -1
