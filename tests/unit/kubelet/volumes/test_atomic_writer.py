import os
import stat
import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.kubelet.volumes.atomic_writer import write_payload
from sampan.kubelet.volumes.payload import File

NAMES = st.sampled_from(["a", "b", "deep/a", "deep/er/b", ".hidden", "x"])
PAYLOADS = st.dictionaries(
    NAMES, st.builds(File, st.binary(max_size=20), st.sampled_from([0o644, 0o400, 0o777]))
)


def shown(directory):
    """What a reader of the volume sees, through its links."""
    found = {}
    for where, _, names in os.walk(directory, followlinks=True):
        for name in names:
            path = os.path.relpath(os.path.join(where, name), directory)
            if not path.startswith(".."):
                whole = os.path.join(where, name)
                with open(whole, "rb") as opened:
                    found[path] = File(opened.read(), stat.S_IMODE(os.stat(whole).st_mode))
    return found


def test_files_are_links_through_one_link(tmp_path):
    """[N15] the layout that programs watch for: ..data"""
    write_payload(str(tmp_path), {"word": File(b"hello", 0o644)}, 0.0)
    assert os.readlink(tmp_path / "word") == "..data/word"
    stamp = os.readlink(tmp_path / "..data")
    assert stamp.startswith("..1970_01_01_00_00_00.")
    assert sorted(os.listdir(tmp_path)) == sorted(["word", "..data", stamp])


def test_an_unchanged_payload_is_not_written_again(tmp_path):
    payload = {"word": File(b"hello", 0o644)}
    assert write_payload(str(tmp_path), payload, 0.0)
    before = os.readlink(tmp_path / "..data")
    assert not write_payload(str(tmp_path), payload, 5.0)
    assert os.readlink(tmp_path / "..data") == before
    assert write_payload(str(tmp_path), {"word": File(b"bye", 0o644)}, 5.0)
    assert os.readlink(tmp_path / "..data") != before


@settings(deadline=None, max_examples=60)
@given(st.lists(PAYLOADS, min_size=1, max_size=4), st.integers(0, 3))
def test_after_each_write_exactly_the_payload_is_shown(tmp_path_factory, payloads, cut):
    directory = tmp_path_factory.mktemp("volume")
    for at, payload in enumerate(payloads):
        if at == cut:  # a write that was interrupted before it could be seen
            os.mkdir(directory / "..1999_01_01_00_00_00.cut")
            os.symlink("..1999_01_01_00_00_00.cut", directory / "..data_tmp")
        write_payload(str(directory), payload, float(at))
        assert shown(directory) == payload
    hidden = [name for name in os.listdir(directory) if name.startswith("..")]
    assert len(hidden) == 2, hidden


def test_a_reader_sees_one_whole_payload_at_any_moment(tmp_path):
    """[N15] both files change in one step"""
    old, new = ({"a": File(x, 0o644), "b": File(x, 0o644)} for x in (b"old", b"new"))
    write_payload(str(tmp_path), old, 0.0)
    seen, stop = set(), threading.Event()

    def read():
        while not stop.is_set():
            texts = []
            try:
                directory = os.open(tmp_path / "..data", os.O_RDONLY)
            except FileNotFoundError:
                continue  # the link was read, and what it led to has been removed since
            for name in ("a", "b"):
                try:
                    file = os.open(name, os.O_RDONLY, dir_fd=directory)
                except FileNotFoundError:
                    break
                texts.append(os.read(file, 9))
                os.close(file)
            else:
                seen.add(tuple(texts))
            os.close(directory)

    reader = threading.Thread(target=read)
    reader.start()
    for at in range(100):
        write_payload(str(tmp_path), new if at % 2 == 0 else old, float(at))
    stop.set()
    reader.join()
    assert seen <= {(b"old", b"old"), (b"new", b"new")}


def test_what_was_made_is_given_away_before_it_is_seen(tmp_path):
    given_away = []

    def own(path):
        given_away.append((path, os.path.lexists(tmp_path / "..data")))

    write_payload(str(tmp_path), {"word": File(b"x", 0o600)}, 0.0, own)
    ((path, was_seen),) = given_away
    assert path == str(tmp_path / os.readlink(tmp_path / "..data"))
    assert not was_seen
