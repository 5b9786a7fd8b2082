import sys
import textwrap
from base64 import b64encode

import numpy as np
import pytest

from sampan.api.configuration import BadConfiguration
from sampan.scheduler.config.configuration import API_VERSION, KIND, read
from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.profile import DEFAULT_PROFILE
from sampan.scheduler.scores.node_resources_fit import allocation
from sampan.scheduler.settings import Election, Tls
from tests.support.generators.random_clusters import snapshot_of


def config(**fields):
    return {"apiVersion": API_VERSION, "kind": KIND, **fields}


def problems(written):
    with pytest.raises(BadConfiguration) as caught:
        read(written)
    return caught.value.problems


def names(profile):
    return [one.name for one in profile.filters], {
        one.name: weight for one, weight in profile.scores
    }


def test_an_empty_configuration_is_the_default():
    """[S4]"""
    assert read(config()).profiles == (DEFAULT_PROFILE,)
    assert read(config()).election.elects


def test_profiles_switch_plugins_off_and_weigh_them():
    """[S1] [S4]"""
    lean = {
        "schedulerName": "lean",
        "plugins": {
            "score": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "ImageLocality", "weight": 7}],
            },
            "filter": {"disabled": [{"name": "InterPodAffinity"}]},
            "postFilter": {"disabled": [{"name": "*"}]},
        },
    }
    made = read(config(profiles=[{}, lean]))
    assert [one.scheduler_name for one in made.profiles] == ["default-scheduler", "lean"]
    assert made.profiles[0] == DEFAULT_PROFILE
    filters, scores = names(made.profiles[1])
    assert "InterPodAffinity" not in filters
    assert filters == [one for one in names(DEFAULT_PROFILE)[0] if one != "InterPodAffinity"]
    assert scores == {"ImageLocality": 7}
    assert not made.profiles[1].preempts


def test_multi_point_switches_everything_of_a_plugin():
    off = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeAffinity"}]}}}
    filters, scores = names(read(config(profiles=[off])).profiles[0])
    assert "NodeAffinity" not in filters
    assert "NodeAffinity" not in scores
    again = {
        "plugins": {
            "multiPoint": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "NodeResourcesFit"}, {"name": "TaintToleration"}],
            }
        }
    }
    filters, scores = names(read(config(profiles=[again])).profiles[0])
    assert filters == ["TaintToleration", "NodeResourcesFit"]
    assert scores == {"TaintToleration": 3, "NodeResourcesFit": 1}


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ([], "the file: expected an object"),
        ({"apiVersion": "v2"}, "apiVersion: "),
        (config(profilez=[]), "profilez: unknown field"),
        (config(profiles={}), "profiles: expected a list"),
        (config(profiles=[{}, {}]), "profiles: two profiles have the schedulerName"),
        (
            config(profiles=[{"plugins": {"filter": {"enabled": [{"name": "Nope"}]}}}]),
            "profiles[0].plugins: there is no plugin 'Nope'",
        ),
        (
            config(profiles=[{"plugins": {"filter": {"disabled": [{"name": "Nope"}]}}}]),
            "profiles[0].plugins.filter.disabled: there is no plugin 'Nope'",
        ),
        (
            config(profiles=[{"plugins": {"score": {"enabled": [{"name": "no_such_module:X"}]}}}]),
            "profiles[0].plugins: the plugin 'no_such_module:X' cannot be loaded",
        ),
        (
            config(profiles=[{"plugins": {"score": {"enabled": [{"name": "json:JSONDecoder"}]}}}]),
            "profiles[0].plugins: 'json:JSONDecoder' is no subclass",
        ),
        (config(profiles=[{"plugins": {"somewhere": {}}}]), "profiles[0].plugins.somewhere: "),
        (
            config(profiles=[{"pluginConfig": [{"name": "InterPodAffinity", "args": {"x": 1}}]}]),
            "profiles[0].pluginConfig.InterPodAffinity.x: unknown field",
        ),
        (config(podInitialBackoffSeconds="x"), "podInitialBackoffSeconds: 'x' is no number"),
        (config(podInitialBackoffSeconds=9, podMaxBackoffSeconds=2), "podMaxBackoffSeconds: "),
        (config(extenders=[{"urlPrefix": "ftp://x"}]), "extenders[0].urlPrefix: "),
        (
            config(extenders=[{"urlPrefix": "http://x", "httpTimeout": "soon"}]),
            "extenders[0].httpTimeout: time: invalid duration \"soon\"",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_path(written, problem):
    assert any(one.startswith(problem) for one in problems(written)), problems(written)


def test_all_mistakes_are_named_at_once():
    assert len(problems(config(a=1, b=2, profiles=7))) == 3


def test_what_has_no_effect_is_accepted_and_explained():
    notes = read(config(percentageOfNodesToScore=50, parallelism=16)).notes
    assert "percentageOfNodesToScore: all nodes are looked at, always" in notes
    assert len(notes) == 2


def test_extenders_are_read():
    written = {
        "urlPrefix": "http://x/y", "filterVerb": "f", "weight": 5, "httpTimeout": "1m30s",
        "ignorable": True, "nodeCacheCapable": True,
        "managedResources": [{"name": "a", "ignoredByScheduler": True}, {"name": "b"}],
    }  # fmt: skip
    [made] = read(config(extenders=[written])).extenders
    assert (made.filter_verb, made.weight, made.timeout_seconds) == ("f", 5, 90.0)
    assert (made.managed, made.not_ours) == ({"a", "b"}, {"a"})


def test_a_plugin_of_the_users_is_loaded_by_its_module(tmp_path, monkeypatch):
    """[S4]"""
    (tmp_path / "my_rules.py").write_text(
        textwrap.dedent("""
            from sampan.scheduler.plugin import Plugin
            class Mine(Plugin):
                pass
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "my_rules:Mine"
    profile = {
        "plugins": {"score": {"enabled": [{"name": name, "weight": 4}]}},
        "pluginConfig": [{"name": name, "args": {"a": 1}}],
    }
    [made] = read(config(profiles=[profile])).profiles
    [(cls, args, weight)] = made.plugins
    assert (cls.__name__, args, weight) == ("Mine", {"a": 1}, 4)
    del sys.modules["my_rules"]


def nodes_with(*used):
    there, placed = [], {}
    for number, cpu in enumerate(used):
        name = f"n{number}"
        amounts = {"cpu": "10", "memory": "10Gi", "pods": "10"}
        there.append({"metadata": {"name": name}, "spec": {}, "status": {"allocatable": amounts}})
        requests = {"cpu": str(cpu), "memory": f"{cpu}Gi"}
        container = {"name": "c", "resources": {"requests": requests}}
        meta = {"name": name, "uid": name, "namespace": "default"}
        placed[name] = [{"metadata": meta, "spec": {"containers": [container]}}]
    return snapshot_of((there, placed))


def asking(cpu):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": f"{cpu}Gi"}}}
    return pod_info_of({"metadata": {}, "spec": {"containers": [container]}}).shape


def test_strategies_prefer_the_empty_the_full_or_what_the_shape_says():
    nodes = nodes_with(1, 5, 8)
    points = lambda *how: allocation(*how).points(asking("1"), nodes, np.ones(3, bool)).tolist()  # noqa: E731
    both = {"cpu": 1, "memory": 1}
    assert points("LeastAllocated", both) == [80, 40, 10]
    assert points("MostAllocated", both) == [20, 60, 90]
    assert points("RequestedToCapacityRatio", both, [(0, 0), (100, 10)]) == [20, 60, 90]
    assert points("RequestedToCapacityRatio", {"cpu": 1}, [(0, 10), (60, 5)]) == [84, 50, 50]


def test_the_election_is_read_whole():
    """[S1]"""
    usual = read(config()).election
    assert (usual.namespace, usual.name) == ("kube-system", "kube-scheduler")
    assert (usual.lease_seconds, usual.renew_seconds, usual.retry_seconds) == (15.0, 10.0, 2.0)
    mine = {"leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "5s"}
    named = {"resourceName": "mine", "resourceNamespace": "ours", "leaderElect": False}
    found = read(config(leaderElection={**mine, **named})).election
    assert found == Election(False, "ours", "mine", 30.0, 20.0, 5.0)


@pytest.mark.parametrize(
    ("election", "problem"),
    [
        ({"leaseDuration": "5s"}, "leaderElection: leaseDuration must be longer"),
        ({"retryPeriod": "soon"}, 'leaderElection.retryPeriod: time: invalid duration "soon"'),
        ({"resourceLock": "endpoints"}, "leaderElection.resourceLock: 'endpoints' is not leases"),
        ({"lease": 1}, "leaderElection.lease: unknown field"),
    ],
)
def test_mistakes_in_the_election_are_named(election, problem):
    assert any(one.startswith(problem) for one in problems(config(leaderElection=election)))


def test_how_an_extender_is_trusted_is_read_from_data_and_from_files(tmp_path):
    """[S4]"""
    (tmp_path / "ca").write_text("CA")
    pair = {"certData": b64encode(b"CERT").decode(), "keyData": b64encode(b"KEY").decode()}
    tls = {"caFile": str(tmp_path / "ca"), "serverName": "it", **pair}
    [made] = read(config(extenders=[{"urlPrefix": "https://x", "tlsConfig": tls}])).extenders
    assert made.tls == Tls(False, "it", b"CA", b"CERT", b"KEY")


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        ({"caFile": "/nowhere"}, "extenders[0].tlsConfig.caFile: cannot be read: No such file"),
        ({"caData": "?"}, "extenders[0].tlsConfig.caData: it is no base64"),
        ({"certData": "QQ=="}, "extenders[0].tlsConfig: a certificate and its key come together"),
        ({"caData": "QQ==", "insecure": True}, "extenders[0].tlsConfig.insecure: it excludes"),
        ({"caData": "QQ==", "caFile": "/x"}, "extenders[0].tlsConfig: caData and caFile exclude"),
    ],
)
def test_mistakes_in_how_it_is_trusted_are_named(tls, problem):
    written = config(extenders=[{"urlPrefix": "https://x", "tlsConfig": tls}])
    assert any(one.startswith(problem) for one in problems(written)), problems(written)
