"""A data directory that the first release (0.1.0) wrote opens, and its cluster goes on.

first_release.tar.gz is what `sampan up --runtime simulated --nodes 2` of 0.1.0 left when it was
stopped: its store and its format, with a Deployment of three pods, a Service, a Secret, a CronJob,
a custom kind and an object of it. (Certificates are not in it: a start makes new ones.)
"""

import base64
import tarfile
from pathlib import Path

import pytest

from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import load
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
WRITTEN = Path(__file__).with_name("first_release.tar.gz")
PODS = {"web-78f75f4bc6-bpsl7", "web-78f75f4bc6-rrfzp", "web-78f75f4bc6-xrvln"}
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/web"
DEFAULT = "/api/v1/namespaces/default"


@pytest.fixture
def cluster(tmp_path):
    made = SampanProcess(tmp_path, "--runtime", "simulated", "--nodes", "2")
    made.data_dir.mkdir(mode=0o700)
    with tarfile.open(WRITTEN) as archive:
        archive.extractall(made.data_dir, filter="data")
    made.run("upgrade")  # which looks at all of the file
    made.up()
    yield made
    assert made.stop() == 0
    made.reset()


def test_what_the_first_release_wrote_is_there_and_goes_on(cluster):
    api = BlockingClient(load(str(cluster.kubeconfig), {}, "").connection(), timeout_seconds=60)
    secret = api.json("GET", f"{DEFAULT}/secrets/kept")
    assert base64.b64decode(secret["data"]["word"]) == b"sesame"
    assert api.json("GET", f"{DEFAULT}/services/web")["spec"]["clusterIP"].startswith("10.")
    assert api.json("GET", "/apis/batch/v1/namespaces/default/cronjobs/nightly")
    boat = api.json("GET", "/apis/example.com/v1/namespaces/default/boats/b")
    assert boat["spec"] == {"sails": 2}
    pods = api.json("GET", f"{DEFAULT}/pods")["items"]
    assert {pod["metadata"]["name"] for pod in pods} == PODS
    patch = b'{"spec": {"replicas": 4}}'
    api.json("PATCH", DEPLOYMENT, body=patch, content_type="application/merge-patch+json")
    eventually(lambda: api.json("GET", DEPLOYMENT)["status"].get("readyReplicas") == 4, 120)
    assert {pod["metadata"]["name"] for pod in api.json("GET", f"{DEFAULT}/pods")["items"]} > PODS
    api.close()
