"""Certificates of pods: keys made on the node, requests to their signers, renewed in time.

Job: for each podCertificate projection a key and a PodCertificateRequest; its chain once a signer
    has issued it. What becomes of a request: certificate_states.py.
Invariant: keys are in memory and in the pod's volume only; after a restart everything is asked for
    anew, as upstream.
Invariant: requests are watched from the first pod on that wants a certificate.
Owner: ProjectedCertificates.
"""

import asyncio
import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sampan.api import features
from sampan.api.errors import ApiError
from sampan.api.objects import (
    Obj,
    meta_of,
    name_of,
    namespace_of,
    seconds_of,
    spec_of,
    uid_of,
)
from sampan.api.resources import NODES, POD_CERTIFICATE_REQUESTS, SERVICE_ACCOUNTS
from sampan.api.served import spoken
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.log import get_logger
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.volumes import certificate_states as states
from sampan.kubelet.volumes.payload import Credentials, Place
from sampan.kubelet.volumes.references import volumes_of

log = get_logger(__name__)

RecordWarning = Callable[[Obj, str, str], None]  # a warning about a pod: reason and message


def certificate_sources(pod: Obj, kind: str) -> Iterator[tuple[Place, Obj]]:
    """The pod's projections of one kind."""
    for volume in volumes_of(pod):
        sources = (volume.get("projected") or {}).get("sources") or ()
        for index, source in enumerate(sources):
            if source.get(kind):
                yield (volume["name"], index), source[kind]


class PodCertificates:
    def __init__(
        self, context: NodeContext, changed: Callable[[str], None], tell: RecordWarning
    ) -> None:
        self._context, self._changed, self._tell = context, changed, tell
        self._resource = spoken(POD_CERTIFICATE_REQUESTS)
        self._states: dict[str, dict[Place, states.State]] = {}
        self._informer = self._followed()

    def _followed(self) -> Informer:
        context = self._context
        selector = f"spec.nodeName={context.settings.node_name}"
        informer = Informer(
            context.client,
            Selection(self._resource, field_selector=selector),
            clock=context.clock,
            rng=context.rng,
        )
        informer.on_change(self._heard)
        context.tasks.supervise("pod certificate requests", informer.run)
        return informer

    def _heard(self, old: Obj | None, new: Obj | None) -> None:
        uid = spec_of(new or old or {}).get("podUID")
        if uid in self._states:
            self._changed(str(uid))

    async def credentials(self, pod: Obj, place: Place, source: Obj) -> Credentials:
        """Raises VolumeFailure."""
        known = self._states.setdefault(uid_of(pod), {})
        state = known.get(place)
        found = states.step(state, self._seen(pod, state), self._context.clock.now(), self._jitter)
        for reason, message in found.warned_of:
            self._tell(pod, reason, message)
        state = found.state
        if found.asks:
            asked = await self._ask(pod, source, "refresh" if state is not None else "initial")
            state = replace(state, next=asked) if isinstance(state, states.Held) else asked
        assert state is not None
        known[place] = state
        return _credentials(state)

    @property
    def _jitter(self) -> float:
        return self._context.rng.random() * states.JITTER_SECONDS

    def _seen(self, pod: Obj, state: states.State | None) -> Obj | None:
        name = states.request_of(state)
        return self._informer.cache.get(f"{namespace_of(pod)}/{name}") if name else None

    def next_due(self, uid: str) -> float | None:
        now = self._context.clock.now()
        moments = [states.next_due(state, now) for state in self._states.get(uid, {}).values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def forget(self, uid: str) -> None:
        self._states.pop(uid, None)

    async def _ask(self, pod: Obj, source: Obj, which: str) -> states.Asked:
        client, namespace = self._context.client, namespace_of(pod)
        account = spec_of(pod).get("serviceAccountName") or "default"
        doing = "while fetching service account"
        try:
            found = await client.get(SERVICE_ACCOUNTS, namespace, account)
            doing = "while getting node object from local cache"
            node = await client.get(NODES, "", self._context.settings.node_name)
            key_pem, proof = await _new_key(source.get("keyType") or "", uid_of(pod))
            doing = f"while creating {which} PodCertificateRequest: while creating on API"
            body = _request(pod, source, node, found, proof)
            made = await client.create(self._resource, body, namespace)
        except ApiError as error:
            raise VolumeFailure(f"{doing}: {error}") from error
        created = seconds_of(meta_of(made)["creationTimestamp"])
        abandoned = created + states.ABANDONED_SECONDS + self._jitter
        log.info("pod certificate asked for", pod=name_of(pod), request=name_of(made))
        return states.Asked(name_of(made), key_pem, abandoned)


def _credentials(state: states.State) -> Credentials:
    if isinstance(state, states.Held):
        return Credentials(state.key.encode(), state.chain.encode())
    if isinstance(state, states.Refused):
        raise VolumeFailure(
            f"PodCertificateRequest was permanently {state.word}: "
            f'reason="{state.reason}" message="{state.message}"'
        )
    raise VolumeFailure("credential bundle is not issued yet")


async def _new_key(kind: str, uid: str) -> tuple[str, dict[str, str]]:
    """The key, and how its request proves it. Nodes without such pods load no cryptography."""
    from sampan.core.certificates import pod_keys

    if kind.startswith("RSA"):  # it takes long to find one
        key = await asyncio.to_thread(pod_keys.new_key, kind)
    else:
        key = pod_keys.new_key(kind)
    if features.changed("PodKeyInStubRequest"):
        proof = {"stubPKCS10Request": pod_keys.stub_request(key)}
    else:
        public = pod_keys.public_bytes(key.public_key())
        proof = {"pkixPublicKey": public, "proofOfPossession": pod_keys.proof_of(key, uid)}
    encoded = {name: base64.b64encode(value).decode() for name, value in proof.items()}
    return pod_keys.key_pem(key), encoded


def _request(pod: Obj, source: Obj, node: Obj, account: Obj, proof: Mapping[str, str]) -> Obj:
    owner = {
        "apiVersion": "v1" if features.changed("PodCertificateOwnerVersion") else "core/v1",
        "kind": "Pod",
        "name": name_of(pod),
        "uid": uid_of(pod),
    }
    spec = {
        "signerName": source.get("signerName"),
        "podName": name_of(pod),
        "podUID": uid_of(pod),
        "serviceAccountName": name_of(account),
        "serviceAccountUID": uid_of(account),
        "nodeName": name_of(node),
        "nodeUID": uid_of(node),
        "maxExpirationSeconds": source.get("maxExpirationSeconds"),
        "unverifiedUserAnnotations": source.get("userAnnotations"),
        **proof,
    }
    resource = spoken(POD_CERTIFICATE_REQUESTS)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "generateName": "req-",
            "namespace": namespace_of(pod),
            "ownerReferences": [owner],
        },
        "spec": {name: value for name, value in spec.items() if value is not None},
    }
