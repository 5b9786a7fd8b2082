"""What another version of Kubernetes changes for a cluster.

Job: two minor versions → APIs, features, and the versions in which objects are stored. Pure.
"""

from collections.abc import Iterable, Mapping

from sampan.api import features
from sampan.api.feature_gates import Settled
from sampan.api.features import Release
from sampan.api.resources import storage_versions
from sampan.api.served import resources_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.files.packaged_data import packaged_data


@dataclass(frozen=True, slots=True)
class Changes:
    gone: tuple[str, ...]  # group/version/resource that not even --runtime-config serves any more
    new: tuple[str, ...]
    stored: Mapping[str, str]  # by group resource: the apiVersion, where it is another one
    on: tuple[str, ...]  # features that sampan has with and without
    off: tuple[str, ...]


def changes_between(old: str, new: str) -> Changes:
    """By minor version, with the defaults of both."""
    served, gates, stored = _facts(old)
    served_then, gates_then, stored_then = _facts(new)
    return Changes(
        gone=_without(_servable(old), _servable(new)),
        new=_without(served_then, served),
        stored={
            name: f"{name.partition('.')[2]}/{version}"
            for name, version in stored_then.items()
            if stored.get(name) != version
        },
        on=_without(gates_then, gates),
        off=_without(gates, gates_then),
    )


def _facts(minor: str) -> tuple[set[str], set[str], Mapping[str, str]]:
    release = Release(minor)
    with features.used(release) as settled:
        served = {f"{row.api_version}/{row.plural}" for row in resources_of(release)}
        return served, _seen(settled), storage_versions(release)


def _servable(minor: str) -> set[str]:
    release = Release(minor, runtime_config={"api/all": "true"})
    with features.used(release):
        return {f"{row.api_version}/{row.plural}" for row in resources_of(release)}


def _seen(settled: Settled) -> set[str]:
    """A gate that a version no longer knows is on for good."""
    table = packaged_data("gates")["gates"]
    return {name for name in settled.on if table[name]["here"] == "both"}


def _without(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(first) - set(second)))
