"""Kustomizations, built as kubectl v1.35 (kustomize v5.7.1) built them when it was asked."""

import gzip
import json
import re
from pathlib import Path

import pytest

from sampan.cli.errors import CliError
from sampan.cli.kustomize.build import build
from sampan.cli.printers.yaml_text import to_yaml

RECORDED = Path(__file__).parent / "recorded" / "kustomize_v5.7.1.jsonl.gz"
CASES = {
    case["name"]: case
    for case in map(json.loads, gzip.decompress(RECORDED.read_bytes()).splitlines())
}
# What it says there is of its own insides: addresses of memory, the settings of a plugin.
OTHER_WORDS = re.compile(
    r"0xc0|trouble configuring|MalformedYAMLError|Unable to remove|previousNames"
)


def write(top, files):
    for path, text in files.items():
        place = top / "run" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (top / "outside.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: o}\n")
    return str(top / "run")


def built(folder):
    return "---\n".join(to_yaml(obj) for obj in build(folder, print))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["stdout"]])
def test_objects_are_those_of_kustomize(tmp_path, name):
    assert built(write(tmp_path, CASES[name]["files"])) == CASES[name]["stdout"]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case["stdout"]])
def test_mistakes_are_told_in_the_words_of_kustomize(tmp_path, name):
    said = CASES[name]["stderr"]
    with pytest.raises(CliError) as told:
        built(write(tmp_path, CASES[name]["files"]))
    if not OTHER_WORDS.search(said):
        assert f"error: {str(told.value).replace(str(tmp_path), 'TOP')}\n" == said


@pytest.mark.parametrize("field", ["helmChartInflationGenerator", "imageTags"])
def test_what_is_not_done_is_refused_by_name(tmp_path, field):
    folder = write(tmp_path, {"kustomization.yaml": f"{field}: []\n"})
    with pytest.raises(CliError, match=re.escape(f"field(s) not supported: {field}")):
        build(folder, print)


def test_a_validator_that_changes_something_is_refused(tmp_path):
    label = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: v}\n"
    label += "labels: {a: b}\nfieldSpecs: [{path: metadata/labels, create: true}]\n"
    files = {
        "kustomization.yaml": "resources: [cm.yaml]\nvalidators: [v.yaml]\n",
        "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
        "v.yaml": label,
    }
    with pytest.raises(CliError, match="validator shouldn't modify the resource map"):
        build(write(tmp_path, files), print)


def test_files_outside_are_read_where_it_is_asked_for(tmp_path):
    files = {
        "kustomization.yaml": "resources: [base, ../outside.yaml]\n",
        "base/kustomization.yaml": "configMapGenerator: [{name: g, files: [../../outside.yaml]}]\n",
    }
    folder = write(tmp_path, files)
    with pytest.raises(CliError, match="security; file"):
        build(folder, print)
    found = build(folder, print, is_open=True)
    assert [obj["metadata"]["name"].partition("-")[0] for obj in found] == ["g", "o"]
    assert list(found[0]["data"]) == ["outside.yaml"]


def test_resources_of_other_hosts_are_refused(tmp_path):
    url = "https://example.com/org/repo//config?ref=v1"
    folder = write(tmp_path, {"kustomization.yaml": f"resources: ['{url}']\n"})
    with pytest.raises(CliError, match="resources of other hosts are not supported"):
        build(folder, print)


def test_deprecated_fields_are_told_of_in_the_words_of_kustomize(tmp_path):
    files = {
        "kustomization.yaml": "commonLabels: {a: b}\nbases: [base]\n",
        "base/kustomization.yaml": "resources: []\npatchesStrategicMerge: []\n",
    }
    told = []
    build(write(tmp_path, files), told.append)
    fix = "Run 'kustomize edit fix' to update your Kustomization automatically."
    assert told == [
        f"# Warning: '{field}' is deprecated. Please use '{instead}' instead. {fix}"
        for field, instead in (
            ("bases", "resources"),
            ("commonLabels", "labels"),
            ("patchesStrategicMerge", "patches"),
        )
    ]


BASE = "resources: [base.yaml]\n"
LED_OUT = {
    "resources": "resources: [{}]",
    "files of a config": "configMapGenerator: [{{name: x, files: [{}]}}]",
    "files by key": "configMapGenerator: [{{name: x, files: ['k={}']}}]",
    "variables of a config": "configMapGenerator: [{{name: x, envs: [{}]}}]",
    "files of a secret": "secretGenerator: [{{name: x, files: [{}]}}]",
    "patches": BASE + "patches: [{{path: {}}}]",
    "patches of before": BASE + "patchesStrategicMerge: [{}]",
    "replacements": BASE + "replacements: [{{path: {}}}]",
    "crds": BASE + "crds: [{}]",
    "openapi": BASE + "openapi: {{path: {}}}",
    "configurations": BASE + "configurations: [{}]",
    "transformers": BASE + "transformers: [{}]",
    "generators": "generators: [{}]",
    "validators": BASE + "validators: [{}]",
}


@pytest.mark.parametrize("way", ["../outside.yaml", "link.yaml", "in/outside.yaml", "device"])
@pytest.mark.parametrize("field", LED_OUT)
def test_no_field_reads_a_file_outside(tmp_path, field, way):
    """By a path, by a link to it, through a folder that is a link, or to what is no file."""
    base = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\n"
    files = {"kustomization.yaml": LED_OUT[field].format(way), "base.yaml": base}
    folder = Path(write(tmp_path, files))
    (folder / "link.yaml").symlink_to("../outside.yaml")
    (folder / "in").symlink_to("..")
    (folder / "device").symlink_to("/dev/zero")
    with pytest.raises(CliError, match="security; file"):
        built(str(folder))
