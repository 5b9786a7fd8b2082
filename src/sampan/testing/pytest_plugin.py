"""The pytest plugin: a cluster for each test that asks for one.

Job: the fixtures `sampan` and `sampan_session`, the marker `sampan`, `--sampan-keep`, and what the
    report of a failed test says about its cluster.
Invariant: a run that asks for no cluster imports nothing of sampan and starts no process.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sampan.testing.kit.cluster import Cluster

MARKER = "sampan(nodes=1, controllers='*', scheduler=True, store='memory', clock='real', …)"
FAULTS_MARKER = "sampan_faults(seed=None, rate=0.2, kinds=…, verbs=…, resources=…, client='')"
FIXTURES = ("sampan", "sampan_session")
_KEEP = "--sampan-keep"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("sampan").addoption(
        _KEEP,
        action="store_true",
        help="leave the cluster of a failed test running, and say how to reach it",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{FAULTS_MARKER}: what its clients have to live with")
    config.addinivalue_line("markers", f"{MARKER}: what the test's cluster is like")


@pytest.fixture
def sampan(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """A cluster of the test's own; as a parameter (`indirect=True`): its version of Kubernetes."""
    marker = request.node.get_closest_marker("sampan")
    faults = request.node.get_closest_marker("sampan_faults")
    words = dict(marker.kwargs) if marker is not None else {}
    if hasattr(request, "param"):
        words["version"] = request.param
    chosen = _cluster(words, faults.kwargs if faults is not None else None)
    yield chosen
    chosen.close()


@pytest.fixture(scope="session")
def sampan_session(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """One cluster for the whole run (for each worker of it)."""
    chosen = _cluster({})
    yield chosen
    chosen.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        for name in FIXTURES:
            cluster = getattr(item, "funcargs", {}).get(name)
            # A fixture of the user may have the name.
            if cluster is not None and hasattr(cluster, "report"):
                report.sections.append((f"cluster of the fixture {name}", cluster.report()))
                if item.config.getoption(_KEEP):
                    report.sections.append(("it goes on", cluster.keep()))
    return report


def _cluster(chosen: dict[str, Any], faults: dict[str, Any] | None = None) -> "Cluster":
    from sampan.testing import cluster
    from sampan.testing.kit.launcher import ClusterGone, Refused
    from sampan.testing.kit.spec import CannotStart

    try:
        started = cluster(**chosen)
        if faults is not None:
            started.start_faults(**faults)
        return started
    except (CannotStart, ClusterGone, Refused, OSError) as error:
        why = str(error)
    pytest.fail(f"sampan: no cluster: {why}", pytrace=False)
