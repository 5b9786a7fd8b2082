"""The build step: the published API definitions of each Kubernetes version, compiled into files.

Job: read the definitions from the build requirement, keep what sampan uses, write
    src/sampan/api/schema/definitions.json.z for the default version, and beside it for each other
    one what is different there, definitions-1.36.json.z. Runs with every build of the package and
    editable install; by hand: `python setup.py definitions`. Beside it the man page, made of
    docs/cli.md, the documentation as pages, and the README as an index shows it.
Invariant: a file is two zlib streams in a row: {"index": {"apps/v1 Deployment": name},
    "definitions": {name: JSON text}}, and {name: [text, {field: text}]}, which is read only when
    somebody asks for an explanation. Of a difference, null is what that version does not have.
"""

import importlib.util
import json
import os
import re
import runpy
import zlib
from pathlib import Path
from typing import Any

from setuptools import Command, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
VERSIONS = runpy.run_path(str(HERE / "src/sampan/version.py"))
MINORS, DEFAULT = VERSIONS["MINORS"], VERSIONS["DEFAULT_MINOR"]
FOLDER = HERE / "src/sampan/api/schema"
SITE = HERE / "src/sampan/data/docs.zip"

KEPT = (
    "format",
    "required",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
)
# The types that decode themselves: the published schema says what they are in prose.
SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"format": "quantity"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"format": "int-or-string"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": {"type": "string", "format": "micro-time"},
}


def target(minor: str) -> Path:
    return FOLDER / ("definitions.json.z" if minor == DEFAULT else f"definitions-{minor}.json.z")


def published() -> Path | None:
    """Where the build requirement has the definitions; None where it is not installed."""
    found = importlib.util.find_spec("kubernetes_validate")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "kubernetes-json-schema"


def trimmed(schema: dict[str, Any]) -> dict[str, Any]:
    """One schema without prose, without null as a type, with references by name."""
    kept = {key: schema[key] for key in KEPT if key in schema}
    if "$ref" in schema:
        kept["$ref"] = schema["$ref"].removeprefix("#/$defs/")
    if "type" in schema:
        kinds = schema["type"]
        kept["type"] = kinds if isinstance(kinds, str) else kinds[0]
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            kept[inner] = trimmed(schema[inner])
    if "properties" in schema:
        kept["properties"] = {name: trimmed(one) for name, one in schema["properties"].items()}
    return kept


def explained(schema: dict[str, Any]) -> list[Any]:
    fields = schema.get("properties", {})
    texts = {name: one["description"] for name, one in fields.items() if one.get("description")}
    return [schema.get("description", ""), texts]


def index_of(definitions: dict[str, Any]) -> dict[str, str]:
    index = {}
    for name, schema in definitions.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            group = f"{gvk['group']}/" if gvk["group"] else ""
            index[f"{group}{gvk['version']} {gvk['kind']}"] = name
    return index


def parts_of(definitions: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The structure, and the prose."""
    texts = {
        name: json.dumps(SPECIAL.get(name) or trimmed(schema), separators=(",", ":"))
        for name, schema in sorted(definitions.items())
    }
    structure = {"index": index_of(definitions), "definitions": texts}
    return structure, {name: explained(schema) for name, schema in sorted(definitions.items())}


def difference(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What must be laid over `base` to have `other`."""
    changed = {key: value for key, value in other.items() if base.get(key) != value}
    return changed | dict.fromkeys(key for key in base if key not in other)


def written(*parts: dict[str, Any]) -> bytes:
    return b"".join(
        zlib.compress(json.dumps(part, separators=(",", ":")).encode(), 9) for part in parts
    )


def write_definitions() -> None:
    source = published()
    if source is None:
        if all(target(minor).exists() for minor in MINORS):
            return  # built from a source archive that already carries the files
        raise SystemExit("kubernetes-validate is needed to build sampan: pip install it first")
    made = {}
    for minor in MINORS:
        path = source / f"v{minor}.0-local" / "_definitions.json"
        made[minor] = parts_of(json.loads(path.read_text())["$defs"])
    structure, prose = made.pop(DEFAULT)
    target(DEFAULT).write_bytes(written(structure, prose))
    for minor, (other, texts) in made.items():
        changes = {key: difference(structure[key], other[key]) for key in structure}
        target(minor).write_bytes(written(changes, difference(prose, texts)))


def write_site() -> None:
    """For `sampan docs`; as the definitions, where the build requirement is there."""
    if importlib.util.find_spec("markdown_it") is None:
        return
    url = os.environ.get("SAMPAN_URL", "").rstrip("/")
    SITE.write_bytes(site(f"{url}/blob/v{VERSIONS['VERSION']}" if url else ""))


def site(url: str) -> bytes:
    """`url`: where the files of the repository are, for links to those that are no pages."""
    from markdown_it import MarkdownIt

    make = runpy.run_path(str(HERE / "tools/docs_site.py"))["site"]
    made: bytes = make(HERE, MarkdownIt("commonmark", {"html": False}).enable("table"), url)
    return made


class Definitions(Command):
    """compile the API definitions into the source tree"""

    user_options: list[tuple[str, str, str]] = []  # noqa: RUF012  # distutils wants a list

    def initialize_options(self) -> None:
        pass

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        write_definitions()


class Site(Definitions):
    """make the pages of the documentation"""

    def run(self) -> None:
        write_site()


class BuildPy(build_py):
    """Before the package is collected, so that the files are collected with it."""

    def run(self) -> None:
        write_definitions()
        write_site()
        super().run()
        if not self.editable_mode:
            # The lesson of `sampan tour` is ARCHITECTURE.md's own text.
            document = Path(__file__).parent / "ARCHITECTURE.md"
            self.copy_file(str(document), f"{self.build_lib}/sampan/cmd/tour/{document.name}")


def man_page() -> list[tuple[str, list[str]]]:
    """Where it is installed, and where it was written: below build/, as all that is made."""
    make = runpy.run_path(str(HERE / "src/sampan/cmd/man_page.py"))["page"]
    made = HERE / "build" / "man" / "sampan.1"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(make((HERE / "docs" / "cli.md").read_text(), VERSIONS["VERSION"]))
    return [("share/man/man1", [str(made.relative_to(HERE))])]


def addresses(url: str) -> dict[str, Any]:
    """Where the project is, as `make release URL=` says it."""
    tag = f"v{VERSIONS['VERSION']}"
    text = shown_elsewhere((HERE / "README.md").read_text(), url, tag)
    readme = {"long_description": text, "long_description_content_type": "text/markdown"}
    if not url:
        return readme
    places = {
        "Homepage": url,
        "Documentation": f"{url}/tree/{tag}/docs",
        "Changelog": f"{url}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
    return {**readme, "project_urls": places}


def shown_elsewhere(text: str, url: str, tag: str) -> str:
    """Markdown whose pictures and links lead to the project's files from anywhere."""
    if not url:
        return text
    text = re.sub(r"!\[([^]]*)\]\((?!https?:)", rf"![\1]({url}/raw/{tag}/", text)
    return re.sub(r"(?<!!)\[([^]]*)\]\((?!https?:|#)", rf"[\1]({url}/blob/{tag}/", text)


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": BuildPy, "definitions": Definitions, "site": Site},
        data_files=man_page(),
        **addresses(os.environ.get("SAMPAN_URL", "").rstrip("/")),
    )
