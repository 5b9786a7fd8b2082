"""What our tests, and our users' tests, share.

`with sampan.testing.cluster() as c:` is a cluster of its own for a test (docs/testkit.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sampan.testing.kit.chaos import Chaos
    from sampan.testing.kit.cluster import Cluster


def cluster(*, seed: int | None = None, **chosen: Any) -> "Cluster":
    """A cluster that is ready: API server, controllers, scheduler, simulated nodes or a real one.
    Choices are `nodes=`, `controllers=`, `clock=`, `real=` and more (sampan.testing.kit.spec.Spec),
    and `webhooks=` (sampan.testing.kit.webhooks)."""
    # What only wants something else of this package does not pay for it.
    from sampan.testing.kit.cluster import open_cluster

    return open_cluster(seed=seed, **chosen)


def chaos(
    cluster: "Cluster",
    operator: "Sequence[str] | Callable[[str], object]",
    invariants: "Mapping[str, Callable[[], object]]",
    *,
    seed: int | None = None,
    how: "Chaos | None" = None,
) -> int:
    """Run an operator while requests, nodes and itself fail by seed; then its invariants must hold
    (sampan.testing.kit.chaos)."""
    from sampan.testing.kit.chaos import chaos as run

    return run(cluster, operator, invariants, seed=seed, how=how)
