from sampan.network.nftables.attributes import GENERIC, message, text
from sampan.network.nftables.table_watch import deleted_tables

DELETE_TABLE, NEW_ELEMENT = 10 << 8 | 2, 10 << 8 | 12


def news(kind, table):
    return message(kind, 0, 1, GENERIC.pack(2, 0, 0) + text(1, table))


def test_deleted_tables_are_found_among_other_news():
    said = news(NEW_ELEMENT, "mine") + news(DELETE_TABLE, "mine") + news(DELETE_TABLE, "other")
    assert deleted_tables(said) == {"mine", "other"}


def test_changes_of_elements_are_no_deletions():
    assert deleted_tables(news(NEW_ELEMENT, "mine")) == set()
    assert deleted_tables(b"") == set()
