import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.kubelet.container_spec.env_files import EnvText
from sampan.kubelet.container_spec.environment import (
    MOST_BYTES,
    ConfigError,
    Surroundings,
    environment,
    expand,
    field_value,
    program_room,
    resource_value,
)

AROUND = Surroundings(
    node_name="n1",
    node_ips=("192.0.2.1", "fd00::1"),
    pod_ips=("10.244.0.5", "fd00::5"),
    allocatable={"cpu": "1930m", "memory": "4Gi"},
)
POD = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "u1",
        "labels": {"tier": "front", "app": 'we"b'},
        "annotations": {"note": "two\nlines"},
    },
    "spec": {"nodeName": "n1", "serviceAccountName": "robot", "containers": []},
}
CONFIG = ("ConfigMap", "settings")
SECRET = ("Secret", "keys")
OBJECTS = {
    CONFIG: {"metadata": {"name": "settings"}, "data": {"COLOR": "blue", "with.dot": "yes"}},
    SECRET: {
        "metadata": {"name": "keys"},
        "data": {"TOKEN": base64.b64encode(b"s3cret").decode()},
    },
}


def env(*entries, sources=(), objects=OBJECTS, services=None):
    container = {"name": "c", "env": list(entries), "envFrom": list(sources)}
    around = AROUND
    if services:
        around = Surroundings(service_variables=services)
    return environment(POD, container, objects, around, program_room())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$(A)", "1"),
        ("$(A)$(B)", "12"),
        ("x$(A)y", "x1y"),
        ("$(missing)", "$(missing)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$(", "$("),
        ("$()", "$()"),
        ("$($(A))", "$($(A))"),
        ("$(A)-$", "1-$"),
        ("$(A))", "1)"),
        ("${A}", "${A}"),
        ("$$", "$"),
    ],
)
def test_expansion_is_upstream_s(text, expected):
    """[N10]"""
    assert expand(text, program_room(), {"A": "1", "B": "2"}.get) == expected


@given(st.text(alphabet="ab()", max_size=20))
def test_text_without_a_dollar_is_left_alone(text):
    assert expand(text, program_room(), {"a": "x"}.get) == text


@given(st.text(max_size=20))
def test_doubled_dollars_bring_any_text_through_unchanged(text):
    assert expand(text.replace("$", "$$"), program_room(), {"A": "1"}.get) == text


def test_a_variable_sees_those_before_it_and_not_those_after_it():
    found = env(
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(C)"},
        {"name": "C", "value": "3"},
    )
    assert found == {"A": "1", "B": "1$(C)", "C": "3"}


def test_env_beats_env_from_and_later_sources_beat_earlier_ones():
    found = env(
        {"name": "COLOR", "value": "red"},
        sources=[
            {"configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "keys"}, "prefix": "P_"},
        ],
    )
    assert found == {"COLOR": "red", "with.dot": "yes", "P_TOKEN": "s3cret"}


def test_services_come_last_and_can_be_referred_to():
    services = {"WEB_SERVICE_HOST": "10.96.0.7", "A": "never"}
    found = env(
        {"name": "A", "value": "mine"},
        {"name": "URL", "value": "http://$(WEB_SERVICE_HOST)"},
        services=services,
    )
    assert found == {"A": "mine", "URL": "http://10.96.0.7", "WEB_SERVICE_HOST": "10.96.0.7"}


def test_keys_of_config_maps_and_secrets_are_read():
    found = env(
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "COLOR"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "TOKEN"}}},
        {"name": "EMPTY"},
    )
    assert found == {"A": "blue", "B": "s3cret", "EMPTY": ""}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"configMapKeyRef": {"name": "nope", "key": "k"}}, 'configmap "nope" not found'),
        ({"secretKeyRef": {"name": "nope", "key": "k"}}, 'secret "nope" not found'),
        (
            {"configMapKeyRef": {"name": "settings", "key": "k"}},
            "couldn't find key k in ConfigMap shop/settings",
        ),
        (
            {"secretKeyRef": {"name": "keys", "key": "k"}},
            "couldn't find key k in Secret shop/keys",
        ),
        ({"fieldRef": {"fieldPath": "spec.color"}}, "unsupported fieldPath: spec.color"),
        ({"otherRef": {"path": "a"}}, "not supported"),
    ],
)
def test_a_reference_that_leads_nowhere_says_so(entry, message):
    """[N10]"""
    with pytest.raises(ConfigError, match=message):
        env({"name": "A", "valueFrom": entry})


def test_an_optional_reference_that_leads_nowhere_sets_nothing():
    found = env(
        {
            "name": "A",
            "valueFrom": {"secretKeyRef": {"name": "no", "key": "k", "optional": True}},
        },
        {
            "name": "B",
            "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k", "optional": True}},
        },
        sources=[{"configMapRef": {"name": "no", "optional": True}}],
    )
    assert found == {}


def test_a_missing_source_says_so():
    with pytest.raises(ConfigError, match='secret "no" not found'):
        env(sources=[{"secretRef": {"name": "no"}}])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-0"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u1"),
        ("metadata.labels['tier']", "front"),
        ("metadata.annotations['missing']", ""),
        ("metadata.labels", 'app="we\\"b"\ntier="front"'),
        ("metadata.annotations", 'note="two\\nlines"'),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "192.0.2.1"),
        ("status.hostIPs", "192.0.2.1,fd00::1"),
        ("status.podIP", "10.244.0.5"),
        ("status.podIPs", "10.244.0.5,fd00::5"),
    ],
)
def test_the_downward_api_knows_its_fields(path, value):
    assert field_value(POD, path, AROUND) == value


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("requests.cpu", "", "1"),
        ("requests.cpu", "1m", "250"),
        ("limits.cpu", "1m", "1930"),
        ("limits.memory", "", "134217728"),
        ("limits.memory", "1Mi", "128"),
        ("limits.memory", "100Mi", "2"),
        ("requests.memory", "", "0"),
    ],
)
def test_resources_are_rounded_up_to_the_divisor_and_the_node_is_the_last_limit(
    resource, divisor, value
):
    container = {
        "name": "c",
        "resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "128Mi"}},
    }
    selector = {"resource": resource, "divisor": divisor}
    assert resource_value(POD, container, selector, AROUND) == value


def test_a_pods_own_limit_goes_before_the_nodes():
    """[N10] What GOMEMLIMIT and -Xmx are made of."""
    whole = {"limits": {"memory": "64Mi", "cpu": "0"}, "requests": {"memory": "32Mi"}}
    pod = {**POD, "spec": {**POD["spec"], "resources": whole}}
    for selector, value in (
        ({"resource": "limits.memory", "divisor": "1Mi"}, "64"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1930"),
        ({"resource": "requests.memory"}, "0"),
    ):
        assert resource_value(pod, {"name": "c"}, selector, AROUND) == value
    own = {"name": "c", "resources": {"limits": {"memory": "16Mi"}}}
    assert resource_value(pod, own, {"resource": "limits.memory"}, AROUND) == str(16 << 20)


NO_SHAPE = 'environment variable key "SHAPE" not found in file "/v/e"'


@pytest.mark.parametrize(
    ("key", "optional", "text", "expected"),
    [
        ("COLOR", False, "COLOR='red'", {"X": "red"}),
        ("SHAPE", True, "COLOR='red'", {}),
        (
            "SHAPE",
            False,
            "COLOR='red'",
            NO_SHAPE,
        ),
        ("COLOR", True, "COLOR=red", "couldn't parse env file"),
        ("COLOR", True, None, "couldn't parse env file"),
    ],
)
def test_a_variable_may_come_from_a_file_of_a_volume(key, optional, text, expected):
    """[N10]"""
    reference = {"volumeName": "v", "path": "e", "key": key, "optional": optional}
    container = {"env": [{"name": "X", "valueFrom": {"fileKeyRef": reference}}]}
    around = Surroundings(files={("v", "e"): EnvText("/v/e", text)})
    if isinstance(expected, dict):
        assert environment(POD, container, {}, around, program_room()) == expected
    else:
        with pytest.raises(ConfigError) as error:
            environment(POD, container, {}, around, program_room())
        assert str(error.value) == expected
    with pytest.raises(ConfigError, match='cannot find the volume "v" referenced by FileKeyRef'):
        environment(POD, container, {}, Surroundings(), program_room())
    assert environment(POD, container, {}, Surroundings(pretends=True), program_room()) == {}


def test_resources_of_another_container_can_be_asked_for():
    other = {"name": "other", "resources": {"limits": {"memory": "1Gi"}}}
    pod = {**POD, "spec": {"containers": [other]}}
    selector = {"containerName": "other", "resource": "limits.memory", "divisor": "1Gi"}
    assert resource_value(pod, {"name": "c"}, selector, AROUND) == "1"
    with pytest.raises(ConfigError, match="container gone not found"):
        resource_value(pod, {}, {"containerName": "gone", "resource": "limits.cpu"}, AROUND)
    with pytest.raises(ConfigError, match=r"unsupported container resource : limits\.fun"):
        resource_value(pod, {}, {"resource": "limits.fun"}, AROUND)


def doubling(count):
    return [{"name": f"n{k + 1}", "value": f"$(n{k})$(n{k})x"} for k in range(count)]


LARGE = {"metadata": {"name": "large"}, "data": {"a": "x" * 1_000_000}}
SECRET = {"metadata": {"name": "large"}, "data": {"a": base64.b64encode(b"x" * 750_000).decode()}}
MANY_KEYS = {"secretKeyRef": {"name": "large", "key": "a"}}


@pytest.mark.parametrize(
    "container",
    [
        {"env": doubling(100)},
        {"env": [{"name": "A", "value": "x" * 100_000}, {"name": "B", "value": "$(A)" * 100_000}]},
        {"envFrom": [{"prefix": f"P{k}", "configMapRef": {"name": "large"}} for k in range(5_000)]},
        {"env": [{"name": f"n{k}", "valueFrom": MANY_KEYS} for k in range(5_000)]},
    ],
    ids=["doubling", "repeated", "envFrom", "keys"],
)
def test_a_short_pod_does_not_name_an_environment_without_end(container):
    objects = {("ConfigMap", "large"): LARGE, ("Secret", "large"): SECRET}
    with pytest.raises(ConfigError, match="environment and arguments of the container have more"):
        environment(POD, container, objects, AROUND, program_room())


def test_arguments_share_the_room_of_the_environment():
    room = program_room()
    for _ in range(MOST_BYTES // 200_000):
        expand("$(A)", room, {"A": "x" * 190_000}.get)
    with pytest.raises(ConfigError):
        expand("$(A)" * 10, room, {"A": "x" * 190_000}.get)


@pytest.mark.parametrize("text", ["$(" * 300_000, "$(" * 300_000 + "$$", "$" * 600_000])
def test_what_is_opened_and_never_closed_costs_by_its_length(text):
    found = expand(text, program_room(), {}.get)
    assert found == text.replace("$$", "$")


def test_labels_in_files_are_quoted_as_go_does():
    shown = {"a": 'x"\\y', "b": "\n\t\a\x01\x7f", "c": "\u200b\U000e0001", "d": "ü"}
    pod = {"metadata": {"annotations": shown}}
    assert field_value(pod, "metadata.annotations", AROUND) == "\n".join((
        'a="x\\"\\\\y"', 'b="\\n\\t\\a\\x01\\x7f"', 'c="\\u200b\\U000e0001"', 'd="ü"',
    ))  # fmt: skip
