"""The ClusterTrustBundle of the API server: what its certificates are verified with.

Job: publish the cluster's CA bundle for kubernetes.io/kube-apiserver-serving, and remove what was
    published before it. As upstream, where ClusterTrustBundle is on.
Invariant: where the kind is not served there is nothing to do, and nothing is said of it.
Invariant: the bundle's name tells its content, so that a changed one is another object.
"""

import hashlib
from collections.abc import Iterable, Sequence

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.resources import CLUSTER_TRUST_BUNDLES, Resource
from sampan.api.served import spoken
from sampan.controllers.actions import Action, Create, Plan, Update, deletion
from sampan.controllers.controller import Caches, Controller, View

SIGNER = "kubernetes.io/kube-apiserver-serving"


def trust_bundle_publisher(ca: str) -> Controller:
    bundles = spoken(CLUSTER_TRUST_BUNDLES)

    async def planned(view: View, _key: str) -> Plan:
        return plan(bundles, [*view.cache(bundles).all()], ca)

    return Controller(
        name="kube-apiserver-serving-clustertrustbundle-publisher-controller",
        component="kube-apiserver-serving-clustertrustbundle-publisher",
        wakes={bundles: _if_ours},
        planned=planned,
        at_start=("",),
        optional=(bundles,),
        workers=1,
    )


def plan(resource: Resource, bundles: Sequence[Obj], ca: str) -> Plan:
    name = bundle_name(ca)
    ours = {name_of(one): one for one in bundles if spec_of(one).get("signerName") == SIGNER}
    found = ours.pop(name, None)
    actions: list[Action] = []
    spec = {"signerName": SIGNER, "trustBundle": ca}
    if found is None:
        wanted = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        actions.append(Create(resource, wanted, settled=(AlreadyExists, NotFound)))
    elif spec_of(found).get("trustBundle") != ca:
        actions.append(Update(resource, {**found, "spec": spec}))
    return Plan([*actions, *(deletion(resource, one) for one in ours.values())])


def bundle_name(ca: str) -> str:
    return f"{SIGNER.replace('/', ':')}:{hashlib.sha256(ca.encode()).hexdigest()[:24]}"


def _if_ours(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return (
        ("",) if any(spec_of(one or {}).get("signerName") == SIGNER for one in (old, new)) else ()
    )
