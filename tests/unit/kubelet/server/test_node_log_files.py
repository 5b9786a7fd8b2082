"""[N19] The machine's log files, through the node's proxy."""

import asyncio
import os

import pytest

from sampan.core.http.messages import Response
from sampan.kubelet.server.node_log_files import log_file


@pytest.fixture
def root(tmp_path):
    logs = tmp_path / "log"
    (logs / "pods").mkdir(parents=True)
    (logs / "a&b.log").write_text("hello\n")
    (logs / "it's").write_text("")
    (logs / "binary").write_bytes(b"\0\1")
    (tmp_path / "secret").write_text("secret")
    os.symlink("../secret", logs / "out")
    os.symlink("a&b.log", logs / "in")
    return str(logs)


def whole(reply):
    async def read():
        return b"".join([block async for block in reply.chunks])

    return asyncio.run(read())


def test_a_directory_is_listed_as_go_does(root):
    page = log_file([""], root)
    assert page.status == 200
    assert b'<a href="a%26b.log">a&amp;b.log</a>\n' in page.body
    assert b'<a href="it%27s">it&#39;s</a>\n' in page.body
    assert b'<a href="pods/">pods/</a>\n' in page.body
    moved = log_file(["pods"], root)
    assert (moved.status, dict(moved.headers)["location"]) == (301, "pods/")
    assert log_file(["pods", ""], root).status == 200


def test_a_file_is_shown(root):
    for name in ("a&b.log", "in"):
        shown = log_file([name], root)
        assert dict(shown.headers)["content-type"].startswith("text/plain")
        assert whole(shown) == b"hello\n"
    binary = log_file(["binary"], root)
    assert dict(binary.headers)["content-type"] == "application/octet-stream"
    assert whole(binary) == b"\0\1"


@pytest.mark.parametrize("parts", [["out"], ["..", "secret"], ["none"], ["a&b.log", ""], ["/etc"]])
def test_nothing_else_is(root, parts):
    found = log_file(parts, root)
    assert isinstance(found, Response)
    assert found.status == 404
