from dataclasses import replace
from pathlib import Path

from sampan.kubelet.native.records import Records, SandboxRecord

FIRST = SandboxRecord("a" * 8, "web", "default", "uid-1", 0, 1.0, labels={"app": "web"})


def records(directory: Path) -> Records[SandboxRecord]:
    return Records(directory, SandboxRecord)


def test_the_newest_record_is_found_again(tmp_path: Path) -> None:
    newest = replace(FIRST, ready=True, ips=("10.0.0.5",))
    for record in (FIRST, replace(FIRST, ready=True), newest):
        records(tmp_path).put(record)

    assert list(records(tmp_path).all()) == [newest]
    assert records(tmp_path).broken() == []


def test_a_change_that_was_cut_off_did_not_happen(tmp_path: Path) -> None:
    records(tmp_path).put(FIRST)
    file = next((tmp_path / FIRST.id).iterdir())
    whole = file.read_bytes()
    records(tmp_path).put(replace(FIRST, ready=True))
    both = file.read_bytes()

    for length in range(len(whole), len(both)):
        file.write_bytes(both[:length])
        assert list(records(tmp_path).all()) == [FIRST]


def test_a_record_without_a_whole_line_is_broken(tmp_path: Path) -> None:
    records(tmp_path).put(FIRST)
    file = next((tmp_path / FIRST.id).iterdir())
    for damaged in (b"", b"\0" * 100, file.read_bytes()[:-1], b"\n[1]\n"):
        file.write_bytes(damaged)
        assert list(records(tmp_path).all()) == []
        assert records(tmp_path).broken() == [FIRST.id]


def test_a_change_replaces_no_file(tmp_path: Path) -> None:
    """A file in the place of another is written to the disk first, by ext4 and its like."""
    records(tmp_path).put(FIRST)
    before = {item.name: item.stat().st_ino for item in (tmp_path / FIRST.id).iterdir()}
    records(tmp_path).put(replace(FIRST, ready=True))
    after = {item.name: item.stat().st_ino for item in (tmp_path / FIRST.id).iterdir()}

    assert after == before


def test_what_was_removed_is_gone(tmp_path: Path) -> None:
    kept = records(tmp_path)
    kept.put(FIRST)
    (kept.place(FIRST.id) / "shm").mkdir()
    kept.remove(FIRST.id)
    kept.remove(FIRST.id)

    assert not kept.place(FIRST.id).exists()
