"""What a reader of Kubernetes' task pages has: a cluster, a namespace, kubectl and two images.

A test is marked with the page that it walks; docs/tasks.md lists every page with its test.
"""

import platform
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

from sampan.core.elf import architecture
from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from tests.e2e.tasks.objects import WEB, WEB_NEXT, Reader


def web_archive(path: Path, reference: str, page: str) -> Path:
    binary = shutil.which("busybox")
    assert binary, "busybox is not installed: make test installs it (busybox-static)"
    listed = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split() if name != "busybox"]
    files = {f"bin/{name}": ArchiveFile(b"", link_to="busybox") for name in names}
    files["bin/busybox"] = ArchiveFile(Path(binary).read_bytes())
    files["www/index.html"] = ArchiveFile(page.encode())
    settings = ImageSettings(
        architecture=architecture(platform.machine()),
        command=("httpd", "-f", "-p", "80", "-h", "/www"),
        env=("PATH=/bin",),
    )
    path.write_bytes(build_archive(reference, files, settings))
    return path


@pytest.fixture(scope="session")
def images(cluster, workspace):
    for number, reference in ((1, WEB), (2, WEB_NEXT)):
        archive = web_archive(workspace / f"web{number}.tar", reference, f"release {number}\n")
        cluster.run("image", "import", str(archive))


@pytest.fixture
def reader(cluster, images):
    namespace = f"page-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    yield Reader(cluster.kubectl, namespace)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="sampan-page-"))
    yield path
    shutil.rmtree(path)
