"""Which policies are in force, and how often they are compiled."""

import asyncio
import threading

import pytest

from sampan.api.cel.policies import compile_validating
from sampan.api.kinds import Kinds
from sampan.api.resources import VALIDATING_ADMISSION_POLICIES, VALIDATING_POLICY_BINDINGS
from sampan.apiserver.admission.plugin_initializer import Aid
from sampan.apiserver.admission.policies.policies import Policies, unknown_kind
from sampan.apiserver.extension.conversion import Conversions
from sampan.core.clock import SystemClock
from sampan.core.side_thread import SideThread


class Objects:
    """As much of a registry as policies are read from."""

    def __init__(self):
        self.of = {VALIDATING_ADMISSION_POLICIES: [], VALIDATING_POLICY_BINDINGS: []}

    def find_all(self, resource):
        return self.of[resource]


def policy(name, text="true"):
    return {"metadata": {"name": name}, "spec": {"validations": [{"expression": text}]}}


def binding(name, of):
    return {"metadata": {"name": name}, "spec": {"policyName": of}}


def test_a_policy_is_compiled_once_and_again_only_when_it_is_another_one():
    """[A3]"""
    objects, compiled = Objects(), []

    def compile_(spec):
        compiled.append(spec["validations"][0]["expression"])
        return compile_validating(spec)

    policies = Policies(
        objects, VALIDATING_ADMISSION_POLICIES, VALIDATING_POLICY_BINDINGS, compile_
    )
    objects.of[VALIDATING_ADMISSION_POLICIES] = [policy("b"), policy("a", "1 == 1"), policy("c")]
    objects.of[VALIDATING_POLICY_BINDINGS] = [binding("x", "b"), binding("y", "a")]
    side = SideThread("test")
    aid = Aid(None, SystemClock(), side, Conversions(None, str, side))

    def bound():
        return asyncio.run(policies.compile(aid))

    assert [one.name for one in bound()] == ["a", "b"]
    assert bound() is bound()
    assert sorted(compiled) == ["1 == 1", "true"]
    objects.of[VALIDATING_POLICY_BINDINGS].append(binding("w", "b"))
    policies.changed()
    names = [[one["metadata"]["name"] for one in each.bindings] for each in bound()]
    assert names == [["y"], ["w", "x"]]
    assert len(compiled) == 2
    objects.of[VALIDATING_ADMISSION_POLICIES][0] = policy("b", "2 == 2")
    policies.changed()
    bound()
    assert compiled[2:] == ["2 == 2"]
    aid.side.close()


def test_large_policies_are_compiled_beside_the_loop_and_once_for_all_who_wait():
    """[A3] a policy that changes meanwhile is compiled again before anybody is judged by it"""
    objects, compiled = Objects(), []

    def compile_(spec):
        compiled.append((spec["validations"][0]["expression"][-1], threading.get_ident()))
        if len(compiled) == 1:
            objects.of[VALIDATING_ADMISSION_POLICIES] = [policy("a", f"{' ' * 2000}false || 2 > 1")]
        return compile_validating(spec)

    policies = Policies(
        objects, VALIDATING_ADMISSION_POLICIES, VALIDATING_POLICY_BINDINGS, compile_
    )
    objects.of[VALIDATING_ADMISSION_POLICIES] = [policy("a", f"{' ' * 2000}true")]
    objects.of[VALIDATING_POLICY_BINDINGS] = [binding("x", "a")]
    side = SideThread("test")
    aid = Aid(None, SystemClock(), side, Conversions(None, str, side))

    async def main():
        return await asyncio.gather(*(policies.compile(aid) for _ in range(5)))  # noqa: TID251

    found = asyncio.run(main())
    aid.side.close()
    assert [end for end, _ in compiled] == ["e", "1"]
    assert threading.get_ident() not in {thread for _, thread in compiled}
    assert all(each is found[0] for each in found)


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (None, ""),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, ""),
        (
            {"apiVersion": "v1", "kind": "Nothing"},
            "failed to find resource referenced by paramKind: '/v1, Kind=Nothing'",
        ),
    ],
)
def test_parameters_of_no_known_kind_are_complained_about(kind, complaint):
    assert unknown_kind(Kinds(), {} if kind is None else {"paramKind": kind}) == complaint
