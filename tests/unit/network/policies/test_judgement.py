import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.network.policies.compiled import compile_policy
from sampan.network.policies.elements_of_pod import pod_view
from sampan.network.policies.judgement import Connection, judgements
from tests.support.generators import random_policies as generated


@pytest.mark.slow
@given(st.integers(0, 2**32), st.sampled_from([generated.SUBNET, generated.SUBNET_IPV6]))
def test_people_are_told_what_a_naive_judge_says(seed, subnet):
    policies = generated.random_policies(random.Random(seed), subnet)
    read = [compile_policy(policy) for policy in policies]
    pods = generated.pods(subnet)
    views = [pod_view(pod, "n1") for pod in pods]
    for source, seen_source in zip(pods, views, strict=True):
        for target, seen_target in zip(pods, views, strict=True):
            if source is target:
                continue
            for protocol in generated.PROTOCOLS:
                for port in generated.PORTS:
                    asked = Connection(seen_source, seen_target, protocol, port)
                    found = judgements(asked, read, generated.NAMESPACES)
                    may = generated.is_allowed(policies, source, target, protocol, port)
                    assert all(each.allowed for each in found) is may
