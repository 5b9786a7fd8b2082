import asyncio
import sys
from collections import deque
from functools import partial

from sampan.api.calls import Item
from sampan.apiserver.storage.compact_items import PackedItem
from sampan.apiserver.storage.packing import Packed
from sampan.client.indexer import Cache
from sampan.core.telemetry.memory import SAMPLE, MemoryTable, Scales, resident_bytes


def weight(value, keeps_objects=True):
    return Scales().weigh_root(value, keeps_objects)


def texts(count, length=1000):
    return [f"{number:0{length}d}" for number in range(count)]


def test_a_nest_weighs_what_its_members_do_each_once():
    text = "x" * 1000
    shared = {"a": text, "b": [text, (text,)]}
    alone = weight(text)
    assert alone <= weight(shared) < alone + 1000
    assert weight(deque([{"a": "y" * 5000}])) > 5000
    assert weight(partial(print, "z" * 3000, key="w" * 3000)) > 6000


def test_of_a_long_container_some_stand_for_all():
    many = texts(100 * SAMPLE)
    every = sum(map(sys.getsizeof, many))
    assert abs(weight(many) - every - sys.getsizeof(many)) < every / 20
    by_name = {text[-8:]: text for text in many}
    assert weight(by_name) > every


def test_what_all_members_of_a_long_container_share_is_weighed_once():
    shared = texts(50, 10_000)
    many = [[text, shared] for text in texts(100 * SAMPLE)]
    own = sum(sys.getsizeof(each) + sys.getsizeof(each[0]) for each in many)
    assert abs(weight(many) - own - weight(shared)) < own / 20


def test_slots_count_and_what_a_property_makes_does_not():
    data = b'{"metadata":{"name":"' + b"n" * 2000 + b'"}}'
    assert weight(Item("k", 1, {"metadata": {"name": "n" * 2000}}, b"")) > 2000
    assert weight(PackedItem("k", 1, Packed(data, None))) < 2500, (
        "its bytes, not what they are parsed into"
    )


def parts_of(table):
    return {part.name: part for part in asyncio.run(table.parts())}


def test_what_several_have_is_weighed_with_the_first_and_a_root_only_as_one():
    table, both = MemoryTable(), ["b" * 10_000]
    own = {"root": both, "mine": "m" * 5_000}
    table.add("first", lambda: [both], count=lambda: 7)
    table.add("second", lambda: [own])
    found = parts_of(table)
    assert found["first"].bytes > 10_000
    assert found["first"].count == 7
    assert 5_000 < found["second"].bytes < 6_000


def test_api_objects_are_weighed_where_they_are_kept():
    pod = {"metadata": {"name": "p", "note": "n" * 4_000}}
    table, cache = MemoryTable(), Cache({"all": lambda obj: ["x"]})
    cache.put(pod)
    table.add("reader", lambda: [{"cache": cache}])
    table.add("other", lambda: [{"pod": {"metadata": {"name": "p" * 4_000}}}])
    found = parts_of(table)
    assert 4_000 < found["reader"].bytes < 8_000, "nobody else has it in this process"
    assert found["other"].bytes < 2_000
    table.add("server", lambda: [[pod]], keeps_objects=True)
    found = parts_of(table)
    assert found["reader"].bytes < 3_500
    assert found["server"].bytes > 4_000


def test_what_is_apart_is_looked_into_by_nobody():
    inner = ["i" * 9_000]
    table = MemoryTable()
    table.add("part", lambda: [[inner]], apart=lambda: [inner])
    assert parts_of(table)["part"].bytes < 1_000


def test_the_sum_stands_beside_what_the_kernel_says():
    table = MemoryTable()
    table.add("texts", lambda: [texts(10)])
    found = asyncio.run(table.document())
    told = sum(part["bytes"] for part in found["parts"])
    assert found["residentBytes"] == told + found["restBytes"]
    assert abs(found["residentBytes"] - resident_bytes()) < 50 * 2**20
    assert {part["name"] for part in found["parts"]} == {"texts", "interpreter and code"}
