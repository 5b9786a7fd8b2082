"""The limits of what one layer may hold, before anything is written beyond them."""

import io
import tarfile

import pytest

from sampan.runtime.images.content import ImageError
from sampan.runtime.images.layer import LayerWriter, Limits, clean_name


class Endless(io.RawIOBase):
    """Ten million files, made as they are read; `given`: how many were asked for."""

    def __init__(self, entries=10_000_000):
        self.given, self._entries, self._left = 0, entries, b""

    def readable(self):
        return True

    def read(self, size=-1):
        while len(self._left) < size and self.given < self._entries:
            info = tarfile.TarInfo(f"{self.given}")
            info.size = 1000
            self._left += info.tobuf(tarfile.USTAR_FORMAT) + bytes(1024)
            self.given += 1
        found, self._left = self._left[:size], self._left[size:]
        return found


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [(Limits(entries=50), "more than 50 entries"), (Limits(bytes=20_000), "more than 20000 bytes")],
)
def test_ten_million_entries_end_at_the_limit(tmp_path, monkeypatch, limits, sentence):
    monkeypatch.chdir(tmp_path)
    stream = Endless()
    with pytest.raises(ImageError, match=sentence):
        LayerWriter(limits).write(stream)
    assert stream.given < 100
    assert len(list(tmp_path.iterdir())) <= 50
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 50_000


@pytest.mark.parametrize(
    ("name", "cleaned"), [("./a//b/", "a/b"), ("/etc/passwd", "etc/passwd"), (".", ""), ("", "")]
)
def test_names_are_relative_and_plain(name, cleaned):
    assert clean_name(name) == cleaned
