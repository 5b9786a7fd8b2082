"""What kubectl sends as protobuf is stored as what it sends as JSON. [A11]"""

import orjson
import pytest

from sampan.api.schema.published import Schema
from tests.support.parts.kubectl import Kubectl
from tests.support.parts.served_api import served_api

pytestmark = [pytest.mark.slow, pytest.mark.kubectl]

COMMANDS = [
    "configmap made --from-literal=a=b",
    "secret generic made --from-literal=a=b",
    "deployment made --image=app:1 --replicas=0",
    "deployment made --image=app:1 --replicas=3 --port=80",
    "job made --image=app:1 -- true",
    "cronjob made --image=app:1 --schedule=@daily -- true",
    "quota made --hard=cpu=1,pods=0",
    "service clusterip made --tcp=80:8080",
    "service nodeport made --tcp=80 --node-port=30999",
    "service externalname made --external-name=x.example.com",
    "service clusterip made --clusterip=None",
    "serviceaccount made",
    "role made --verb=get,list --resource=pods",
    "rolebinding made --role=made --serviceaccount=default:default",
    "ingress made --rule=x.example.com/a*=web:8080,tls=cert --default-backend=web:http",
    "poddisruptionbudget made --selector=a=b --min-available=0",
    "poddisruptionbudget made --selector=a=b --max-unavailable=50%",
    "clusterrole made --non-resource-url=/logs/* --verb=get",
    "clusterrolebinding made --clusterrole=made --user=u",
    "priorityclass made --value=0 --description=none",
    "priorityclass made --value=1000 --preemption-policy=Never",
]
OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
ALLOCATED = ("clusterIP", "clusterIPs")


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    with served_api(Schema.load(), place) as api:
        yield Kubectl(api.admin, place)


def made(kubectl, kind):
    """The object, without what the server alone decides; and it is gone afterwards."""
    text = kubectl("get", kind, "made", "-o", "json")
    kubectl("delete", kind, "made", "--wait=false")
    uid = orjson.loads(text)["metadata"]["uid"]
    obj = orjson.loads(text.replace(uid, "UID"))  # labels and selectors have it too
    obj.pop("status", None)
    for key in OWN:
        obj["metadata"].pop(key, None)
    for key in ALLOCATED:
        obj.get("spec", {}).pop(key, None)
    return obj


@pytest.mark.parametrize("command", COMMANDS)
def test_protobuf_and_json_store_the_same(kubectl, command):
    arguments = command.split(" ")
    kind = {"quota": "resourcequota"}.get(arguments[0], arguments[0])
    sent = kubectl("create", *arguments[:2], "--dry-run=client", "-o", "json", *arguments[2:])
    kubectl("create", *arguments)
    from_protobuf = made(kubectl, kind)
    kubectl("create", "-f", "-", stdin=sent)
    assert from_protobuf == made(kubectl, kind)
