import os
import platform

import pytest

from sampan.network.netlink import alias_of, set_alias

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="netlink is Linux's own")


def test_an_interface_that_is_not_there_has_no_alias():
    assert alias_of("nobody0") == ""
    assert alias_of("a" * 40) == ""


def test_an_alias_cannot_be_given_to_what_is_not_there():
    with pytest.raises(OSError, match=r"No such device|not permitted"):
        set_alias("nobody0", "x")


@pytest.mark.containerd
def test_an_alias_is_read_as_it_was_written():
    """Needs root; the loopback interface of a namespace of its own is used."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os_unshare_network()
            set_alias("lo", "sampan test")
            code = 0 if alias_of("lo") == "sampan test" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def os_unshare_network():
    import ctypes

    clone_newnet = 0x40000000
    assert ctypes.CDLL(None).unshare(clone_newnet) == 0
