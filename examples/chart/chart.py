"""A chart: templates with `$values`, as small as can be. `helm template` would do as well."""

import hashlib
from pathlib import Path
from string import Template

import yaml


def render(directory: Path, **chosen) -> list[dict]:
    """The objects, with the values of the file where none is chosen. Raises KeyError for a value
    that there is not."""
    values = yaml.safe_load((directory / "values.yaml").read_text())
    unknown = set(chosen) - set(values)
    if unknown:
        raise KeyError(f"there is no value {sorted(unknown)[0]}")
    values |= chosen
    values["checksum"] = hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:16]
    return [
        yaml.safe_load(Template(path.read_text()).substitute(values))
        for path in sorted((directory / "templates").glob("*.yaml"))
    ]
