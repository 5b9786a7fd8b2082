"""As whom a process of the cluster may ask the API."""

import pytest

from sampan.cmd.cluster.processes.identities import AGENTS, may_be, new_secrets, part_of


@pytest.mark.parametrize(
    ("part", "user", "allowed"),
    [
        ("scheduler", "system:kube-scheduler", True),
        ("scheduler", "system:kube-controller-manager", False),
        ("scheduler", "system:node:a", False),
        ("controllers", "system:kube-controller-manager", True),
        ("controllers", "system:serviceaccount:kube-system:job-controller", True),
        ("controllers", "system:serviceaccount:default:job-controller", False),
        ("controllers", "system:node:a", False),
        ("nodes", "system:node:a", True),
        ("nodes", "system:node:", False),
        ("nodes", "system:kube-scheduler", False),
        ("nodes", "system:serviceaccount:kube-system:job-controller", False),
        ("apiserver", "system:apiserver", False),
    ],
)
def test_a_part_is_what_it_is_and_nobody_else(part, user, allowed):
    assert may_be(part, user) is allowed


@pytest.mark.parametrize("part", sorted(AGENTS))
@pytest.mark.parametrize("user", ["kubernetes-admin", "system:admin", "system:apiserver", ""])
def test_nobody_is_an_administrator(part, user):
    assert not may_be(part, user)


def test_a_secret_says_which_part_shows_it():
    known = new_secrets()
    for part, secret in known.items():
        assert part_of(f"Bearer {secret}", known) == part
        assert part_of(f"bearer {secret}", known) == part
        assert part_of(f"Basic {secret}", known) is None
        assert part_of(secret, known) is None
    assert part_of("Bearer ", known) is None
    assert part_of("Bearer é", known) is None
    assert len(set(known.values()) | set(new_secrets().values())) == 2 * len(known)
