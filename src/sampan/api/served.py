"""Which resources are served: by the version of Kubernetes, its gates, and --runtime-config.

Job: from the table of kinds and data/served.json to the rows of a release. Pure.
Invariant: what is asked for and not here is refused by name; messages are upstream's where it
    refuses, too.
"""

from collections.abc import Mapping
from typing import Any

from sampan.api import features
from sampan.api.feature_gates import TRUTHS, number_of
from sampan.api.resources import RESOURCES, Resource, by_plural
from sampan.core.fast_dataclass import replace
from sampan.core.files.packaged_data import packaged_data
from sampan.core.patterns import lazy_pattern

GroupVersion = tuple[str, str]
# In upstream's order: a later one counts more.
_FORMS = {
    "api/all": lazy_pattern(r".*"),
    "api/ga": lazy_pattern(r"v[0-9]+"),
    "api/beta": lazy_pattern(r"v[0-9]+beta[0-9]+"),
    "api/alpha": lazy_pattern(r"v[0-9]+alpha[0-9]+"),
}


class BadRuntimeConfig(Exception):
    """What cannot be served, or not be served; as upstream words it."""


def served_resources() -> tuple[Resource, ...]:
    """Of this process's release. Raises BadRuntimeConfig."""
    return features.of_release(resources_of)


def resources_of(release: features.Release) -> tuple[Resource, ...]:
    """Raises BadRuntimeConfig."""
    table = packaged_data("served")
    there = [
        _with_subresources(row, table["subresources"], release)
        for row in RESOURCES
        if _is_there(table["resources"].get(_key(row), {}), release)
    ]
    on = _Choice(release, {(row.group, row.version) for row in there}, table)
    on.check()
    return tuple(row for row in there if on.has(row))


def spoken(row: Resource) -> Resource:
    """A kind of certificates in the version in which this release's own parts speak of it."""
    version = "v1" if features.changed("CertificateKindsInV1") else row.stored_in[1]
    found = by_plural(row.group, version or row.version, row.plural)
    assert found is not None, row
    return found


def _key(row: Resource) -> str:
    return f"{row.api_version}/{row.plural}"


def _is_there(entry: Mapping[str, str], release: features.Release) -> bool:
    """Whether a version has it, and its gate is on."""
    shown, program = number_of(release.shown), number_of(release.minor)
    if not number_of(entry.get("since", "1.0")) <= shown:
        return False
    if program > number_of(entry.get("until", release.minor)):
        return False
    return "gate" not in entry or entry["gate"] in features.all_enabled()


def _with_subresources(
    row: Resource, table: Mapping[str, Mapping[str, str]], release: features.Release
) -> Resource:
    kept = tuple(
        item
        for item in row.subresources
        if _is_there(table.get(f"{_key(row)}/{item.name}", {}), release)
    )
    return row if kept == row.subresources else replace(row, subresources=kept)


class _Choice:
    """What --runtime-config says."""

    def __init__(
        self, release: features.Release, there: set[GroupVersion], table: Mapping[str, Any]
    ) -> None:
        self._given, self._there = release.runtime_config, there
        self._absent = {
            _group_version(name)
            for name, entry in table["absent"].items()
            if _is_there({key: entry[key] for key in entry if key != "gate"}, release)
        }
        empty = {_group_version(name) for name in table["empty"]}
        self._registered = there | self._absent | empty

    def has(self, row: Resource) -> bool:
        on = row.version.startswith("v") and _FORMS["api/ga"].fullmatch(row.version) is not None
        for form, pattern in _FORMS.items():
            if form in self._given and pattern.fullmatch(row.version):
                on = self._given[form] == "true"
        for key in (row.api_version, _key(row)):
            if key in self._given:
                on = self._truth(key)
        return on

    def check(self) -> None:
        """Raises BadRuntimeConfig."""
        if dict(self._given) == {"api/all": "false"}:
            raise BadRuntimeConfig("invalid runtime-config with only api/all=false")
        unknown = set()
        for key in self._given:
            if key not in _FORMS and not self._is_known_group(key):
                unknown.add("/".join(key.split("/")[:2]))
        if unknown:
            raise BadRuntimeConfig(f"unknown api groups {','.join(sorted(unknown))}")
        for key, value in self._given.items():
            self._check_key(key, value)

    def _is_known_group(self, key: str) -> bool:
        if key == "v1":
            return True
        if key.count("/") not in (1, 2):
            raise BadRuntimeConfig(f"runtime-config invalid key {key}")
        return key.partition("/")[0] in {group for group, _ in self._registered}

    def _check_key(self, key: str, value: str) -> None:
        if key in _FORMS:
            if value not in ("true", "false"):
                raise BadRuntimeConfig(f"invalid value {key}={value}")
            if value == "false" and key in ("api/all", "api/ga"):
                raise BadRuntimeConfig(f"{key}=false: sampan cannot do without them")
            return
        group, version = _group_version(key)
        named = f"{group}/{version}" if group else version
        if (group, version) not in self._registered:
            raise BadRuntimeConfig(f"group version {named} that has not been registered")
        resource = key.split("/")[2:]
        if resource and resource[0] != resource[0].lower():
            raise BadRuntimeConfig(
                f"invalid key {key}: group/version/resource and resource is always lowercase "
                f'plural, not "{resource[0]}"'
            )
        if not self._truth(key) and _FORMS["api/ga"].fullmatch(version):
            raise BadRuntimeConfig(f"{key}=false: sampan cannot do without it")
        if self._truth(key) and (group, version) in self._absent - self._there:
            raise BadRuntimeConfig(f"{named} cannot be served: sampan does not have it")

    def _truth(self, key: str) -> bool:
        value = self._given[key]
        if value == "":
            return True
        if value not in TRUTHS:
            why = f'strconv.ParseBool: parsing "{value}": invalid syntax'
            raise BadRuntimeConfig(f"invalid value of {key}: {value}, err: {why}")
        return TRUTHS[value]


def _group_version(key: str) -> GroupVersion:
    """Of group/version or group/version/resource; v1 is the core's."""
    group, slash, rest = key.partition("/")
    return (group, rest.partition("/")[0]) if slash else ("", group)
