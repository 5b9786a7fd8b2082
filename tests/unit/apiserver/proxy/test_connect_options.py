"""What a connection asks for, as admission sees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.resources import NODES, PODS, SERVICES
from sampan.apiserver.proxy.connect_options import options_of, path_of, query_of


def test_every_connection_has_options_of_its_own_kind():
    kinds = [
        options_of(resource, name, "", "")["kind"]
        for resource, name in (
            (PODS, "exec"), (PODS, "attach"), (PODS, "portforward"), (PODS, "proxy"),
            (NODES, "proxy"), (SERVICES, "proxy"),
        )
    ]  # fmt: skip
    assert kinds == [
        "PodExecOptions", "PodAttachOptions", "PodPortForwardOptions", "PodProxyOptions",
        "NodeProxyOptions", "ServiceProxyOptions",
    ]  # fmt: skip


@given(
    st.lists(st.text(max_size=8), max_size=4),
    st.sets(st.sampled_from(["stdin", "stdout", "stderr", "tty"])),
    st.text(alphabet="abc-&=", max_size=5),
)
def test_what_admission_changed_reads_the_same_on_the_node(command, streams, container):
    options = {"kind": "PodExecOptions", "apiVersion": "v1", **dict.fromkeys(streams, True)}
    options |= {"container": container} if container else {}
    options |= {"command": command} if command else {}
    assert options_of(PODS, "exec", query_of(options), "") == options


def test_ports_are_numbers_however_they_are_listed():
    assert options_of(PODS, "portforward", "ports=80,81&ports=x&ports=82", "")["ports"] == [
        80, 81, 82,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "sent"), [("", ""), ("/a/b", "/a/b"), ("a b", "/a%20b"), ("/x?y#z", "/x%3Fy%23z")]
)
def test_a_proxied_path_that_admission_wrote_stays_a_path(path, sent):
    assert path_of({"path": path}) == sent
