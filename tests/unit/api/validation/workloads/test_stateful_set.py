from sampan.api.validation.workloads.stateful_set import validate_stateful_set


def stateful_set(mount, *claims):
    container = {
        "name": "c",
        "image": "i",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"name": mount, "mountPath": "/data"}],
    }
    pod = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
    }
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {
        "metadata": {"name": "db"},
        "spec": {
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod},
            "volumeClaimTemplates": [
                {"metadata": {"name": name}, "spec": claim} for name in claims
            ],
        },
    }


def complaints(obj):
    errors = []
    validate_stateful_set(obj, errors)
    return [error.field for error in errors]


def test_a_mount_may_name_a_claim():
    assert complaints(stateful_set("data", "data", "logs")) == []


def test_a_mount_of_nothing_is_refused():
    assert complaints(stateful_set("other", "data")) == [
        "spec.template.spec.containers[0].volumeMounts[0].name"
    ]
