"""Real parts for the end-to-end tests: one cluster and one registry for the whole run; some files
see a cluster of either runtime."""

import gc
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.parts.browser import Browser, find_browser
from tests.support.parts.images import busybox_archive
from tests.support.parts.kubectl import client_minor
from tests.support.parts.machines import machines
from tests.support.parts.registry import Registry
from tests.support.parts.sampan_process import RUNTIME, RUNTIMES, SampanProcess, registry_flags


def pytest_collection_modifyitems(items):
    """Real containers on a busy machine take their time; what hangs is still found."""
    here = Path(__file__).parent
    for item in items:
        if here not in item.path.parents:
            continue
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(240))
        since = item.get_closest_marker("kubectl_since")
        if since is not None and client_minor() < since.args[0]:
            why = f"needs kubectl 1.{since.args[0]}, this is 1.{client_minor()}"
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def workspace():
    """Short on purpose: unix sockets allow about 100 characters of path."""
    root = Path(tempfile.mkdtemp(prefix="sampan-e2e-"))
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def archive(workspace):
    return busybox_archive(workspace / "busybox.tar", "localhost/test/busybox:1")


@pytest.fixture(scope="session")
def registry(workspace):
    registry = Registry(workspace)
    yield registry
    registry.stop()


@pytest.fixture(scope="session")
def registry_image(registry, archive):
    return registry.push(archive, "test/busybox", "1")


def pytest_generate_tests(metafunc):
    """Tests that say so see another runtime than the default, or each."""
    marker = metafunc.definition.get_closest_marker("runtime")
    if marker is not None and "runtime" in metafunc.fixturenames:
        names = [name for name in marker.args if name in RUNTIMES]
        metafunc.parametrize("runtime", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def runtime(request):
    """What the shared cluster runs containers with."""
    return getattr(request, "param", RUNTIME)


@pytest.fixture(scope="session")
def cluster(workspace, archive, registry, runtime):
    """One real node for all tests that do not need one of their own."""
    assert os.getuid() == 0, "these tests run real containers: root is needed"
    root = workspace / f"shared-{runtime}"
    gates = ("--feature-gates", "ContainerStopSignals=true")
    asked = (registry.address, "127.0.0.1:9")  # tests want images of these; the second is nobody
    named = [word for address in asked for word in registry_flags(address, runtime)]
    cluster = SampanProcess(root, "--runtime", runtime, *gates, *named)
    cluster.up()
    cluster.run("image", "import", str(archive))
    yield cluster
    code = cluster.stop()
    cluster.reset()
    assert code == 0, cluster.output.read_text()
    assert cluster.leftovers() == {}


@pytest.fixture(scope="session")
def two_machines():
    """A node, and a machine that is not of the cluster, cut off from the real network."""
    with machines(2) as pair:
        yield pair


@pytest.fixture(scope="session")
def lone_cluster(two_machines, archive):
    """A real node whose network the tests may use, and send into, as they like."""
    root = Path(tempfile.mkdtemp(prefix="sampan-net-"))
    machine = two_machines[0]
    flags = ("--runtime", RUNTIME, "--ip-families", "ipv4,ipv6")
    cluster = SampanProcess(root, *flags, where=machine.where)
    cluster.up()
    cluster.run("image", "import", str(archive))
    yield cluster
    cluster.kubectl("delete", "pods", "--all", "--now")
    code = cluster.stop()
    cluster.reset()
    assert code == 0, cluster.output.read_text()
    assert "sampan" not in machine.run("nft", "list", "tables")
    assert "sampan" not in machine.run("ip", "link")
    assert "10." not in machine.run("ip", "route")
    assert "fd00" not in machine.run("ip", "-6", "route")
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def browser():
    program = find_browser()
    if program is None:
        pytest.skip("no chromium: `tools/setup test` installs it as root on an apt system")
    browser = Browser(program)
    yield browser
    browser.stop()


@pytest.fixture
def kubectl(cluster):
    return cluster.kubectl


@pytest.fixture
def own_cluster():
    """A cluster that a test may break: not started, removed afterwards with all that it left."""
    root = Path(tempfile.mkdtemp(prefix="sampan-own-"))
    cluster = SampanProcess(root)
    yield cluster
    cluster.reset()
    assert cluster.leftovers() == {}
    shutil.rmtree(root)


@pytest.fixture
def leaves_connections():
    """For libraries that leave theirs open: what is collected with the test that made it cannot be
    collected by chance in another one, which would fail for it."""
    yield
    gc.collect()
