"""What an exec or attach request asks of the runtime."""

import pytest

from sampan.kubelet.lookup import NotAvailable
from sampan.kubelet.streams import StreamOptions, stream_options


def test_the_query_names_command_and_streams():
    query = "input=1&output=1&error=1&command=sh&command=-c&command=echo+%24HOME"
    assert stream_options(query) == StreamOptions(
        stdin=True, stdout=True, stderr=True, tty=False, command=("sh", "-c", "echo $HOME")
    )


def test_an_empty_argument_is_an_argument():
    assert stream_options("output=1&command=echo&command=").command == ("echo", "")


def test_a_terminal_has_no_stderr_of_its_own():
    options = stream_options("input=1&output=1&error=1&tty=1")
    assert (options.tty, options.stderr) == (True, False)


def test_no_stream_at_all_is_refused():
    with pytest.raises(NotAvailable, match="you must specify at least 1 of stdin, stdout, stderr"):
        stream_options("command=ls")
