import re

import pytest

from sampan.api.rules.service_families import settle_families

V4, V6, BOTH, TURNED = ("IPv4",), ("IPv6",), ("IPv4", "IPv6"), ("IPv6", "IPv4")
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"


def settled(available, old=None, **spec):
    """Policy, families, addresses; or what is wrong."""
    full = {"type": "ClusterIP", "selector": {"app": "web"}, **spec}
    wrong = settle_families(full, old or {}, available)
    if wrong:
        return [
            re.sub(r"Invalid value: .*?: (?=must|this|not|IPv)", "", str(each)) for each in wrong
        ]
    return full["ipFamilyPolicy"], tuple(full["ipFamilies"]), full.get("clusterIPs")


@pytest.mark.parametrize(
    ("available", "spec", "policy", "families"),
    [
        (V4, {}, SINGLE, V4),
        (V6, {}, SINGLE, V6),
        (BOTH, {}, SINGLE, V4),
        (TURNED, {}, SINGLE, V6),
        (BOTH, {"ipFamilies": ["IPv6"]}, SINGLE, V6),
        (V4, {"ipFamilyPolicy": PREFER}, PREFER, V4),
        (BOTH, {"ipFamilyPolicy": PREFER}, PREFER, BOTH),
        (BOTH, {"ipFamilyPolicy": REQUIRE}, REQUIRE, BOTH),
        (TURNED, {"ipFamilyPolicy": REQUIRE}, REQUIRE, TURNED),
        (BOTH, {"ipFamilyPolicy": PREFER, "ipFamilies": ["IPv6"]}, PREFER, TURNED),
        (BOTH, {"ipFamilyPolicy": REQUIRE, "ipFamilies": ["IPv6", "IPv4"]}, REQUIRE, TURNED),
        (BOTH, {"clusterIP": "fd00::5", "clusterIPs": ["fd00::5"]}, SINGLE, V6),
        (BOTH, {"clusterIP": "None", "clusterIPs": ["None"]}, SINGLE, V4),
        (BOTH, {"clusterIP": "None", "ipFamilyPolicy": PREFER}, PREFER, BOTH),
        # Whose endpoints are somebody else's business may have any.
        (V4, {"clusterIP": "None", "selector": {}}, REQUIRE, BOTH),
        (V6, {"clusterIP": "None", "selector": {}}, REQUIRE, TURNED),
        (V4, {"clusterIP": "None", "selector": {}, "ipFamilyPolicy": SINGLE}, SINGLE, V4),
    ],
)
def test_a_new_service_has_what_it_asks_for_and_the_cluster_s_own_family_else(
    available, spec, policy, families
):
    assert settled(available, **spec)[:2] == (policy, families)


@pytest.mark.parametrize(
    ("available", "spec", "wrong"),
    [
        (V4, {"ipFamilyPolicy": REQUIRE},
         ["spec.ipFamilyPolicy: this cluster is not configured for dual-stack services"]),
        (V4, {"ipFamilies": ["IPv6"]}, ["spec.ipFamilies[0]: not configured on this cluster"]),
        (V4, {"clusterIP": "fd00::5", "clusterIPs": ["fd00::5"]},
         ["spec.clusterIPs[0]: IPv6 is not configured on this cluster"]),
        (BOTH, {"ipFamilies": ["IPv4", "IPv6"]},
         ["spec.ipFamilyPolicy: must be 'RequireDualStack' or 'PreferDualStack' when multiple IP "
          "families are specified"]),
        (BOTH, {"clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5", "fd00::5"]},
         ["spec.ipFamilyPolicy: must be 'RequireDualStack' or 'PreferDualStack' when multiple "
          "cluster IPs are specified"]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_upstream_s_words(available, spec, wrong):
    assert settled(available, **spec) == wrong


OLD_SINGLE = {
    "type": "ClusterIP", "ipFamilyPolicy": SINGLE, "ipFamilies": ["IPv4"],
    "clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5"],
}  # fmt: skip
OLD_DUAL = {
    "type": "ClusterIP", "ipFamilyPolicy": REQUIRE, "ipFamilies": ["IPv4", "IPv6"],
    "clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5", "fd00::5"],
}  # fmt: skip


def test_a_service_gets_a_second_family_when_its_policy_says_so():
    new = {**OLD_SINGLE, "ipFamilyPolicy": PREFER}
    assert settled(BOTH, OLD_SINGLE, **new) == (PREFER, BOTH, ["10.0.0.5"])
    assert settled(BOTH, OLD_SINGLE, **{**new, "ipFamilyPolicy": REQUIRE})[1] == BOTH
    assert settled(BOTH, OLD_SINGLE, **OLD_SINGLE) == (SINGLE, V4, ["10.0.0.5"])


def test_the_policy_alone_gives_the_second_family_up():
    new = {**OLD_DUAL, "ipFamilyPolicy": SINGLE}
    assert settled(BOTH, OLD_DUAL, **new) == (SINGLE, V4, ["10.0.0.5"])
    explicit = {**new, "ipFamilies": ["IPv4"], "clusterIPs": ["10.0.0.5"]}
    assert settled(BOTH, OLD_DUAL, **explicit) == (SINGLE, V4, ["10.0.0.5"])
    assert settled(BOTH, OLD_DUAL, **{**OLD_DUAL, "clusterIPs": ["10.0.0.5"]}) == [
        "spec.ipFamilyPolicy: must be 'SingleStack' to release the secondary cluster IP"
    ]
    assert settled(BOTH, OLD_DUAL, **{**OLD_DUAL, "ipFamilies": ["IPv4"]}) == [
        "spec.ipFamilyPolicy: must be 'SingleStack' to release the secondary IP family"
    ]


def test_a_range_that_comes_or_goes_changes_no_service():
    """Of those that prefer two families: they stay as they are until somebody changes them."""
    single = {**OLD_SINGLE, "ipFamilyPolicy": PREFER}
    assert settled(BOTH, single, **single) == (PREFER, V4, ["10.0.0.5"])
    dual = {**OLD_DUAL, "ipFamilyPolicy": PREFER}
    assert settled(V4, dual, **dual) == (PREFER, BOTH, ["10.0.0.5", "fd00::5"])
