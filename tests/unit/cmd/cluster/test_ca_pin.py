import re

import pytest

from sampan.cmd.cluster import pki
from sampan.cmd.cluster.ca_pin import authority_of, fingerprint
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.errors import CannotStart
from sampan.core.clock import SystemClock


def test_a_fingerprint_is_of_the_key(tmp_path):
    ensure(tmp_path / "a", [], SystemClock())
    ensure(tmp_path / "b", [], SystemClock())
    first, second = (fingerprint(pki.Pki(tmp_path / one).ca.read_bytes()) for one in "ab")
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", first)
    assert first != second


@pytest.mark.parametrize("url", ["http://192.0.2.1:6443", "192.0.2.1:6443", "https://"])
def test_only_an_https_address_is_joined(url):
    with pytest.raises(CannotStart, match="no https address"):
        authority_of(url, "sha256:00")


def test_nobody_there_is_said_in_one_line():
    with pytest.raises(CannotStart, match="no API server answers"):
        authority_of("https://127.0.0.1:1", "sha256:00")
