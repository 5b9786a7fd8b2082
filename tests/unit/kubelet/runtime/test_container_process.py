"""A container's first process, as the kernel shows it [N11]."""

import os
import signal

import pytest

from sampan.kubelet.contracts.runtime import ContainerSpec, HostFile, RuntimeFailure
from sampan.kubelet.runtime.container_process import (
    hears_sigterm,
    is_there,
    prepare_host,
    signal_number,
)


def test_signals_are_named_as_in_a_pod():
    assert signal_number("SIGUSR1") == signal.SIGUSR1
    assert signal_number("SIGRTMIN+3") == signal.SIGRTMIN + 3
    assert signal_number("SIGRTMAX-2") == signal.SIGRTMAX - 2
    for name in ("SIGNOPE", "SIGRTMIN+x", ""):
        with pytest.raises(RuntimeFailure, match="unknown signal"):
            signal_number(name)


def test_this_process_is_there_and_a_sleeping_one_hears():
    assert is_there(os.getpid())
    assert not is_there(2**22 + 1)
    assert hears_sigterm(2**22 + 1)  # nobody to wait for


def test_files_and_log_directory_are_laid_out(tmp_path):
    file = HostFile(str(tmp_path / "pods/u/etc-hosts"), "127.0.0.1 x", 0o640)
    spec = ContainerSpec("c", 0, "i", "i", log_path="c/0.log", host_files=(file,))
    prepare_host(spec, str(tmp_path / "logs"))
    assert (tmp_path / "logs/c").is_dir()
    assert (tmp_path / "pods/u/etc-hosts").stat().st_mode & 0o777 == 0o640
    (tmp_path / "plain").write_text("")
    with pytest.raises(RuntimeFailure, match="cannot prepare"):
        prepare_host(spec, str(tmp_path / "plain"))
