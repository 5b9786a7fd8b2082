"""What Go's decoder says, as an original v1.35.8 said it."""

import pytest

from sampan.api.errors import BadRequest
from sampan.api.schema.decode_errors import element_of, inlined_names
from sampan.api.schema.message_table import load_messages
from sampan.api.schema.published import Schema

SCHEMA = Schema.load()
QUANTITY = "quantities must match the regular expression"


def refusal(api_version, kind, **body):
    with pytest.raises(BadRequest) as caught:
        SCHEMA.check(api_version, kind, body)
    return str(caught.value).partition(f"cannot be handled as a {kind}: ")[2]


def pod(**spec):
    return refusal("v1", "Pod", spec=spec)


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (lambda: refusal("v1", "Secret", type=5), "number into Go struct field Secret.type of type "
         "v1.SecretType"),
        (lambda: refusal("v1", "LimitRange", spec={"limits": [{"max": []}]}),
         "array into Go struct field LimitRangeItem.spec.limits.max of type v1.ResourceList"),
        (lambda: refusal("v1", "PersistentVolume", spec={"accessModes": [[]]}),
         "array into Go struct field PersistentVolumeSpec.spec.accessModes of type "
          "v1.PersistentVolumeAccessMode"),
        (lambda: refusal("v1", "PersistentVolumeClaim", spec={"accessModes": True}),
         "bool into Go struct field PersistentVolumeClaimSpec.spec.accessModes of type "
          "[]v1.PersistentVolumeAccessMode"),
        (lambda: refusal("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy",
                         spec={"matchConstraints": {"resourceRules": [{"apiVersions": [[]]}]}}),
         "array into Go struct field NamedRuleWithOperations.spec.matchConstraints.resourceRules."
         "RuleWithOperations.Rule.apiVersions of type string"),
        (lambda: pod(ephemeralContainers=[{"livenessProbe": {"periodSeconds": 1.0}}]),
         "number 1.0 into Go struct field Probe.spec.ephemeralContainers.EphemeralContainerCommon."
         "livenessProbe.periodSeconds of type int32"),
        (lambda: pod(containers=[{"livenessProbe": {"exec": []}}]),
         "array into Go struct field Probe.spec.containers.livenessProbe.ProbeHandler.exec of type "
          "v1.ExecAction"),
    ],
)  # fmt: skip
def test_types_have_their_own_names_and_embedded_structs_are_told(told, wanted):
    assert told() == f"json: cannot unmarshal {wanted}"


def test_the_first_wrong_value_is_told():
    assert pod(priority=1.5, nodeName=5).startswith("json: cannot unmarshal number 1.5")
    assert pod(nodeName=5, priority=1.5).startswith("json: cannot unmarshal number into")


def test_a_type_that_reads_itself_is_told_wherever_it_is():
    assert pod(priority=1.5, overhead={"cpu": []}).startswith(QUANTITY)
    assert pod(overhead={"cpu": "x y"}, priority=1.5).startswith(QUANTITY)
    port = {"name": "c", "livenessProbe": {"periodSeconds": "x", "tcpSocket": {"port": 1.5}}}
    assert pod(containers=[port]) == (
        "json: cannot unmarshal number 1.5 into Go struct field TCPSocketAction.spec.containers."
        "livenessProbe.ProbeHandler.tcpSocket.port of type int32"
    )
    body = {"spec": {"parallelism": 1.5}, "status": {"startTime": "x"}}
    assert refusal("batch/v1", "Job", **body).startswith('parsing time "x" as')


def test_bytes_are_read_like_any_value():
    assert (
        refusal("v1", "Secret", data={"a": "YQ="}, type=5) == "illegal base64 data at input byte 3"
    )
    assert refusal("v1", "Secret", type=5, data={"a": "YQ="}).endswith("v1.SecretType")


def test_elements_of_named_lists_and_maps():
    assert element_of("[]v1.OperationType") == "v1.OperationType"
    assert element_of("map[v1.QualifiedName]resource.Quantity") == "resource.Quantity"
    assert element_of("v1.ResourceList") == ""


def test_fields_of_embedded_structs_are_found():
    core = "io.k8s.api.core.v1"
    assert inlined_names(load_messages(), f"{core}.Volume", "emptyDir") == ("VolumeSource",)
    assert inlined_names(load_messages(), f"{core}.Volume", "name") == ()
