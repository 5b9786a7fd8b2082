"""Disks of in-tree plugins as CSI volumes.

in_tree_volumes.jsonl.gz: volumes drawn at random, and what Kubernetes' own csi-translation-lib
(v1.35.8) made of them; without those that it panics at (a pod's own vSphere disk with a policy).
"""

import gzip
from pathlib import Path

import orjson

from sampan.api.rules.volumes.in_tree_volumes import (
    IN_TREE,
    NotTranslated,
    driver_instead_of,
    source_of,
    translated_inline,
    translated_volume,
)

RECORDED = gzip.decompress(Path(__file__).with_name("in_tree_volumes.jsonl.gz").read_bytes())


def without_empty(value):
    """Go leaves them out, or writes them as nothing."""
    if isinstance(value, dict):
        found = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item not in ({}, [], None)}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def translated(case):
    try:
        if "pv" in case:
            made = translated_volume(case["pv"])
        else:
            made = translated_inline(case["volume"], case["namespace"])
    except NotTranslated as error:
        return {"error": str(error).removeprefix("failed to translate in-tree pv to CSI: ")}
    return {"pv": {"metadata": made["metadata"], "spec": made["spec"]}}


def test_volumes_are_translated_as_recorded():
    cases = [orjson.loads(line) for line in RECORDED.splitlines()]
    assert len(cases) > 800
    differing = [
        (case["in"], translated(case["in"]), case["out"])
        for case in cases
        if without_empty(translated(case["in"])) != without_empty(case["out"])
    ]
    assert differing[:3] == []


def test_translating_changes_nothing_that_was_given():
    case = orjson.loads(RECORDED.splitlines()[0])["in"]["pv"]
    before = orjson.dumps(case)
    translated_volume(case)
    assert orjson.dumps(case) == before


def test_a_volume_of_another_type_stays_as_it_is():
    volume = {"metadata": {"name": "pv"}, "spec": {"nfs": {"server": "s", "path": "/"}}}
    assert source_of(volume["spec"]) == ""
    assert translated_volume(volume) is volume


def test_a_plugin_has_one_driver_instead():
    assert driver_instead_of("kubernetes.io/aws-ebs") == "ebs.csi.aws.com"
    assert driver_instead_of("kubernetes.io/no-provisioner") == ""
    assert driver_instead_of("ebs.csi.aws.com") == ""
    assert len({each.driver for each in IN_TREE.values()}) == len(IN_TREE) == 7
