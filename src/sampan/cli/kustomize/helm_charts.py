"""`helmCharts` of a kustomization: what `helm template` makes of a chart.

Job: the words for helm, its values file, and its documents. helm itself is the user's.
Invariant: helm is started only where --enable-helm was given, with a home of its own that goes
    afterwards.
"""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj, copy_of
from sampan.cli.errors import CliError
from sampan.cli.kustomize.loading import text_of
from sampan.cli.objects import documents
from sampan.cli.printers.yaml_text import to_yaml
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

_MERGES = ("merge", "override", "replace")
_VERSION = lazy_pattern(r"v?\d+(\.\d+)+")


@dataclass(frozen=True, slots=True)
class Helm:
    """What the command line says about it."""

    command: str = "helm"
    api_versions: tuple[str, ...] = ()
    kube_version: str = ""
    debug: bool = False


def inflated(chart: Obj, global_settings: Obj, folder: Path, helm: Helm | None) -> list[Obj]:
    """Raises CliError."""
    with tempfile.TemporaryDirectory(prefix="kustomize-helm-") as scratch:
        try:
            if helm is None:
                raise CliError("must specify --enable-helm")
            found = _Chart(chart, global_settings, folder, helm, Path(scratch))
        except CliError as error:
            settings = to_yaml({**global_settings, **chart})
            raise CliError(
                "trouble configuring builtin HelmChartInflationGenerator with config: "
                f"`\n{settings}`: {error}"
            ) from error
        return found.inflate()


class _Chart:
    def __init__(
        self, chart: Obj, global_settings: Obj, folder: Path, helm: Helm, scratch: Path
    ) -> None:
        self._chart, self._helm, self._scratch = chart, helm, scratch
        self._name = str(chart.get("name") or "")
        if not self._name:
            raise CliError("chart name cannot be empty")
        self._merge = chart.get("valuesMerge") or "override"
        if self._merge not in _MERGES:
            raise CliError(f"valuesMerge must be one of [{' '.join(_MERGES)}]")
        root = self._folder = Path(os.path.realpath(folder))
        home = root / str(global_settings.get("chartHome") or "charts")
        versioned = chart.get("version") and chart.get("repo")
        self._home = home / f"{self._name}-{chart['version']}" if versioned else home
        self._config_home = str(global_settings.get("configHome") or scratch / "helm")
        self._more_values = [
            str(root / name)
            for name in chart.get("additionalValuesFiles") or ()
            if self._read(name)
        ]

    def inflate(self) -> list[Obj]:
        self._check_version()
        place = self._home / self._name
        if not place.is_dir():
            if not self._chart.get("repo"):
                raise CliError("no repo specified for pull, no chart found at ''")
            self._run(self._pull_words())
        values = self._values_file(place)
        text = self._run(self._template_words(values))
        return [each for each in documents.documents(text.encode(), self._name, newer=True) if each]

    def _read(self, name: str) -> bool:
        try:
            text_of(self._folder, name)
        except CliError as error:
            raise CliError(f"could not load additionalValuesFile: {error}") from error
        return True

    def _check_version(self) -> None:
        said = self._run(["version", "-c", "--short"])
        found = _VERSION.search(said)
        if found is None:
            raise CliError(f"cannot find version string in {said}")
        version = found[0].removeprefix("v")
        if version.partition(".")[0] != "3":
            raise CliError(f"this plugin requires helm V3 but got v{version}")

    def _pull_words(self) -> list[str]:
        repo = str(self._chart["repo"])
        words = ["pull", "--untar", "--untardir", str(self._home)]
        if repo.startswith("oci://"):
            words.append(f"{repo.removesuffix('/')}/{self._name}")
        else:
            words += ["--repo", repo, self._name]
        if self._chart.get("version"):
            words += ["--version", str(self._chart["version"])]
        return [*words, "--devel"] if self._chart.get("devel") else words

    def _values_file(self, place: Path) -> str:
        given = self._chart.get("valuesFile")
        name = str(given or os.path.relpath(place / "values.yaml", self._folder))
        inline = self._chart.get("valuesInline") or {}
        text = "" if inline and self._merge == "replace" else text_of(self._folder, name)
        if inline:
            read = next(documents.documents(text.encode(), name, newer=True), None) or {}
            pair = (read, inline) if self._merge == "override" else (inline, read)
            text = to_yaml(inline if self._merge == "replace" else merged(*pair))
        path = self._scratch / f"{self._name}-kustomize-values.yaml"
        path.write_text(text)
        return str(path)

    def _template_words(self, values: str) -> list[str]:
        chart, release = self._chart, self._chart.get("releaseName")
        words = ["template", str(release) if release else "--generate-name"]
        words.append(str(self._home / self._name))
        for flag, field in (("--namespace", "namespace"), ("--name-template", "nameTemplate")):
            words += [flag, str(chart[field])] if chart.get(field) else []
        for file in (values, *self._more_values):
            words += ["-f", file]
        return [*words, *self._capability_words(), *_flags_of(chart, self._helm)]

    def _capability_words(self) -> list[str]:
        chart, helm, words = self._chart, self._helm, []
        for version in helm.api_versions or chart.get("apiVersions") or ():
            words += ["--api-versions", str(version)]
        kube_version = helm.kube_version or chart.get("kubeVersion")
        return [*words, "--kube-version", str(kube_version)] if kube_version else words

    def _run(self, words: Sequence[str]) -> str:
        home = self._config_home
        own = {
            "HELM_CONFIG_HOME": home,
            "HELM_CACHE_HOME": f"{home}/.cache",
            "HELM_DATA_HOME": f"{home}/.data",
        }
        command, why = self._helm.command, ""
        try:
            done = subprocess.run(
                [command, *words], env={**os.environ, **own}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode == 0:
                return done.stdout
            why, said = f"exit status {done.returncode}", done.stderr
        except OSError:
            why, said = f'exec: "{command}": executable file not found in $PATH', ""
        told = " ".join(f"{name}={value}" for name, value in own.items())
        said = f"{said}: " if said else ""
        raise CliError(
            f"{said}unable to run: '{command} {' '.join(words)}' with env=[{told}] "
            f"(is '{command}' installed?): {why}"
        )


def _flags_of(chart: Obj, helm: Helm) -> list[str]:
    given = {**chart, "debug": helm.debug or chart.get("debug")}
    flags = (("--include-crds", "includeCRDs"), ("--skip-tests", "skipTests"),
             ("--no-hooks", "skipHooks"), ("--debug", "debug"), ("--devel", "devel"))  # fmt: skip
    return [flag for flag, field in flags if given.get(field)]


def merged(under: Any, over: Any) -> Any:
    """Maps field by field, all else as `over` has it; null takes a field away."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return copy_of(over)
    found = {**under}
    for name, value in over.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(under[name], value) if name in under else copy_of(value)
    return found
