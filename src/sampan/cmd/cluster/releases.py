"""Which Kubernetes a process is: what was chosen, and what its cluster was before.

Job: words of flags → a Release, in effect from then on.
Invariant: a cluster keeps its version; only `sampan upgrade` gives it another one.
"""

from collections.abc import Callable, Iterable

from sampan.api import features
from sampan.api.feature_gates import BadFeatureGates, number_of, parse_gates
from sampan.api.features import Release
from sampan.api.served import BadRuntimeConfig, served_resources
from sampan.cmd.cluster.data_dir import DataDir
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ReleaseChoices
from sampan.core.patterns import lazy_pattern
from sampan.version import DEFAULT_MINOR, MINORS

KEPT = "kubernetes"  # in the record of a data directory
UPGRADING = "upgrading"  # there, too: to which version, while `sampan upgrade` writes
OLDEST_EMULATED = 3  # so many minor versions back, as upstream
BEFORE = "1.35"  # of a cluster from before it was noted
_MINOR = lazy_pattern(r"v?(1\.[0-9]{1,3})(\.[0-9]+)?")


def use_release(
    choices: ReleaseChoices, kept: str = "", warn: Callable[[str], None] | None = None
) -> Release:
    """`kept`: the version of a cluster that exists. Raises CannotStart."""
    chosen = release_of(choices, kept)
    try:
        settled = features.use(chosen)
        served_resources()
    except BadFeatureGates as error:
        raise CannotStart(f"--feature-gates: {error}") from error
    except BadRuntimeConfig as error:
        features.use(Release())
        raise CannotStart(f"--runtime-config: {error}") from error
    if settled.left and warn is not None:
        warn(f"feature gates that stay as they are: {', '.join(settled.left)} (`sampan gates`)")
    return chosen


def release_of(choices: ReleaseChoices, kept: str = "") -> Release:
    """Raises CannotStart."""
    minor = minor_of(choices.kubernetes_version) if choices.kubernetes_version else ""
    if kept and minor and kept != minor:
        raise CannotStart(
            f"this cluster is Kubernetes v{kept}: `sampan upgrade --to {minor}` makes it v{minor}"
            if number_of(minor) > number_of(kept)
            else f"this cluster is Kubernetes v{kept}: it cannot go back to v{minor}"
        )
    minor = minor or kept or DEFAULT_MINOR
    try:
        gates = parse_gates(",".join(choices.feature_gates))
    except BadFeatureGates as error:
        raise CannotStart(f"--feature-gates: {error}") from error
    return Release(
        minor,
        _emulated(choices.emulated_version, minor),
        gates,
        _pairs(choices.runtime_config),
    )


def minor_of(text: str) -> str:
    """1.36 of 1.36, v1.36 and v1.36.2. Raises CannotStart."""
    form = _MINOR.fullmatch(text.strip())
    if form is None or form[1] not in MINORS:
        there_are = f"{', '.join(MINORS[:-1])} and {MINORS[-1]}"
        raise CannotStart(f"there is no Kubernetes {text} here: there are {there_are}")
    return form[1]


def _emulated(text: str, minor: str) -> str:
    """Worded as upstream. Raises CannotStart."""
    if not text:
        return ""
    component, equals, version = text.partition("=")
    if equals and component.strip() != "kube":
        raise CannotStart(f"--emulated-version: component not registered: {component.strip()}")
    version = (version if equals else text).strip()
    form = _MINOR.fullmatch(version)
    if form is None:
        raise CannotStart(f'--emulated-version: could not parse "{version}" as version')
    if form[2] and form[2] != ".0":
        raise CannotStart(f"--emulated-version: patch version not allowed, got: kube={version}")
    oldest = number_of(minor) - OLDEST_EMULATED
    if not oldest <= number_of(form[1]) <= number_of(minor):
        raise CannotStart(
            f"--emulated-version: emulation version {form[1]} is not between [1.{oldest}, "
            f"{minor}.0]"
        )
    if form[1] not in MINORS:
        raise CannotStart(f"--emulated-version: there is nothing of {form[1]} here")
    return "" if form[1] == minor else form[1]


def _pairs(texts: Iterable[str]) -> dict[str, str]:
    """`a=b,c` as upstream's ConfigurationMap reads it."""
    found = {}
    for pair in ",".join(texts).split(","):
        key, _, value = pair.strip().partition("=")
        if key:
            found[key.strip()] = value.strip()
    return found


def kept_minor(data: DataDir) -> str:
    """Of the cluster in a directory; empty where there is none yet. Raises CannotStart."""
    begun = str(data.record().get(UPGRADING) or "")[:40]
    if begun:
        raise CannotStart(
            f"the upgrade of {data.root} to Kubernetes v{begun} was interrupted: `sampan upgrade "
            f"--to {begun}` finishes it"
        )
    return noted_minor(data)


def noted_minor(data: DataDir) -> str:
    """The same, also while it is upgraded. Raises CannotStart."""
    record = data.record()
    found = str(record.get(KEPT) or (BEFORE if record else ""))
    if found and found not in MINORS:
        raise CannotStart(
            f"{data.root} is a cluster of Kubernetes {found[:40]}: this sampan knows "
            f"{', '.join(MINORS)}"
        )
    return found
