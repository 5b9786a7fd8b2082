"""For all tests: Hypothesis without deadlines, since a busy machine is not a bug; frozen instances
that refuse to be changed; and programs that need not compile sampan at each start, whatever the
environment says, and that end with Ctrl-C, even where a shell runs the tests in the background and
has them ignore it."""

import os
import signal

from hypothesis import settings

from sampan.core.fast_dataclass import refuse_changes

refuse_changes()  # before any other module of sampan defines its classes

settings.register_profile("sampan", deadline=None, print_blob=True)
settings.load_profile("sampan")

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # of processes that tests start
signal.signal(signal.SIGINT, signal.default_int_handler)

# Files whose tests take the longest, those first: with `--dist loadfile` nobody waits in the end
# for one that was begun last.
_LONGEST = (
    "architecture", "growth", "controllers_cluster", "controllers_workloads", "fault_dial",
    "restart", "pages", "volumes", "controllers", "scheduler_churn", "production", "machines",
    "services", "recording", "kubelet_process", "configure_pods", "run_applications", "page",
    "up_processes", "testkit", "cri_pods", "pod_lives", "examples", "many_objects", "loop_holds",
)  # fmt: skip
_PLACES = {f"test_{name}.py": place for place, name in enumerate(_LONGEST)}


def pytest_collection_modifyitems(items):
    """The sort is stable: what is not among them stays in its order."""
    items.sort(key=lambda item: _PLACES.get(item.path.name, len(_PLACES)))
