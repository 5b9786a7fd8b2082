"""Which Kubernetes the process of a test cluster is.

Job: what a test chose, in effect from then on.
"""

from sampan.cmd.cluster.releases import use_release
from sampan.cmd.settings import ReleaseChoices
from sampan.testing.kit.spec import Spec


def use_release_of(spec: Spec) -> None:
    """Before the first object is read. Raises cmd.errors.CannotStart."""
    use_release(
        ReleaseChoices(
            spec.version,
            feature_gates=(spec.feature_gates,),
            runtime_config=(spec.runtime_config,),
        )
    )
