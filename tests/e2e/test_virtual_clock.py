"""`sampan up --clock virtual`: time in the hand of whoever tests, in any language."""

import pytest

from sampan.api.errors import BadRequest, Forbidden
from sampan.api.objects import seconds_of
from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import load
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
CLOCK = "/sampan/v1/clock"
NODES = """
apiVersion: simulated.sampan.dev/v1
kind: Nodes
types:
- {name: small, capacity: {cpu: 2, memory: 4Gi}, failures: [{at: 3h, for: 1h}]}
- name: large
  capacity: {cpu: 16, memory: 64Gi, example.com/gpu: 4}
  labels: {disk: ssd}
  taints: [{key: dedicated, effect: NoSchedule}]
  devices: [{driver: gpu.example.com, count: 2}]
"""
CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "hourly"},
    "spec": {
        "schedule": "30 * * * *",
        "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def sampan(tmp_path_factory):
    root = tmp_path_factory.mktemp("virtual")
    (root / "nodes.yaml").write_text(NODES)
    flags = ["--clock", "virtual", "--nodes-file", str(root / "nodes.yaml")]
    process = SampanProcess(root, *flags)
    process.up(seconds=60)
    yield process
    assert process.stop() == 0, "the end does not wait for a time that stands still"


def connection_of(sampan):
    return load(str(sampan.kubeconfig), {}, "").connection()


@pytest.fixture(scope="module")
def api(sampan):
    client = BlockingClient(connection_of(sampan), timeout_seconds=60.0)
    yield client
    client.close()


def test_leases_are_renewed_for_those_who_read_them_and_nothing_is_written_for_nobody(api):
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    configmaps = "/api/v1/configmaps"
    api.json("POST", f"{CLOCK}/settle", body={})
    before = api.json("GET", configmaps)["metadata"]["resourceVersion"]
    moved = api.json("POST", f"{CLOCK}/advance", body={"duration": "10m"})
    assert api.json("GET", configmaps)["metadata"]["resourceVersion"] == before
    for lease in api.json("GET", leases)["items"]:
        assert seconds_of(lease["spec"]["renewTime"]) == moved["seconds"]
    assert readiness(api) == {"large-0": "True", "small-0": "True"}


def test_time_moves_when_it_is_told_to_and_everything_due_happens(api):
    began = api.json("GET", CLOCK)
    api.json("POST", "/apis/batch/v1/namespaces/default/cronjobs", body=CRON_JOB)
    assert api.json("GET", CLOCK) == began, "nobody moved it"
    moved = api.json("POST", f"{CLOCK}/advance", body={"duration": "2h"})
    assert moved["seconds"] == began["seconds"] + 7200
    jobs = api.json("GET", "/apis/batch/v1/namespaces/default/jobs")["items"]
    assert [job["status"]["succeeded"] for job in jobs] == [1, 1]
    assert readiness(api) == {"large-0": "True", "small-0": "True"}, "their leases were renewed"


def readiness(api):
    return {
        node["metadata"]["name"]: condition["status"]
        for node in api.json("GET", "/api/v1/nodes")["items"]
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    }


def test_nodes_of_a_file_are_as_it_says_and_fail_as_it_says(api):
    large = api.json("GET", "/api/v1/nodes/large-0")
    assert large["status"]["allocatable"]["example.com/gpu"] == "4"
    assert large["status"]["capacity"]["memory"] == "64Gi"
    assert large["metadata"]["labels"]["disk"] == "ssd"
    assert [taint["key"] for taint in large["spec"]["taints"]] == ["dedicated"]
    [slices] = api.json("GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
    assert [device["name"] for device in slices["spec"]["devices"]] == ["device-0", "device-1"]
    api.json("POST", f"{CLOCK}/advance", body={"duration": "90m"})
    assert readiness(api) == {"large-0": "True", "small-0": "Unknown"}
    api.json("POST", f"{CLOCK}/advance", body={"duration": "1h"})
    assert readiness(api) == {"large-0": "True", "small-0": "True"}, "it has booted"


def test_a_step_goes_to_what_happens_next(api):
    api.json("POST", f"{CLOCK}/settle")
    before = api.json("GET", CLOCK)
    after = api.json("POST", f"{CLOCK}/step", body={"most": "1h"})
    assert before["seconds"] < after["seconds"] <= before["seconds"] + 3600


@pytest.mark.parametrize(
    ("body", "says"),
    [({}, "expected a duration"), ({"duration": "-1h"}, "negative"), ({"duration": "soon"}, "soon"),
     ({"duration": "99w", "to": 1}, "unknown field 'to'"), ({"duration": "4000d"}, "ten years")],
)  # fmt: skip
def test_what_is_no_span_of_time_is_refused(api, body, says):
    before = api.json("GET", CLOCK)
    with pytest.raises(BadRequest, match=says):
        api.json("POST", f"{CLOCK}/advance", body=body)
    assert api.json("GET", CLOCK) == before


def test_only_who_may_post_to_it_moves_it(sampan, api):
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.json("POST", path, body=review)["status"]["token"]
    admin = connection_of(sampan)
    guest = BlockingClient(type(admin)(admin.server, ca=admin.ca, token=token))
    with pytest.raises(Forbidden, match="/sampan/v1/clock/advance"):
        guest.json("POST", f"{CLOCK}/advance", body={"duration": "1h"})
    guest.close()
