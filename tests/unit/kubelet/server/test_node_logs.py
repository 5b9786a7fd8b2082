"""Logs of the machine: files, and what its services say. The journal is a script."""

import asyncio
import stat
from urllib.parse import urlencode

import pytest

from sampan.core.http.messages import Request, Response
from sampan.kubelet.server.node_logs import NodeLogs

JOURNAL = """#!/bin/sh
if [ "$1" = --field ]; then echo kubelet.service; exit; fi
echo "$@"
"""


@pytest.fixture
def logs(tmp_path):
    root = tmp_path / "log"
    (root / "foo").mkdir(parents=True)
    (root / "foo" / "foo.log").write_text("of foo\n")
    (root / "bar.log").write_text("of bar\n")
    (root / "out").symlink_to(tmp_path)
    (tmp_path / "secret.log").write_text("not shown")
    journal = tmp_path / "journalctl"
    journal.write_text(JOURNAL)
    journal.chmod(journal.stat().st_mode | stat.S_IEXEC)
    return NodeLogs(str(root), str(journal))


def asked(logs, place="", queries=True, **query):
    async def answered():
        request = Request("GET", "/logs/", urlencode(query, doseq=True), {})
        reply = await logs.answer(place.split("/"), request, queries=queries)
        if isinstance(reply, Response):
            return reply.status, reply.body.decode()
        return reply.status, b"".join([block async for block in reply.chunks]).decode()

    return asyncio.run(answered())


def test_a_service_that_writes_to_the_journal_is_read_there(logs):
    status, text = asked(logs, query="kubelet", tailLines=3)
    assert status == 200
    assert text.split() == [
        "--utc", "--no-pager", "--output=short-precise", "--pager-end", "--lines=3",
        "--unit=kubelet",
    ]  # fmt: skip


@pytest.mark.parametrize(("service", "text"), [("foo", "of foo\n"), ("bar", "of bar\n")])
def test_others_are_looked_for_among_the_files(logs, service, text):
    assert asked(logs, query=service) == (200, text)


def test_files_take_no_options(logs):
    assert asked(logs, query="foo", boot=0) == (
        200,
        "\noptions present and query resolved to log files for [foo]\n"
        "try without specifying options\n",
    )


def test_what_is_nowhere_is_said(logs):
    assert asked(logs, query="nobody") == (200, "\nlog not found for nobody\n")


def test_without_a_journal_files_are_read(logs, tmp_path):
    there = NodeLogs(str(tmp_path / "log"), str(tmp_path / "none"))
    assert asked(there, query=["bar", "foo"]) == (200, "of bar\nof foo\n")


def test_a_file_is_shown_and_nothing_outside(logs):
    assert asked(logs, query="foo/foo.log") == (200, "of foo\n")
    for name in ("out/secret.log", "../secret.log", "/etc/passwd"):
        status, text = asked(logs, query=name)
        assert (status, text) == (
            406,
            f'query: Invalid value: ["{name}"]: statat {name}: path escapes from parent\n',
        )
    assert asked(logs, query="foo/none.log") == (
        406,
        'query: Invalid value: ["foo/none.log"]: statat foo/none.log: no such file or directory\n',
    )


def test_a_query_has_no_path(logs):
    assert asked(logs, "foo/foo.log", query="bar") == (406, "path not allowed in query mode\n")


def test_queries_are_heeded_only_where_they_are_wanted(logs):
    assert asked(logs, "bar.log", queries=False, query="foo") == (200, "of bar\n")
    assert asked(logs, "bar.log") == (200, "of bar\n")
