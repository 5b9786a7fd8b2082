"""Fields behind gates that are off go when an object is written, unless the stored one has them."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.gated_fields.dropping import GATES, dropping
from sampan.api.gated_fields.paths import Place, clear, holders, is_there, is_used, place_of
from sampan.api.gated_fields.table import FIELDS, POD_FIELDS, POD_SPECS
from sampan.api.objects import copy_of
from sampan.api.schema.published import Schema
from sampan.core.files.packaged_data import packaged_data
from sampan.version import MINORS
from tests.support.releases import rows_of


def written(kind, new, old=None, **gates):
    """What is left of an object in v1.35."""
    with features.used(Release("1.35", gates=gates)):
        drop = dropping(kind)
        new = copy_of(new)
        if drop is not None:
            drop(new, old)
        return new


def pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


def test_places_lead_through_lists_and_maps_and_past_what_has_another_shape():
    obj = {"spec": {"a": [{"x": 1}, 5, {"b": {"k": {"x": 2}}}], "c": "text"}}
    assert holders(obj, place_of("spec.a[].x").way) == [{"x": 1}, obj["spec"]["a"][2]]
    assert holders(obj, place_of("spec.a[].b{}.x").way) == [{"x": 2}]
    assert holders(obj, place_of("spec.c[].x").way) == []
    assert is_there(obj, place_of("spec.a[].x"))
    assert not is_there(obj, place_of("spec.a[].y"))


def test_places_are_found_through_lists_and_maps():
    place = place_of("spec.devices[].capacity{}.requestPolicy")
    assert place == Place((("spec", ""), ("devices", "[]"), ("capacity", "{}")), "requestPolicy")
    obj = {"spec": {"devices": [{"capacity": {"a": {"requestPolicy": 1}, "b": {}}}, {}]}}
    assert len(list(holders(obj, place.way))) == 2
    assert is_used(obj, [place])
    clear(obj, place)
    assert not is_used(obj, [place])
    assert obj == {"spec": {"devices": [{"capacity": {"a": {}, "b": {}}}, {}]}}


def test_what_has_another_shape_is_left_to_validation():
    place = place_of("spec.devices[].capacity{}.requestPolicy")
    for odd in (
        {},
        {"spec": 1},
        {"spec": {"devices": "x"}},
        {"spec": {"devices": [{"capacity": 1}]}},
    ):
        assert list(holders(odd, place.way)) == []


def test_a_stop_signal_goes_with_a_lifecycle_that_says_nothing_else():
    """[V2]"""
    quiet = {"name": "a", "lifecycle": {"stopSignal": "SIGUSR1"}}
    busy = {"name": "b", "lifecycle": {"stopSignal": "SIGUSR1", "preStop": {"sleep": {}}}}
    assert written("pods", pod(quiet, busy)) == pod(
        {"name": "a"}, {"name": "b", "lifecycle": {"preStop": {"sleep": {}}}}
    )
    assert written("pods", pod(quiet), ContainerStopSignals=True) == pod(quiet)
    assert written("pods", pod(quiet), pod(quiet)) == pod(quiet), "it is in use"


@pytest.mark.parametrize("kind", POD_SPECS)
def test_a_template_loses_what_a_pod_loses(kind):
    def wrapped(spec):
        for key in reversed(POD_SPECS[kind].split(".")):
            spec = {key: spec}
        return spec

    bundle = {"projected": {"sources": [{"clusterTrustBundle": {"name": "x"}, "secret": {}}]}}
    left = {"projected": {"sources": [{"secret": {}}]}}
    assert written(kind, wrapped({"volumes": [bundle]})) == wrapped({"volumes": [left]})


def test_without_restart_rules_a_sidecar_stays_one():
    rules = [{"action": "Restart"}]
    spec = {
        "containers": [{"restartPolicy": "Always", "restartPolicyRules": rules}],
        "initContainers": [{"restartPolicy": "Always"}, {"restartPolicy": "Never"}],
    }
    assert written("pods", {"spec": spec}) == {"spec": spec}
    assert written("pods", {"spec": spec}, ContainerRestartRules=False) == {
        "spec": {"containers": [{}], "initContainers": [{"restartPolicy": "Always"}, {}]}
    }


def test_an_image_volume_goes_with_its_mounts():
    both, one = [{"name": "i"}, {"name": "e"}], [{"name": "i"}]
    spec = {
        "containers": [{"volumeMounts": both}, {"volumeMounts": one}],
        "volumes": [{"name": "i", "image": {"reference": "x"}}, {"name": "e", "emptyDir": {}}],
    }
    assert written("pods", {"spec": spec}, ImageVolume=False) == {
        "spec": {
            "containers": [{"volumeMounts": [{"name": "e"}]}, {}],
            "volumes": [{"name": "e", "emptyDir": {}}],
        }
    }


def test_devices_lose_what_their_gates_are_off_for():
    taints = {"spec": {"devices": [{"name": "a", "taints": [{"key": "x"}]}]}}
    kind = "resourceslices.resource.k8s.io"
    assert written(kind, taints) == {"spec": {"devices": [{"name": "a"}]}}
    assert written(kind, taints, taints) == taints


def test_a_kind_of_which_nothing_is_off_costs_nothing():
    with features.used(Release("1.35")):
        assert dropping("configmaps") is None
        assert dropping("poddisruptionbudgets.policy") is None


def test_every_gate_of_the_table_is_one():
    assert packaged_data("gates")["gates"].keys() >= GATES


def reaches(schema, name, way, field):
    fields = schema.fields_of(name)
    if not way:
        return field in fields
    key, _ = way[0]
    kind = fields.get(key)
    while kind is not None and kind.element is not None:
        kind = kind.element
    return (
        kind is not None and kind.shape == "object" and reaches(schema, kind.name, way[1:], field)
    )


def test_every_place_is_one_of_a_version():
    """A place that no version has is a mistake in the table."""
    types = {minor: (Schema.load(minor), rows_of(minor)) for minor in MINORS}
    places = {(kind, path) for table in FIELDS.values() for kind in table for path in table[kind]}
    places |= {("pods", f"spec.{path}") for paths in POD_FIELDS.values() for path in paths}

    def is_known(kind, path):
        place = place_of(path)
        return any(
            reaches(schema, schema.name_of(row.api_version, row.kind), place.way, place.field)
            for schema, rows in types.values()
            for row in rows
            if row.group_resource == kind
        )

    assert [(kind, path) for kind, path in sorted(places) if not is_known(kind, path)] == []
