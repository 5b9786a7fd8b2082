"""Several real nodes on one machine: their names and numbers."""

from sampan.cmd.cluster.node.places import (
    NUMBER,
    directory_of,
    names_of,
    number_of,
    other_nodes,
)


def known(root, **numbers):
    for name, number in numbers.items():
        directory_of(root, name).mkdir(parents=True)
        (directory_of(root, name) / NUMBER).write_text(number)


def test_the_first_node_is_the_machine_itself():
    assert names_of("vm", 3, ()) == ("vm", "vm-2", "vm-3")
    assert names_of("vm", 1, ("a", "b")) == ("a", "b")


def test_a_node_keeps_its_number_and_a_new_one_gets_one_that_is_free(tmp_path):
    assert number_of(tmp_path, "a") == 2
    known(tmp_path, a="2", c="4")
    assert [number_of(tmp_path, name) for name in ("a", "c", "new")] == [2, 4, 3]
    assert [place.name for place in other_nodes(tmp_path)] == ["a", "c"]


def test_a_number_that_is_none_is_no_number(tmp_path):
    known(tmp_path, a="two", b="")
    assert number_of(tmp_path, "a") == 2
