"""Rows of access rules, admission and flow control."""

from sampan.apiserver.printers import access

NOW = 1_700_000_000.0


def test_bindings_group_their_subjects():
    subjects = [
        {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "namespace": "n", "name": "s"}, {"kind": "User", "name": "v"},
    ]  # fmt: skip
    obj = {"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": subjects}
    assert access.BINDINGS.cells(obj, NOW)[1:] == [
        "ClusterRole/view", "<unknown>", "u, v", "g", "n/s",
    ]  # fmt: skip


def test_signing_requests():
    obj = {
        "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
        "status": {"conditions": [{"type": "Approved"}], "certificate": "YQ=="},
    }
    assert access.SIGNING_REQUESTS.cells(obj, NOW)[2:] == ["s", "u", "60m", "Approved,Issued"]
    assert access.SIGNING_REQUESTS.cells({}, NOW)[5] == "Pending"


def test_admission_and_flow_control():
    assert access.WEBHOOKS.cells({"webhooks": [{}, {}]}, NOW)[1] == 2
    policy = {"spec": {"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}
    assert access.POLICIES.cells(policy, NOW)[1:3] == [1, "v1/ConfigMap"]
    level = {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5}}}
    assert access.PRIORITY_LEVELS.cells(level, NOW)[1:4] == ["Limited", 5, "<none>"]
    schema = {"spec": {"priorityLevelConfiguration": {"name": "l"}, "matchingPrecedence": 9}}
    assert access.FLOW_SCHEMAS.cells(schema, NOW)[1:4] == ["l", 9, "<none>"]


def test_api_services_are_local_or_somewhere():
    assert access.API_SERVICES.cells({}, NOW)[1:3] == ["Local", "Unknown"]
    broken = {"type": "Available", "status": "False", "reason": "MissingEndpoints"}
    obj = {"spec": {"service": {"namespace": "n", "name": "s"}}, "status": {"conditions": [broken]}}
    assert access.API_SERVICES.cells(obj, NOW)[1:3] == ["n/s", "False (MissingEndpoints)"]
