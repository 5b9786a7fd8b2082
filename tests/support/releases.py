"""Releases of Kubernetes that tests choose, and what each serves."""

from sampan.api import features
from sampan.api.features import Release
from sampan.api.resources import Resource
from sampan.api.served import served_resources
from sampan.version import DEFAULT_MINOR

EVERY_API = {"api/all": "true"}


def rows_of(minor: str = DEFAULT_MINOR) -> tuple[Resource, ...]:
    """Every resource that there is in a version, those that are off by default among them."""
    with features.used(Release(minor, runtime_config=EVERY_API)):
        return served_resources()


# Most of what is recorded was asked of an original of this version; of the others there are
# differences from it.
RECORDED = "1.35"
# v1.35 has it off; the recordings were made with it on.
MUTATING_POLICIES = Release(
    RECORDED,
    gates={"MutatingAdmissionPolicy": True},
    runtime_config={"admissionregistration.k8s.io/v1beta1": "true"},
)
