"""What stands behind envtest's `kube-apiserver`, before it starts."""

import io

import pytest

from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import ApiServerProcessSettings, Beside
from sampan.cmd.verbs.envtest.envtest_plane import EnvtestPlane
from sampan.controllers.controller import UnknownController
from sampan.core.clock import SystemClock


def test_an_unknown_controller_is_named_before_anything_starts():
    clock = SystemClock()
    with pytest.raises(UnknownController, match="nonsense"):
        EnvtestPlane(
            ApiServerProcessSettings("memory:"),
            Beside(("nonsense",)),
            Progress(io.StringIO(), clock),
            clock,
        )
