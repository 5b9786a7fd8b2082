"""helmCharts, as kubectl v1.35 (kustomize v5.7.1) asked a helm that only says what it was asked."""

import json
import re
from pathlib import Path

import pytest

from sampan.cli.errors import CliError
from sampan.cli.kustomize.build import build
from sampan.cli.kustomize.helm_charts import Helm, merged
from sampan.cli.printers.yaml_text import to_yaml

RECORDED = Path(__file__).parent / "recorded" / "helm_charts_v5.7.1.jsonl"
SURROUNDINGS, *CASES = map(json.loads, RECORDED.read_text().splitlines())


@pytest.fixture
def top(tmp_path, monkeypatch):
    for path, text in SURROUNDINGS["files"].items():
        place = tmp_path / "run" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    program = tmp_path / "bin" / "helm"
    program.parent.mkdir()
    program.write_text(SURROUNDINGS["helm"])
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return tmp_path


def helm_of(flags):
    """As the command line makes it."""
    if "--enable-helm" not in flags:
        return None
    given = list(zip(flags[1::2], flags[2::2], strict=True))
    return Helm(
        dict(given).get("--helm-command", "helm"),
        tuple(value for flag, value in given if flag == "--helm-api-versions"),
        dict(given).get("--helm-kube-version", ""),
    )


def told(text, top):
    return re.sub(r"/[^ ]*kustomize-helm-[^/ ]*", "TMP", text.replace(str(top), "TOP"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join([case["name"], *case["flags"]]))
def test_helm_is_asked_as_kustomize_asks_it(top, case):
    (top / "run" / "kustomization.yaml").write_text(case["kustomization"])
    run, helm = str(top / "run"), helm_of(case["flags"])
    if case["stdout"]:
        assert told("---\n".join(map(to_yaml, build(run, print, helm))), top) == case["stdout"]
        return
    with pytest.raises(CliError) as refused:
        build(run, print, helm)
    assert told(f"error: {refused.value}\n", top) == case["stderr"]


def test_values_merge_field_by_field():
    under = {"a": 1, "b": {"c": 2, "d": [1]}, "e": 3}
    over = {"b": {"c": 4, "d": [2]}, "e": None, "f": {"g": 1}}
    assert merged(under, over) == {"a": 1, "b": {"c": 4, "d": [2]}, "f": {"g": 1}}
    assert under == {"a": 1, "b": {"c": 2, "d": [1]}, "e": 3}
