"""`kustomize build`: a folder to its objects.

Job: read a kustomization and what it names; generate and change, in kustomize's order; at the end
    names get their hashes, references their names, and all of it its order.
Invariant: a field that is not done here is refused by name, never left out in silence.
"""

import os
import posixpath
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj, annotations_of, copy_of
from sampan.cli.create.hashing import suffix
from sampan.cli.errors import CliError
from sampan.cli.kustomize import metadata, plugins
from sampan.cli.kustomize.crds import configuration_of
from sampan.cli.kustomize.custom_types import TYPES, types_of
from sampan.cli.kustomize.field_specs import FieldSpecs, defaults
from sampan.cli.kustomize.generators import absorb, generated, kinds
from sampan.cli.kustomize.helm_charts import Helm, inflated
from sampan.cli.kustomize.loading import OpenFolder, load, place_of, text_of
from sampan.cli.kustomize.name_references import mend_references
from sampan.cli.kustomize.resource import Resource
from sampan.cli.kustomize.shapes import CONFIGURATION, OBJECT, PLUGIN, check_shape
from sampan.cli.kustomize.sort_order import ordered
from sampan.cli.kustomize.variables import Variables
from sampan.cli.objects import documents

KNOWN = {
    "apiVersion", "kind", "metadata", "resources", "bases", "components", "namePrefix",
    "nameSuffix", "namespace", "commonLabels", "labels", "commonAnnotations", "configMapGenerator",
    "secretGenerator", "generatorOptions", "generators", "images", "replicas", "patches",
    "patchesStrategicMerge", "patchesJson6902", "replacements", "transformers", "configurations",
    "sortOptions", "vars", "helmCharts", "helmGlobals", "crds", "openapi", "validators",
    "buildMetadata",
}  # fmt: skip
# What kustomize does besides.
NOT_DONE = {"helmChartInflationGenerator", "imageTags"}
COMPONENT = "Component"
LOCAL = "config.kubernetes.io/local-config"


_DEPRECATED = {
    "bases": "resources", "commonLabels": "labels", "patchesJson6902": "patches",
    "patchesStrategicMerge": "patches", "vars": "replacements",
}  # fmt: skip
_FIX = "Run 'kustomize edit fix' to update your Kustomization automatically."
Warn = Callable[[str], None]


def build(folder: str, warn: Warn, helm: Helm | None = None, *, is_open: bool = False) -> list[Obj]:
    """`warn` is told of what is deprecated; `helm`: who may be asked for charts; `is_open`: files
    outside of the folder may be read. Raises CliError."""
    if not os.path.isdir(folder):
        raise CliError(
            f"must build at directory: not a valid directory: evalsymlink failure on '{folder}' : "
            f"lstat {folder}: no such file or directory"
        )
    place: Path = OpenFolder(folder) if is_open else Path(folder)
    target = Target(place, (os.path.realpath(folder),), warn, helm)
    found = target.accumulated(Accumulated())
    resources = found.resources
    for resource in resources:
        if resource.needs_hash:
            resource.remember()
            # As kustomize: the hash is of the content alone, whatever the name.
            text = suffix({**resource.obj, "metadata": {"name": ""}})
            resource.obj["metadata"]["name"] += f"-{text}"
    mend_references(resources, target.specs.name_references)
    found.variables.resolve(resources, target.specs.of("varReference"))
    kept = [each for each in resources if annotations_of(each.obj).get(LOCAL, "false") == "false"]
    metadata.noted(kept, target.config.get("buildMetadata") or ())
    return [each.obj for each in ordered(kept, target.config.get("sortOptions"))]


class Accumulated:
    """What has come together so far."""

    def __init__(self) -> None:
        self.resources: list[Resource] = []
        self.specs, self.variables = FieldSpecs(), Variables()

    def append(self, resource: Resource) -> None:
        if any(resource.id.is_same(each.id) for each in self.resources):
            raise CliError(f"may not add resource with an already registered id: {resource.id}")
        self.resources.append(resource)


class Target:
    def __init__(
        self, folder: Path, above: tuple[str, ...], warn: Warn, helm: Helm | None, here: str = ""
    ) -> None:
        """`above`: the folders that led here, which must not come again; `here`: from the topmost
        one. Raises CliError."""
        self._folder, self._above, self._warn, self._helm = folder, above, warn, helm
        self.config, path = load(folder)
        self._here, self._file = here, posixpath.join(here, path.name)
        self._types = types_of(self.config.get("openapi") or {}, folder)
        for field, instead in _DEPRECATED.items():
            if self.config.get(field) is not None:
                fix = f"[EXPERIMENTAL] {_FIX}" if field == "vars" else _FIX
                warn(f"# Warning: '{field}' is deprecated. Please use '{instead}' instead. {fix}")
        if unknown := sorted(set(self.config) - KNOWN - NOT_DONE):
            raise CliError(f'invalid Kustomization: json: unknown field "{unknown[0]}"')
        if left := sorted(set(self.config) & NOT_DONE):
            raise CliError(f"{path}: kustomization field(s) not supported: {', '.join(left)}")
        self.specs = defaults()

    def accumulated(self, found: Accumulated) -> Accumulated:
        """A component goes on with what its parent has. Raises CliError."""
        config = self.config
        for name in [*self._list("resources"), *self._list("bases")]:
            try:
                self._take(found, str(name))
            except CliError as error:
                raise CliError(f"accumulating resources: {error}") from error
        self._configure(found)
        options = config.get("generatorOptions") or {}
        for field, kind in kinds():
            for entry in self._list(field):
                made = generated(kind, entry, options, self._folder)
                made.origin = metadata.by_plugin(self._file, {"kind": f"{kind}Generator"})
                absorb(found.resources, made)
        for chart in self._list("helmCharts"):
            settings = config.get("helmGlobals") or {}
            for obj in inflated(chart, settings, self._folder, self._helm):
                charts = metadata.by_plugin(self._file, {"kind": "HelmChartInflationGenerator"})
                absorb(found.resources, Resource(obj, charts))
        for place, document in self._plugin_documents("generators"):
            made = plugins.generate(document, self._folder)
            made.origin = metadata.by_plugin(place, document)
            absorb(found.resources, made)
        for name in self._list("components"):
            self._component(found, str(name))
        for kind, settings in plugins.of_fields(config, self.specs):
            self._transform(found, kind, settings, metadata.by_plugin(self._file, {"kind": kind}))
        for place, document in self._plugin_documents("transformers"):
            plugins.check(document)
            note = metadata.by_plugin(place, document)
            self._transform(found, document["kind"], document, note)
        self._validate(found)
        found.variables.add(self._list("vars"), found.resources)
        return found

    def _validate(self, found: Accumulated) -> None:
        """By transformers that must not change anything."""
        for _, document in self._plugin_documents("validators"):
            plugins.check(document)
            copies = [Resource(copy_of(each.obj)) for each in found.resources]
            seen = plugins.transformed(copies, document["kind"], document, self._folder)
            if [each.obj for each in seen] != [each.obj for each in found.resources]:
                raise CliError("validator shouldn't modify the resource map")

    def _list(self, field: str) -> list[Any]:
        written = self.config.get(field) or []
        if not isinstance(written, list):
            raise CliError(f"invalid Kustomization: {field}: expected a list")
        return written

    def _configure(self, found: Accumulated) -> None:
        """The specs of whatever is below count here, too."""
        for name in self._list("configurations"):
            for document in _documents(text_of(self._folder, name), name):
                check_shape(document, CONFIGURATION, name)
                found.specs.add(document, name)
        names = self._list("crds")
        try:
            documents = [_documents(text_of(self._folder, name), name) for name in names]
        except CliError as error:
            raise CliError(f"loading CRDs [{' '.join(names)}]: {error}") from error
        for document in (each for some in documents for each in some):
            found.specs.add(configuration_of(document), "crds")
        self.specs.add_all(found.specs)

    def _transform(self, found: Accumulated, kind: str, settings: Obj, note: Sequence[str]) -> None:
        if self._types is not None:
            settings = {**settings, TYPES: self._types}
        found.resources = plugins.transformed(found.resources, kind, settings, self._folder)
        for resource in found.resources:
            resource.changes.append(note)

    def _take(self, found: Accumulated, name: str) -> None:
        if name.startswith(("http://", "https://", "git@", "ssh://")) or "//" in name:
            raise CliError(f"'{name}': resources of other hosts are not supported: fetch it first")
        place = Path(os.path.normpath(self._folder / name))
        if place.is_dir():
            try:
                self._take_folder(found, place, self._below(name))
            except CliError as error:
                raise CliError(
                    f"accumulation err='accumulating resources from '{name}': '{place.resolve()}' "
                    f"must resolve to a file': {error}"
                ) from error
            return
        doing = "accumulating resources from"
        try:
            objects = _objects(place_of(self._folder, name), name)
            doing = "merging resources from"
            origin = [f"path: {self._below(name)}"]
            for obj in objects:
                found.append(Resource(copy_of(obj), origin))
        except CliError as error:
            why = f"'{place.resolve()}': file is not directory"
            why = why if place.exists() else f"not a valid directory: {error}"
            raise CliError(
                f"accumulation err='{doing} '{name}': {error}': must build at directory: {why}"
            ) from error

    def _below(self, name: str) -> str:
        return posixpath.normpath(posixpath.join(self._here, name))

    def _take_folder(self, found: Accumulated, place: Path, here: str) -> None:
        above = self._entered(place)
        try:
            below = Target(self._opened(place), above, self._warn, self._helm, here)
        except CliError as error:
            raise CliError(f"couldn't make target for path '{place.resolve()}': {error}") from error
        if below.config.get("kind") == COMPONENT:
            raise CliError(f"expected kind != '{COMPONENT}' for path '{place.resolve()}'")
        try:
            part = below.accumulated(Accumulated())
        except CliError as error:
            raise CliError(f"recursed accumulation of path '{place.resolve()}': {error}") from error
        found.specs.add_all(part.specs)
        for resource in part.resources:
            found.append(resource)
        found.variables.add_all(part.variables)

    def _component(self, found: Accumulated, name: str) -> None:
        place = Path(os.path.normpath(self._folder / name))
        if not place.is_dir():
            raise CliError(f"accumulating components: '{name}' is no directory in {self._folder}")
        above, here = self._entered(place), self._below(name)
        below = Target(self._opened(place), above, self._warn, self._helm, here)
        kind = below.config.get("kind") or "Kustomization"
        if kind != COMPONENT:
            raise CliError(
                f"accumulating components: accumulateDirectory: \"expected kind '{COMPONENT}' for "
                f"path '{place.resolve()}' but got '{kind}'\""
            )
        below.accumulated(found)
        self.specs.add_all(found.specs)

    def _opened(self, place: Path) -> Path:
        return OpenFolder(place) if isinstance(self._folder, OpenFolder) else place

    def _entered(self, place: Path) -> tuple[str, ...]:
        real = os.path.realpath(place)
        for visited in reversed(self._above):
            if Path(visited).is_relative_to(real):
                raise CliError(
                    f"cycle detected: candidate root '{real}' contains visited root '{visited}'"
                )
        return (*self._above, real)

    def _plugin_documents(self, field: str) -> list[tuple[str, Obj]]:
        """Written in place, or in files and folders; each with its file."""
        found: list[tuple[str, Obj]] = []
        for entry in self._list(field):
            text = str(entry)
            if "\n" in text:
                found += [(self._file, each) for each in _documents(text, field)]
                continue
            place = place_of(self._folder, text)
            if place.is_dir():
                above, here = self._entered(place), self._below(text)
                target = Target(self._opened(place), above, self._warn, self._helm, here)
                below = target.accumulated(Accumulated())
                found += [(_file_of(each, here), each.obj) for each in below.resources]
            else:
                here = self._below(text)
                found += [(here, each) for each in _documents(place.read_text(), text)]
        for _, document in found:
            check_shape(document, PLUGIN, field)
        return found


def _file_of(resource: Resource, folder: str) -> str:
    return next((line.removeprefix("path: ") for line in resource.origin), folder)


def _documents(text: str, source: str) -> list[Obj]:
    """Raises CliError."""
    found = list(documents.documents(text.encode(), source, newer=True))
    for each in found:
        check_shape(each, OBJECT, source)
    return found


def _objects(place: Path, name: str) -> list[Obj]:
    """A list of objects is its items. Raises CliError."""
    found: list[Obj] = []
    for document in _documents(place.read_text(), name):
        is_list = str(document.get("kind") or "").endswith("List")
        items = document.get("items")
        found += items if is_list and isinstance(items, list) else [document]
    for obj in found:
        check_shape(obj, OBJECT, name)
        meta = obj.get("metadata") or {}
        for field, value in (("kind", obj.get("kind")), ("metadata.name", meta.get("name"))):
            if not value:
                kind = f"{obj.get('apiVersion') or ''} {obj.get('kind') or ''}"
                named = f"{meta.get('name') or ''} {meta.get('namespace') or ''}"
                raise CliError(
                    f"missing {field} in object {{{{{kind}}} {{{{{named}}} map[] map[]}}}}"
                )
    return found
