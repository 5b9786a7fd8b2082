"""No controller takes more than a look at each item of a long list, whatever else there is.

What is counted are lines of ours that run, not seconds: N more items may cost so many lines each,
and not so many for every node, for each of the others, or for each byte.
"""

import random

import pytest

from sampan.api.objects import copy_of
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import View
from tests.growth.line_counts import Counts, counted
from tests.support import virtual_time
from tests.support.workload_lives.manifests import (
    budget,
    claim_template,
    cron_job,
    daemon_set,
    deployment,
    job,
    made,
    pod,
    replica_set,
    replication_controller,
    service,
    stateful_set,
)
from tests.support.worlds.planned import caches_of, keys_of, make
from tests.support.worlds.small_api import SmallApi

N = 250
NODES = 60
ROUNDS = 2
# Per item, of all plans of a round: to read it, to write it down, to make something of it.
MOST_LINES = 150
CLOCK = virtual_time.LoopClock()
SETTINGS = ControllerSettings(root_ca="PEM", clock=CLOCK, cluster_cidrs=("10.0.0.0/16",))
BY_NAME = {one.name: one for one in all_controllers(SETTINGS)}


def expressions(count):
    return [{"key": f"k{n}", "operator": "NotIn", "values": ["v"]} for n in range(count)]


def selecting(make_one, count):
    found = make_one()
    found["spec"]["selector"]["matchExpressions"] = expressions(count)
    return found


def labelled(make_one, count):
    labels = {f"k{n}": "v" for n in range(count)}
    found = make_one()
    selector = found["spec"]["selector"]
    found["spec"]["selector"] = {**selector, "matchLabels": labels}
    found["spec"]["template"]["metadata"]["labels"] = labels
    return found


def volumes(count):
    return {"volumes": [{"name": f"n{n}", "secret": {"secretName": "s"}} for n in range(count)]}


def tolerations(count):
    return {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(count)]}


def node_terms(count):
    """None of which is met by any node."""
    terms = [{"matchExpressions": [{"key": f"k{n}", "operator": "Exists"}]} for n in range(count)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def quota(count):
    hard = {f"count/k{n}.example.com": "1" for n in range(count)}
    return made("v1", "ResourceQuota", "q", {"hard": hard})


def claim(count):
    spec = copy_of(claim_template()["spec"])
    spec["selector"] = {"matchExpressions": expressions(count)}
    return made("v1", "PersistentVolumeClaim", "c", spec)


WORKLOADS = {"Deployment": deployment, "ReplicaSet": replica_set, "StatefulSet": stateful_set,
             "DaemonSet": daemon_set}  # fmt: skip
TEMPLATES = {"volumes": volumes, "tolerations": tolerations, "node terms": node_terms}
OBJECTS = {
    **{f"{kind} of expressions": lambda n, one=one: selecting(one, n)
       for kind, one in WORKLOADS.items()},
    **{f"{kind} of labels": lambda n, one=one: labelled(one, n) for kind, one in WORKLOADS.items()},
    **{f"{kind} of {what}": lambda n, one=one, of=of: one(pod=of(n))
       for kind, one in {**WORKLOADS, "Job": job, "CronJob": cron_job}.items()
       for what, of in TEMPLATES.items()},
    "StatefulSet of claims":
        lambda n: stateful_set(volumeClaimTemplates=[claim_template(f"n{k}") for k in range(n)]),
    "ReplicationController of labels": lambda n: replication_controller(
        selector={f"k{k}": "v" for k in range(n)}),
    "Service of labels": lambda n: service(selector={f"k{k}": "v" for k in range(n)}),
    "Service of ports": lambda n: service(
        ports=[{"name": f"n{k}", "port": k + 1} for k in range(n)]),
    "ClusterRole of selectors": lambda n: made(
        "rbac.authorization.k8s.io/v1", "ClusterRole", "r", rules=[], aggregationRule={
            "clusterRoleSelectors": [{"matchLabels": {f"k{k}": "v"}} for k in range(n)]}),
    "budget of expressions":
        lambda n: budget(minAvailable=1, selector={"matchExpressions": expressions(n)}),
    "quota of kinds": quota,
    "claim of expressions": claim,
}  # fmt: skip


def world(heavy):
    nodes = [made("v1", "Node", f"node-{n}", {}) for n in range(NODES)]
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    others = [pod(f"pod-{n}") for n in range(10)]
    others += [
        made("rbac.authorization.k8s.io/v1", "ClusterRole", f"role-{n}", rules=[rule] * 20)
        for n in range(60)
    ]
    found = [heavy, *nodes, *others]
    for number, obj in enumerate(found):
        obj["metadata"] |= {"uid": f"u{number}", "generation": 1, "resourceVersion": "1"}
        if obj["kind"] not in ("Node", "ClusterRole"):
            obj["metadata"]["namespace"] = "default"
    return found


def lines_of(name, count):
    """Of every controller that the object wakes, by place."""
    counts: Counts = Counts()

    async def planned(controller):
        caches = caches_of(controller, world(OBJECTS[name](count)))
        view = View(caches.__getitem__, SmallApi(CLOCK), 1_700_000_000.0, random.Random(1))
        for _ in range(ROUNDS):
            for key in {key for _, key in keys_of(controller, caches)}:
                with counted(counts):
                    plan = await controller.planned(view, key)
                make(plan, caches)

    for controller in BY_NAME.values():
        virtual_time.run(planned(controller))
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTS)
def test_a_plan_costs_a_few_lines_for_each_item(name):
    few, many = lines_of(name, N), lines_of(name, 2 * N)
    more = {place: (many[place] - few[place]) / N for place in many}
    worst = sorted(more.items(), key=lambda item: -item[1])[:5]
    assert sum(more.values()) <= MOST_LINES, worst
