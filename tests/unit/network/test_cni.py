import os

import pytest

from sampan.network import cni
from sampan.network.bridge import PodNetwork

NETWORK = PodNetwork("sampan3", "10.244.3.0/24")


def test_the_rules_of_a_network_are_in_a_table_of_its_own_and_know_its_pods():
    place = cni.proxy_place(NETWORK, ["10.96.0.0/12"])
    assert place.table == "sampan3-pods"
    assert place.pod_cidrs == place.cluster_cidrs == ("10.244.3.0/24",)
    assert place.service_cidrs == ("10.96.0.0/12",)


def test_rules_know_the_pods_of_both_families():
    dual = PodNetwork("sampan3", "10.244.3.0/24", "fd00:10:244:3::/64")
    place = cni.proxy_place(dual, ["10.96.0.0/12", "fd00:10:96::/112"], ["fd00:10:244::/56"])
    assert place.families == ("ip", "ip6")
    assert place.pod_cidrs == dual.subnets
    # The cluster's range holds one of them already.
    assert place.cluster_cidrs == ("fd00:10:244::/56", "10.244.3.0/24")


NFT = """#!/bin/sh
# Keeps what it is told; as a kernel without rules of bridges where the test says so.
script=$(cat)
case "{refuses}$script" in yes*bridge*) echo "bridge: not supported" >&2; exit 1;; esac
printf '%s\\n' "$script" > "$(mktemp {told}/XXXXXX)"
"""


@pytest.mark.parametrize(("refuses", "transactions"), [("no", 1), ("yes", 2)])
def test_the_rules_of_all_families_are_one_transaction_where_they_can_be(
    refuses, transactions, tmp_path, monkeypatch
):
    told = tmp_path / "told"
    told.mkdir()
    program = tmp_path / "nft"
    program.write_text(NFT.format(refuses=refuses, told=told))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    dual = PodNetwork("lo", "10.244.3.0/24", "fd00:10:244:3::/64")
    place = cni.proxy_place(dual, ["10.96.0.0/12", "fd00:10:96::/112"])
    cni.load_rules(place, pods=True, ports=True)
    scripts = [file.read_text() for file in told.iterdir()]
    assert len(scripts) == transactions
    families = {"ip", "ip6", "bridge"} - ({"bridge"} if refuses == "yes" else set())
    for family in families:  # each signed, so that whoever watches the table knows it for ours
        [script] = [text for text in scripts if f"add table {family} lo-pods\n" in text]
        assert f"delete chain {family} lo-pods sampan-signature" in script
    assert any("bridge" in text for text in scripts) is (refuses == "no")
