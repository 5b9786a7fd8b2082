"""Feature gates: what is known, what can be set, and what upstream says where it cannot."""

import pytest

from sampan.api import feature_gates
from sampan.api.feature_gates import BadFeatureGates, gates_of, parse_gates, settle
from sampan.version import MINORS


def refused(minor, text, emulated=""):
    with pytest.raises(BadFeatureGates) as error:
        settle(minor, parse_gates(text), emulated)
    return str(error.value)


# As kube-apiserver v1.35.8 says them.
@pytest.mark.parametrize(("given", "said"), [
    ("Foo=true", "unrecognized feature gate: Foo"),
    ("Foo=true,Bar=true", "unrecognized feature gate: Foo"),
    ("kube:Foo=true", "unrecognized feature gate: Foo"),
    ("x:Foo=true", "component not registered: x"),
    ("HPAScaleToZero", "missing bool value for HPAScaleToZero"),
    ("HPAScaleToZero=maybe",
     'invalid value of HPAScaleToZero=maybe, err: strconv.ParseBool: parsing "maybe": invalid '
     "syntax"),
    ("NodeSwap=false", "cannot set feature gate NodeSwap to false, feature is locked to true"),
    ("NodeSwap=false,SidecarContainers=false",
     "[cannot set feature gate NodeSwap to false, feature is locked to true, "
     "cannot set feature gate SidecarContainers to false, feature is locked to true]"),
    ("kube:A=true,B=true",
     "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix "
     "use"),
])  # fmt: skip
def test_what_cannot_be_set_is_told_in_upstreams_words(given, said):
    assert refused("1.35", given) == said


def test_what_a_gate_needs_must_be_on():
    said = refused("1.35", "DRADeviceTaintRules=true")
    assert (
        "DRADeviceTaintRules is enabled, but depends on features that are disabled: "
        "[DRADeviceTaints]" in said
    )
    # v1.34 did not look.
    assert "depends" not in refused("1.34", "UserNamespacesPodSecurityStandards=true")


def test_a_gate_that_is_not_there_is_refused_by_name():
    said = refused("1.35", "CBORServingAndStorage=true")
    assert said == (
        "feature gate CBORServingAndStorage cannot be set to true: sampan does not have it"
    )


def test_a_gate_of_a_later_version_is_unknown_or_pre_alpha():
    assert refused("1.35", "HPAGeneration=true") == "unrecognized feature gate: HPAGeneration"
    assert refused("1.37", "HPAGeneration=true", emulated="1.36") == (
        "cannot set feature gate HPAGeneration to true, feature is PreAlpha at emulated version "
        "1.36, min compatibility version 1.35"
    )


def test_a_stage_as_a_whole_counts_less_than_one_gate_and_names_what_it_cannot_change():
    settled = settle("1.36", parse_gates("AllAlpha=true,EventedPLEG=false,APIServingWithRoutine=1"))
    assert "EventedPLEG" not in settled.on
    assert "APIServingWithRoutine" in settled.on
    assert "CBORServingAndStorage" in settled.left
    assert "CBORServingAndStorage" not in settled.on


def test_a_gate_that_a_version_no_longer_knows_stays_what_it_became():
    assert not gates_of("1.37")["SidecarContainers"].can_be_set
    assert "SidecarContainers" in settle("1.37", {}).on


@pytest.mark.parametrize("minor", MINORS)
def test_every_version_settles_and_what_it_does_is_what_the_table_says(minor):
    settled = settle(minor, {})
    assert settled.left == ()
    for name, gate in gates_of(minor).items():
        expected = gate.default if gate.can_be(gate.default) else not gate.default
        assert (name in settled.on) is expected
        assert all(need in gates_of(minor) for need in gate.needs), name


def test_what_is_in_the_table_is_read_as_it_is():
    for row in feature_gates.packaged_data("gates")["gates"].values():
        since = [feature_gates.number_of(entry[0]) for entry in row["history"]]
        assert since == sorted(since)
        assert {entry[1] for entry in row["history"]} <= {"Alpha", "Beta", "GA", "Deprecated"}
