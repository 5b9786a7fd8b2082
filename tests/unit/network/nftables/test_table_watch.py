import os

from hypothesis import given
from hypothesis import strategies as st

from sampan.network.nftables.attributes import GENERIC, message, text
from sampan.network.nftables.nft import SIGNATURE
from sampan.network.nftables.table_watch import Transactions

DELETE_TABLE, NEW_CHAIN, DELETE_CHAIN, NEW_RULE, DELETE_RULE, DELETE_ELEMENT, END = (
    10 << 8 | kind for kind in (2, 3, 5, 6, 8, 14, 15)
)
STRANGER, OURS = 4711, 1 << 22 | os.getpid()
KINDS = (DELETE_TABLE, NEW_CHAIN, DELETE_CHAIN, NEW_RULE, DELETE_RULE, DELETE_ELEMENT)


def news(kind, table, port=STRANGER, chain="services"):
    said = GENERIC.pack(2, 0, 0) + text(1, table) + text(3, chain)
    return message(kind, 0, 1, said, port)


def end(port=STRANGER):
    return message(END, 0, 1, GENERIC.pack(0, 0, 0), port)


def signature(port=STRANGER):
    return news(NEW_CHAIN, "mine", port, SIGNATURE) + news(DELETE_CHAIN, "mine", port, SIGNATURE)


@given(st.sampled_from(KINDS), st.lists(st.sampled_from(KINDS)))
def test_whatever_somebody_does_to_our_table_is_news_when_it_is_done(kind, others):
    watched = Transactions("mine")
    assert not watched.feed(b"".join(news(other, "theirs") for other in others))
    assert not watched.feed(news(kind, "mine"))
    assert watched.feed(end())
    assert not watched.feed(end())


@given(st.lists(st.sampled_from(KINDS)))
def test_what_others_do_to_theirs_and_we_to_ours_is_none(kinds):
    watched = Transactions("mine")
    theirs = b"".join(news(kind, "theirs") + news(kind, "mine-not") for kind in kinds)
    ours = b"".join(news(kind, "mine", OURS) for kind in kinds)
    signed = b"".join(news(kind, "mine") for kind in kinds) + signature()
    for transaction in (theirs, ours, signed):
        assert not watched.feed(transaction + end())


def test_a_signature_holds_for_one_transaction():
    watched = Transactions("mine")
    assert watched.feed(signature() + end() + news(NEW_RULE, "mine") + end())


def test_half_of_a_transaction_whose_rest_was_lost_is_forgotten():
    watched = Transactions("mine")
    watched.feed(signature())
    watched.forget()
    assert watched.feed(news(DELETE_RULE, "mine") + end())
