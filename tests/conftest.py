"""For all tests: surroundings of their own (working directory, home, environment), whatever those
of the user have; Hypothesis without deadlines, since a busy machine is not a bug, and with the
same examples in every run, unless SAMPAN_SEED asks for others; frozen instances that refuse to be
changed; the default version of Kubernetes for each file, whichever the one before
has chosen, or the one that a file or a test is marked with, because what it expects was asked of an
original of that version; and programs that need not compile sampan at each start, whatever the
environment says, and that end with Ctrl-C, even where a shell runs the tests in the background and
has them ignore it."""

import gc
import os
import shutil
import signal
import tempfile
from contextlib import nullcontext

import pytest
from hypothesis import settings

from sampan.core.fast_dataclass import refuse_changes

refuse_changes()  # before any other module of sampan defines its classes

from sampan.api import features  # noqa: E402

settings.register_profile(
    "sampan", deadline=None, print_blob=True, derandomize=not os.environ.get("SAMPAN_SEED")
)
settings.load_profile("sampan")

signal.signal(signal.SIGINT, signal.default_int_handler)

# What a user's shell may say to sampan, kubectl and their libraries; what it says to the tests
# themselves stays.
_USERS = (
    "KUBE", "SAMPAN_", "XDG_", "CONTAINERD_", "ETCDCTL_", "SSL_CERT_", "NOTIFY_SOCKET", "LISTEN_",
    "EDITOR", "VISUAL", "PAGER", "NO_COLOR", "CLICOLOR", "COLUMNS", "LINES",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "PYTHONDEVMODE", "PYTHONASYNCIODEBUG",
)  # fmt: skip
_TESTS = (
    "SAMPAN_TEST_", "SAMPAN_SEED", "SAMPAN_MINUTES", "SAMPAN_PODS", "SAMPAN_REQUESTS",
    "SAMPAN_OBJECTS", "SAMPAN_KILLS", "SAMPAN_ROLLOUTS", "SAMPAN_PICTURES", "SAMPAN_RECORD",
)  # fmt: skip
for _name in list(os.environ):
    if _name.upper().startswith(_USERS) and not _name.startswith(_TESTS):
        del os.environ[_name]
_surroundings = tempfile.mkdtemp(prefix="sampan-tests-")
os.environ["HOME"] = os.path.join(_surroundings, "home")
for _directory in (os.environ["HOME"], os.path.join(_surroundings, "work")):
    os.mkdir(_directory)
_pid = os.getpid()
_THRESHOLD = gc.get_threshold()


def pytest_collection_finish():
    """Not before: pytest and its workers are given paths of the working directory."""
    os.chdir(os.path.join(_surroundings, "work"))


def pytest_runtest_teardown(item, nextitem):
    is_last = nextitem is None or nextitem.path != item.path  # fixtures of a file may choose for it
    if is_last and features.release() != features.Release():
        features.use(features.Release())
    if not gc.isenabled() or gc.get_threshold() != _THRESHOLD:
        # A command that was run in this process thought that it would soon be over.
        gc.enable()
        gc.set_threshold(*_THRESHOLD)


@pytest.fixture(scope="module", autouse=True)
def _version_of_the_file(request):
    marker = request.node.get_closest_marker("kubernetes")
    with features.used(_chosen(marker)) if marker else nullcontext():
        yield


@pytest.fixture(autouse=True)
def _version_of_the_test(request):
    marker = next((one for one in request.node.own_markers if one.name == "kubernetes"), None)
    with features.used(_chosen(marker)) if marker else nullcontext():
        yield


def _chosen(marker):
    return features.Release(*marker.args, **marker.kwargs)


def pytest_unconfigure():
    """Of the process that made them; clusters of the test kit are forks of it."""
    if os.getpid() == _pid:
        os.chdir("/")
        shutil.rmtree(_surroundings, ignore_errors=True)


# Files whose tests take the longest, those first: with `--dist loadfile` nobody waits in the end
# for one that was begun last.
_LONGEST = (
    "architecture", "growth", "workload_lives", "controllers_cluster", "controllers_workloads",
    "fault_dial", "pod_lives",
    "restart", "pages", "volumes", "controllers", "scheduler_churn", "production", "machines",
    "services", "recording", "kubelet_process", "configure_pods", "run_applications", "page",
    "up_processes", "testkit", "cri_pods", "examples", "many_objects", "loop_holds",
)  # fmt: skip
_PLACES = {f"test_{name}.py": place for place, name in enumerate(_LONGEST)}


def pytest_collection_modifyitems(items):
    """The sort is stable: what is not among them stays in its order."""
    items.sort(key=lambda item: _PLACES.get(item.path.name, len(_PLACES)))
