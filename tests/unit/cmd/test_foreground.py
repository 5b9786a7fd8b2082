"""What a cluster of an ordinary user does not have is refused."""

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.foreground import refuse_without_root
from sampan.cmd.settings import UpSettings


def test_processes_with_real_containers_need_root():
    with pytest.raises(CannotStart, match="--processes with real containers needs root"):
        refuse_without_root(UpSettings(processes=True))
    refuse_without_root(UpSettings())
