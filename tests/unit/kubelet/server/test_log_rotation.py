"""Logs stay below their limits [N18]."""

import asyncio
import gzip

from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.kubelet.server.log_rotation import LogRotation, plan_rotation
from tests.support.manual_clock import ManualClock
from tests.support.worlds.observed_pods import UID, container, observed_pod


class Reopens:
    """As much of a runtime as rotation needs: a new file at the old path."""

    def __init__(self, path, failure=None):
        self._path, self._failure = path, failure

    async def reopen_log(self, container_id):
        if self._failure:
            raise self._failure
        self._path.touch()


def rotated(tmp_path, text, *, failure=None, before=(), clock=None):
    folder = tmp_path / f"default_web_{UID}" / "main"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "0.log"
    path.write_text(text)
    for name, content in before:
        (folder / name).write_text(content)
    rotation = LogRotation(
        Reopens(path, failure), str(tmp_path), most_bytes=10, most_files=3,
        clock=clock or ManualClock(),
    )  # fmt: skip
    asyncio.run(rotation.rotate(rotation.too_large([observed_pod(container())])))
    return folder


def test_a_small_log_is_left_alone(tmp_path):
    folder = rotated(tmp_path, "short")
    assert [one.name for one in folder.iterdir()] == ["0.log"]


def test_a_large_log_is_moved_aside_and_the_older_ones_are_compressed(tmp_path):
    before = [("0.log.20200101-000000", "older"), ("0.log.20190101-000000.gz", "oldest")]
    folder = rotated(tmp_path, "x" * 11, before=before)
    names = sorted(one.name for one in folder.iterdir())
    assert names[:1] == ["0.log"]
    assert "0.log.20200101-000000.gz" in names
    assert "0.log.20190101-000000.gz" not in names  # three files at most
    assert gzip.decompress((folder / "0.log.20200101-000000.gz").read_bytes()) == b"older"
    assert len(names) == 3
    newest = next(name for name in names if name != "0.log" and not name.endswith(".gz"))
    assert (folder / newest).read_text() == "x" * 11


def test_a_log_that_the_runtime_cannot_open_anew_is_put_back(tmp_path):
    folder = rotated(tmp_path, "x" * 11, failure=RuntimeFailure("no"))
    assert (folder / "0.log").read_text() == "x" * 11
    assert len(list(folder.iterdir())) == 1


MOMENTS = st.lists(st.integers(10_000_000, 99_999_999), unique=True, max_size=8)


@given(MOMENTS, MOMENTS, st.integers(2, 6))
def test_no_more_files_than_allowed_remain_and_the_newest_stay(plain, packed, most):
    names = [f"0.log.{one}" for one in plain] + [f"0.log.{one}.gz" for one in packed]
    steps = plan_rotation("0.log", ["0.log", "1.log.5", *names], most)
    left = [name for name in names if name not in steps.remove]
    assert len(left) + 2 <= max(most, 2)
    assert not set(steps.compress) & set(steps.remove)
    assert "1.log.5" not in steps.remove
