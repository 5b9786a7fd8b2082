"""What Go's encoders write, of every kind, beside the recorded answers of an original v1.35.

Fields that nobody set as null, empty lists and maps, structs without anything in them,
`creationTimestamp: null` and `status: {}`, zero times, numbers as texts and texts as numbers, bytes
that are none: one change each to a good object, sent as a dry run. What that led to: EndpointSlices
and their updates, names that are missing, fields that no example had (Windows options, sources of
volumes, counters of devices). Made again by
`python -m tests.support.api_sampling.record --steps tests/flow/recorded/go_encoders.jsonl.gz …`.
"""

from pathlib import Path

import pytest

from sampan.api.schema.published import Schema
from tests.support import virtual_time
from tests.support.api_sampling.replay import differences, recordings
from tests.support.api_sampling.servers import InProcess, settings
from tests.support.generators.api_requests import api_server

pytestmark = pytest.mark.kubernetes("1.35")  # which was asked

UNITS = recordings(Path(__file__).parent / "recorded" / "go_encoders.jsonl.gz")
EMPTY = "empty and missing are not told apart here"
DROPPED = "the original leaves out what it no longer serves"
NESTED = "the original names the struct that has them, too"
ZERO = "the original leaves out a zero time of what is answered and never stored"
SOURCE = "the original takes dataSource for dataSourceRef before it looks"
KEPT: dict[str, dict[str, str]] = {
    **{
        f"go-authorization.k8s.io-{kind}-v1": {"0:metadata.deletionTimestamp=zero": ZERO}
        for kind in ("LocalSubjectAccessReview", "SelfSubjectAccessReview", "SubjectAccessReview")
    },
    "go-apiextensions.k8s.io-CustomResourceDefinition-v1": {
        f"{base}:spec.versions.{version}.schema.openAPIV3Schema.{field}={{}}": EMPTY
        for base, version, field in (
            (0, 0, "dependencies"), (0, 0, "externalDocs"), (1, 0, "dependencies"),
            (1, 0, "externalDocs"), (1, 1, "externalDocs"),
        )
    },
    "go-admissionregistration.k8s.io-ValidatingAdmissionPolicy-v1": {
        "1:spec.variables.0.expression=empty": "the original compiles what uses it all the same"
    },
    "go-apps-DaemonSet-v1": {"0:spec.template.metadata.labels={}": EMPTY},
    "go-apps-Deployment-v1": {
        "0:spec.template.metadata.labels={}": EMPTY,
        "1:spec.template.metadata.labels={}": EMPTY,
    },
    "go-apps-ReplicaSet-v1": {"0:spec.template.metadata.labels={}": EMPTY},
    "go-apps-StatefulSet-v1": {
        "0:spec.template.metadata.labels={}": EMPTY,
        "0:spec.volumeClaimTemplates.0.apiVersion=number": NESTED,
        "0:spec.volumeClaimTemplates.0.kind=number": NESTED,
        "0:spec.volumeClaimTemplates.0.spec.dataSource={}": SOURCE,
        "0:spec.volumeClaimTemplates.0.spec.dataSourceRef={}": SOURCE,
    },
    "go-autoscaling-HorizontalPodAutoscaler-v2": {"1:spec.behavior.scaleDown.policies=[]": EMPTY},
    "go-batch-Job-v1": {
        "0:spec.template.metadata=null": "labels come when it is stored, and a dry run is not",
        "0:spec.template.metadata.labels=null": "labels come when it is stored",
        "0:spec.template.metadata.labels={}": "labels come when it is stored",
    },
    "go-events.k8s.io-Event-v1": dict.fromkeys(
        ("0:deprecatedFirstTimestamp=zero", "0:deprecatedLastTimestamp=zero"),
        "the original tells a zero time that was sent from none",
    ),
    "go-core-Node-v1": {"1:spec.configSource={}": DROPPED},
    "go-core-PersistentVolume-v1": {"0:spec.capacity={}": EMPTY, "1:spec.capacity={}": EMPTY},
    "go-core-PersistentVolumeClaim-v1": {
        "0:spec.dataSourceRef={}": SOURCE,
        "1:spec.dataSourceRef={}": SOURCE,
    },
    "go-core-Pod-v1": {"0:spec.overhead={}": EMPTY, "1:spec.overhead={}": EMPTY},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_recorded_unit_is_answered_as_the_original_does(unit):
    async def replayed():
        async with api_server(Schema.load(), settings=settings()) as api:
            return await differences(InProcess(api.server), UNITS[unit])

    found = virtual_time.run(replayed())
    kept = KEPT.get(unit, {})
    wrong = [one for one in found if one.step not in kept]
    assert not wrong, "\n".join(str(one) for one in wrong)
    assert {one.step for one in found} == set(kept), "a kept difference is gone"
