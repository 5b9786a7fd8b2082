"""kubelet/stray_shims.py: only what containerd has forgotten for good."""

from sampan.kubelet.stray_shims import Shim, _free_addresses, strays, suspects

OLD, NEW, KNOWN = Shim(1, "old"), Shim(2, "new"), Shim(3, "known")


def test_a_shim_that_is_unknown_in_both_looks_is_a_stray():
    assert strays([OLD, KNOWN], {"known"}, [OLD, KNOWN], {"known"}) == [OLD]


def test_a_shim_that_came_later_is_a_start_under_way():
    assert strays([KNOWN], {"known"}, [KNOWN, NEW], {"known"}) == []


def test_a_shim_that_became_known_or_went_is_left_alone():
    assert strays([OLD], set(), [OLD], {"old"}) == []
    assert strays([OLD], set(), [], set()) == []


def test_a_pid_that_was_given_to_another_shim_is_not_the_same():
    assert strays([OLD], set(), [Shim(1, "other")], set()) == []


def test_whose_sandbox_is_ready_is_no_suspect():
    assert suspects([OLD, KNOWN], {"known"}) == [OLD]


def test_only_the_addresses_of_the_stray_are_freed(tmp_path):
    (tmp_path / "sampan").mkdir()
    for address, owner in (("10.244.0.2", "old"), ("10.244.0.3", "known")):
        (tmp_path / "sampan" / address).write_text(f"{owner}\r\neth0")
    (tmp_path / "sampan" / "last_reserved_ip.0").write_text("10.244.0.3")
    _free_addresses(tmp_path, "old")
    left = sorted(path.name for path in (tmp_path / "sampan").iterdir())
    assert left == ["10.244.0.3", "last_reserved_ip.0"]
