"""What a ledger says is used is what a recount of all objects finds, whatever came before."""

from hypothesis import given
from hypothesis import strategies as st

from sampan.api.quantity import ZERO
from sampan.api.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS
from sampan.api.rules.quota import counts, usage_of
from sampan.api.rules.quota_ledger import QuotaLedger

HARD = {"pods": "9", "count/pods": "9", "requests.cpu": "9", "limits.memory": "9",
        "requests.storage": "9", "persistentvolumeclaims": "9", "configmaps": "9"}  # fmt: skip
TERM = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
QUOTAS = [
    {"spec": {"hard": HARD}},
    {"spec": {"hard": HARD, "scopes": ["Terminating", "NotBestEffort"]}},
    {"spec": {"hard": HARD, "scopes": ["BestEffort"]}},
    {"spec": {"hard": HARD, "scopeSelector": {"matchExpressions": [TERM]}}},
]


def pod(name, cpu, phase, deadline, priority):
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    spec = {"containers": [{"name": "c", "resources": resources}], "priorityClassName": priority}
    if deadline:
        spec["activeDeadlineSeconds"] = deadline
    return PODS, {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
        "status": {"phase": phase},
    }


def claim(name, size):
    spec = {"resources": {"requests": {"storage": size}}}
    return PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


NAMES = st.sampled_from("abc")
OBJECTS = st.one_of(
    st.builds(
        pod,
        NAMES,
        st.sampled_from(["", "1", "500m"]),
        st.sampled_from(["Running", "Failed"]),
        st.sampled_from([0, 5]),
        st.sampled_from(["", "high"]),
    ),
    st.builds(claim, NAMES, st.sampled_from(["1Gi", "2Gi"])),
)
CHANGES = st.lists(st.tuples(OBJECTS, st.booleans()), max_size=25)


def recounted(quota, resource, objects):
    found = {}
    for obj in objects:
        for name, amount in usage_of(resource, obj).items():
            if name in HARD and counts(quota, resource, obj):
                found[name] = found.get(name, ZERO) + amount
    return found


@given(CHANGES, CHANGES, st.sampled_from(QUOTAS))
def test_a_ledger_is_a_recount(before, after, quota):
    ledger = QuotaLedger()
    there = {PODS: {}, PERSISTENT_VOLUME_CLAIMS: {}}

    def play(changes):
        for (resource, obj), stays in changes:
            key = f"ns/{obj['metadata']['name']}"
            there[resource].pop(key, None)
            if stays:
                there[resource][key] = obj
            ledger.put(resource, "ns", key, obj if stays else None)

    play(before)
    for changes in ((), after):
        play(changes)
        for resource, objects in there.items():
            used = ledger.used(quota, "ns", resource, lambda of=resource: there[of].values())
            assert used == recounted(quota, resource, objects.values())


def test_only_what_makes_a_difference_is_a_change():
    ledger, quota = QuotaLedger(), QUOTAS[0]
    _, running = pod("a", "1", "Running", 0, "")
    assert ledger.put(PODS, "ns", "ns/a", running)  # nobody counts yet: it may be one
    ledger.used(quota, "ns", PODS, lambda: [running])
    assert not ledger.put(PODS, "ns", "ns/a", {**running, "status": {"phase": "Pending"}})
    assert ledger.put(PODS, "ns", "ns/a", pod("a", "1", "Running", 7, "")[1])  # for a scope
    assert ledger.put(PODS, "ns", "ns/a", None)


def test_what_is_forgotten_is_counted_anew():
    ledger, quota = QuotaLedger(), QUOTAS[0]
    maps = [{"metadata": {"name": "m", "namespace": "ns"}}]
    assert ledger.used(quota, "ns", CONFIG_MAPS, lambda: maps)
    assert ledger.used(quota, "ns", CONFIG_MAPS, list)  # it is followed, not read again
    ledger.forget_kind(CONFIG_MAPS)
    assert not ledger.used(quota, "ns", CONFIG_MAPS, list)
    ledger.forget("ns")
    assert ledger.used(quota, "ns", CONFIG_MAPS, lambda: maps)
