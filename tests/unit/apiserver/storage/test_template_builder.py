from sampan.apiserver.storage import template_builder
from sampan.apiserver.storage.template_builder import MARK, TemplateBuilder, builder_of


def mark(number):
    return f"{MARK}{number}{MARK}"


PATTERN = {
    "metadata": {"name": mark(0), "labels": {"app": mark(1)}},
    "status": {"ip": mark(2), "at": {"node": mark(1)}, "always": {"x": 1}},
    f"k:{mark(2)}": "z",
}


def test_strings_come_where_the_slots_are():
    found = TemplateBuilder(PATTERN, 3).obj(["n", "a'", "i"])
    assert found == {
        "metadata": {"name": "n", "labels": {"app": "a'"}},
        "status": {"ip": "i", "at": {"node": "a'"}, "always": {"x": 1}},
        "k:i": "z",
    }


def test_pieces_become_a_pattern():
    pieces = ['{"metadata":{"name":', '"', "x", '"', "}}"]
    assert builder_of(pieces, [2]).obj(["other"]) == {"metadata": {"name": "other"}}


def test_what_hardly_comes_again_is_not_looked_up_after_a_review():
    builder = TemplateBuilder(PATTERN, 3)
    for number in range(100):
        builder.obj([f"n{number}", f"a{number % 2}", f"i{number}"])
    builder.review(100)
    assert sorted(map(sorted, (memory.slots for memory in builder._memories))) == [[1], [1]]
    one, two = (builder.obj([name, "a1", name]) for name in "xy")
    assert one["metadata"]["labels"] is two["metadata"]["labels"]
    assert one["status"]["at"] is two["status"]["at"]
    assert one["status"]["ip"] == "x"


def test_what_comes_again_is_looked_up_however_long_it_goes_on():
    builder = TemplateBuilder(PATTERN, 3)
    for period in range(5):
        for number in range(100):
            builder.obj([f"{period}-{number % 30}"] * 3)
        builder.review(100)
    assert builder._memories


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(template_builder, "REMEMBERED", 10)
    builder = TemplateBuilder(PATTERN, 3)
    for number in range(100):
        builder.obj([str(number)] * 3)
    assert all(len(memory) <= 10 for memory in builder._memories)
