from sampan.cmd.snapshot.differences import differences


def deployment(replicas=1, name="web", **status):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": "5"},
        "spec": {"replicas": replicas},
        "status": status,
    }


def lines(before, after):
    return [line for item in differences(before, after) for line in item.lines()]


def test_what_came_went_and_changed():
    assert lines(
        [deployment(), deployment(name="old")], [deployment(3), deployment(name="new")]
    ) == [
        "+ Deployment shop/new",
        "- Deployment shop/old",
        "~ Deployment shop/web",
        "    spec.replicas: 1 → 3",
    ]


def test_what_is_restless_is_no_difference():
    later = deployment()
    later["metadata"] |= {"resourceVersion": "9", "managedFields": [{"manager": "m"}]}
    lease = {"kind": "Lease", "metadata": {"name": "l"}, "spec": {"renewTime": "1"}}
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2"}
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [beat]}}
    older = {**node, "status": {"conditions": [{**beat, "lastHeartbeatTime": "1"}]}}
    assert lines([deployment(), older], [later, node, lease]) == []


def test_conditions_are_known_by_their_type_wherever_they_stand():
    a, b = {"type": "A", "status": "True"}, {"type": "B", "status": "True"}
    before, after = deployment(conditions=[a, b]), deployment(conditions=[{**b, "status": "x"}, a])
    assert lines([before], [after]) == [
        "~ Deployment shop/web",
        "    status.conditions[B].status: True → x",
    ]
