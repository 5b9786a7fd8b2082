"""What earlier runs left: named with the command that removes it; what is in use is never named."""

import os
from dataclasses import replace

import pytest

from sampan.cmd.verbs.machine import doctor
from sampan.cmd.verbs.machine.leftovers import Found, Link, checks, is_known, judge, look, owner
from sampan.network.bridge import owner_mark

HERE, GONE = "/var/lib/here", "/var/lib/gone"
NOTHING = Found(frozenset(), frozenset(), (), (), {}, {}, ())


def mark(tmp_path, directory):
    return owner_mark(tmp_path.joinpath(directory))


def cgroup(directory):
    return f"/sys/fs/cgroup/sampan-{owner(directory)}"


def commands(found):
    return [" ".join(check.repair) for check in judge(found)]


def test_a_bridge_of_nobody_goes_with_its_rules(tmp_path):
    found = replace(
        NOTHING,
        links=(
            Link("sampan0", mark(tmp_path, GONE), ""),
            Link("eth0", "", ""),
            Link("br0", "x", ""),
        ),
        tables=(("ip", "sampan0-pods"), ("ip6", "sampan0-pods"), ("ip", "filter")),
    )
    assert commands(found) == [
        "ip link delete sampan0",
        "nft delete table ip sampan0-pods",
        "nft delete table ip6 sampan0-pods",
    ]


def test_what_a_known_cluster_needs_is_left(tmp_path):
    found = replace(
        NOTHING,
        known=frozenset({owner(HERE)}),
        links=(Link("sampan0", mark(tmp_path, HERE), ""),),
        tables=(("ip", "sampan0-pods"),),
        cgroups={cgroup(HERE): (7,)},
        runtimes={7: HERE},
        sockets=(f"/run/sampan-{owner(HERE)}",),
    )
    assert commands(found) == []


def test_a_bridge_with_pods_on_it_is_left(tmp_path):
    links = (Link("sampan0", mark(tmp_path, GONE), ""), Link("veth1", "", "sampan0"))
    assert commands(replace(NOTHING, links=links)) == []


def test_a_table_without_a_bridge_may_be_of_a_cluster_that_runs():
    found = replace(NOTHING, tables=(("ip", "sampan3-pods"),))
    assert commands(found) == ["nft delete table ip sampan3-pods"]
    assert commands(replace(found, running=frozenset({owner(HERE)}))) == []


def test_processes_of_a_directory_that_is_gone_end_before_their_cgroup():
    found = replace(NOTHING, cgroups={cgroup(GONE): (8, 9)}, runtimes={7: GONE})
    assert commands(found) == [
        "kill -9 7 8 9",
        f"find {cgroup(GONE)} -depth -type d -delete",
    ]


def test_runtimes_of_others_are_never_touched():
    """A shim of Docker or of another mount namespace looks like ours."""
    assert commands(replace(NOTHING, runtimes={7: "/run", 8: "/run/k3s"})) == []
    # Nor processes in a cgroup of ours, as long as nothing says that their directory is gone.
    assert commands(replace(NOTHING, cgroups={cgroup(GONE): (8,)})) == []


def test_looking_finds_this_machine(tmp_path):
    """What else it finds is other people's work of that moment."""
    found = look(str(tmp_path))
    assert any(link.name == "lo" for link in found.links) or os.geteuid() != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_an_ordinary_user_judges_nothing_of_others(tmp_path):
    private = tmp_path / "cluster"
    private.mkdir(mode=0o700)
    (private / "format").write_text("1\n")
    os.seteuid(65534)
    try:
        found = look(str(tmp_path))
        assert is_known(str(private))
        [told] = checks(str(tmp_path))
        assert "of another user" in told.text
    finally:
        os.seteuid(0)
    assert found.links == found.tables == ()
    assert not found.cgroups
    assert not found.runtimes


def test_a_node_of_a_cluster_is_known_with_it(tmp_path):
    node = tmp_path / "nodes" / "two"
    node.mkdir(parents=True)
    assert not is_known(str(node))
    (tmp_path / "format").write_text("1\n")
    assert is_known(str(node))
    assert owner(str(node)) in look(str(tmp_path)).known


def test_what_is_left_makes_no_machine_unfit(tmp_path, monkeypatch, capsys):
    links = (Link("sampan0", mark(tmp_path, GONE), ""),)
    monkeypatch.setattr(doctor, "examine", lambda *_: list(judge(replace(NOTHING, links=links))))
    assert doctor.run(str(tmp_path), 0) == 0
    said = capsys.readouterr()
    assert "left     sampan0" in said.out
    assert "`sampan doctor --fix` removes what earlier runs left" in said.err
