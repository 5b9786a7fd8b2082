"""What is asked of a server about ClusterTrustBundles and PodCertificateRequests.

`told` plays it through any server; tests/flow/recorded/certificate_kinds.json is what originals of
v1.37 answered. Keys and certificates are made anew each time; what differs by them is left out.
"""

import base64
import datetime
import re
from collections.abc import Awaitable, Callable
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from sampan.api.objects import Obj, time_text
from sampan.core.certificates import pod_keys

# (method, path, body, user: admin, node or user) → (code, answer)
Send = Callable[[str, str, Any, str], Awaitable[tuple[int, Any]]]
GROUP = "/apis/certificates.k8s.io"
SIGNER = "example.com/pods"
_CHANGING = re.compile(
    # Uids, PEM blocks, times and keys.
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|-----BEGIN[^\"]*|\d{4}-\d\d-\d\dT[0-9:]+Z|MI[A-Za-z0-9+/=]{60,}"
)


def certificate(
    key: Any = None,
    *,
    ca: bool = False,
    begins: float | None = None,
    seconds: float = 86400.0,
    name: str = "x",
    now: float = 0.0,
) -> str:
    signing = ec.generate_private_key(ec.SECP256R1())
    start = datetime.datetime.fromtimestamp(now if begins is None else begins, datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key((key or signing).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(seconds=seconds))
    )
    if ca:
        built = built.add_extension(x509.BasicConstraints(True, None), critical=True)
    return built.sign(signing, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Story:
    def __init__(self, send: Send, version: str, now: float) -> None:
        self._send, self.version, self.now = send, version, now
        self.answers: dict[str, Any] = {}

    async def ask(
        self, label: str, method: str, path: str, body: Any = None, user: str = "admin"
    ) -> Any:
        code, answer = await self._send(method, path, body, user)
        # v1.37 says which authorizer it was.
        said = answer.get("message") if code >= 400 else None
        if said is None:
            self.answers[label] = code
        else:
            self.answers[label] = [code, _CHANGING.sub("…", said).replace(": node: ", ": ")]
        return answer

    async def told(self) -> dict[str, Any]:
        await self._bundles()
        await self._requests()
        return self.answers

    async def _bundles(self) -> None:
        path = f"{GROUP}/{self.version}/clustertrustbundles"
        root, other = certificate(ca=True), certificate(ca=True, name="y")
        leaf = certificate()
        headers = root.replace("-----\n", "-----\nA: b\n\n", 1)
        odd = root.replace("CERTIFICATE", "PUBLIC KEY")
        broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        texts = {
            "good": f"text\n{root}between\n{other}", "none": "", "noise": "roots", "leaf": leaf,
            "twice": root + other + root, "headers": headers, "type": odd, "broken": broken,
            "long": "x" * (1 << 20) + "y", "several": odd + leaf + broken,
        }  # fmt: skip
        for label, text in texts.items():
            body = bundle(label, self.version, text)
            await self.ask(f"bundle {label}", "POST", path, body)
        names = {
            "signed": ("example.com:pods:a", SIGNER),
            "other prefix": ("example.com:nodes:a", SIGNER),
            "no prefix": ("a", SIGNER),
            "prefix without signer": ("example.com:pods:b", ""),
            "capitals": ("Roots", ""),
            "capitals after the signer": ("example.com:pods:A", SIGNER),
            "no domain": ("pods:x:a", "pods/x"),
            "no path": ("pods:a", "pods"),
            "odd domain": ("exa_mple.com:x:a", "exa_mple.com/x"),
            "odd path": ("example.com:X:a", "example.com/X"),
            "empty path": ("example.com::a", "example.com/"),
        }
        for label, (name, signer) in names.items():
            body = bundle(name, self.version, root, signer)
            await self.ask(f"name {label}", "POST", path, body)
        await self._bundle_changes(path, root, other)

    async def _bundle_changes(self, path: str, root: str, other: str) -> None:
        one = f"{path}/example.com:pods:a"
        found = await self.ask("read", "GET", one)
        await self.ask(
            "other signer",
            "PUT",
            one,
            {**found, "spec": {**found["spec"], "signerName": "example.com/nodes"}},
        )
        await self.ask(
            "without version", "PUT", one, bundle("example.com:pods:a", self.version, other, SIGNER)
        )
        found = await self.ask(
            "other roots",
            "PUT",
            one,
            {**found, "spec": {"signerName": SIGNER, "trustBundle": other}},
        )
        await self.ask(
            "damaged", "PUT", one, {**found, "spec": {"signerName": SIGNER, "trustBundle": "x"}}
        )
        await self.ask("by signer", "GET", f"{path}?fieldSelector=spec.signerName%3D{SIGNER}")
        await self.ask("by roots", "GET", f"{path}?fieldSelector=spec.trustBundle%3Dx")
        # A user who may write bundles, and not attest for signers.
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "bundles"},
            "rules": [
                {
                    "apiGroups": ["certificates.k8s.io"],
                    "resources": [
                        "clustertrustbundles",
                        "podcertificaterequests",
                        "podcertificaterequests/status",
                    ],
                    "verbs": ["*"],
                }
            ],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        await self.ask("role", "POST", f"{rbac}/clusterroles", role)
        binding = {
            "apiVersion": role["apiVersion"],
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "bundles"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "bundles",
            },
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "eve"}],
        }
        await self.ask("binding", "POST", f"{rbac}/clusterrolebindings", binding)
        await self.ask("unsigned by eve", "POST", path, bundle("eves", self.version, root), "eve")
        await self.ask(
            "signed by eve",
            "POST",
            path,
            bundle("example.com:pods:eve", self.version, root, SIGNER),
            "eve",
        )
        found = await self.ask("read again", "GET", one)
        labelled = {**found, "metadata": {**found["metadata"], "labels": {"a": "b"}}}
        await self.ask("labelled by eve", "PUT", one, labelled, "eve")
        held = {**found, "metadata": {**found["metadata"], "finalizers": ["example.com/x"]}}
        await self.ask("held by eve", "PUT", one, held, "eve")

    async def _requests(self) -> None:
        path = f"{GROUP}/{self.version}/namespaces/default/podcertificaterequests"
        key = pod_keys.new_key("ECDSAP256")
        spec = await self._spec(key)
        wrong: dict[str, Obj] = {
            "nothing": {},
            "no signer": {"signerName": ""},
            "short": {"maxExpirationSeconds": 3599},
            "long": {"maxExpirationSeconds": 91 * 86400 + 1},
            "long for Kubernetes": {"signerName": "kubernetes.io/x", "maxExpirationSeconds": 86401},
            "no names": {"podName": "", "podUID": "", "nodeName": "", "nodeUID": "",
                         "serviceAccountName": "", "serviceAccountUID": ""},
            "long uid": {"podUID": "u" * 129},
            "odd names": {"podName": "A", "nodeName": "B", "serviceAccountName": "C"},
            "annotations": {"unverifiedUserAnnotations": {"a": "b", "c.com/D": "e"}},
            "no key": {"stubPKCS10Request": None},
            "damaged key": {"stubPKCS10Request": encoded(b"key")},
            "another key": {"stubPKCS10Request": encoded(_stub(ec.SECP224R1()))},
            "short rsa": {"stubPKCS10Request": encoded(_rsa_stub())},
        }  # fmt: skip
        for label, changes in wrong.items():
            given = {**spec, **changes} if label != "nothing" else {}
            await self.ask(f"request {label}", "POST", path, request("r", self.version, given))
        for kind in ("RSA3072", "ECDSAP384", "ECDSAP521", "ED25519"):
            given = {
                **spec,
                "stubPKCS10Request": encoded(pod_keys.stub_request(pod_keys.new_key(kind))),
            }
            made = request(f"r-{kind.lower()}", self.version, given)
            await self.ask(f"request {kind}", "POST", path, made)
        made = await self.ask("request", "POST", path, request("r", self.version, spec))
        self.answers["defaulted"] = made["spec"].get("maxExpirationSeconds")
        changed = {**made, "spec": {**made["spec"], "signerName": "example.com/other"}}
        await self.ask("changed", "PUT", f"{path}/r", changed)
        await self._verdicts(path, key, made)
        await self._by_node(path, spec)

    async def _spec(self, key: pod_keys.PrivateKey) -> Obj:
        pods = "/api/v1/namespaces/default/pods"
        account = await self.ask(
            "account",
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}},
        )
        node = await self.ask(
            "node",
            "POST",
            "/api/v1/nodes",
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
        )
        source = {
            "podCertificate": {
                "signerName": SIGNER,
                "keyType": "ED25519",
                "credentialBundlePath": "all.pem",
            }
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "nodeName": "n1",
                "serviceAccountName": "runner",
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "projected": {"sources": [source]}}],
            },
        }
        made = await self.ask("pod", "POST", pods, pod)
        return {
            "signerName": SIGNER, "podName": "p", "podUID": made["metadata"]["uid"],
            "serviceAccountName": "runner", "serviceAccountUID": account["metadata"]["uid"],
            "nodeName": "n1", "nodeUID": node["metadata"]["uid"],
            "stubPKCS10Request": encoded(pod_keys.stub_request(key)),
        }  # fmt: skip

    def _issued(self, key: pod_keys.PrivateKey, **changes: Any) -> Obj:
        """A good status, and what is different in it."""
        begins = float(int(changes.pop("begins", self.now)))
        seconds = changes.pop("seconds", 86400.0)
        return {
            "conditions": [verdict("Issued", self.now)],
            "certificateChain": certificate(key, begins=begins, seconds=seconds),
            "notBefore": time_text(begins),
            "notAfter": time_text(begins + seconds),
            "beginRefreshAt": time_text(begins + seconds / 2),
            **changes,
        }

    async def _verdicts(self, path: str, key: pod_keys.PrivateKey, made: Obj) -> None:
        issued, now = self._issued, self.now
        wrong: dict[str, Obj] = {
            "unknown condition": {"conditions": [verdict("Good", now)]},
            "untrue": {"conditions": [{**verdict("Denied", now), "status": "False"}]},
            "two": {"conditions": [verdict("Denied", now), verdict("Failed", now)]},
            "bare condition": {"conditions": [{"type": "Denied", "status": "True"}]},
            "denied with a chain": {**issued(key), "conditions": [verdict("Denied", now)]},
            "nothing decided": {"certificateChain": certificate(key, now=now)},
            "no chain": issued(key, certificateChain=""),
            "odd chain": issued(
                key, certificateChain=certificate(key, now=now).replace("CERTIFICATE", "X")
            ),
            "damaged chain": issued(
                key,
                certificateChain="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            ),
            "another's key": issued(pod_keys.new_key("ED25519")),
            "no times": {
                k: v for k, v in issued(key).items() if k in ("conditions", "certificateChain")
            },
            "other beginning": issued(key, notBefore=time_text(now + 60)),
            "long ago": issued(key, begins=now - 400),
            "other end": issued(key, notAfter=time_text(now + 60)),
            "short": issued(key, seconds=3000.0),
            "long": issued(key, seconds=90000.0),
            "refreshed early": issued(key, beginRefreshAt=time_text(now + 60)),
            "refreshed late": issued(key, beginRefreshAt=time_text(now + 86400 - 60)),
        }
        for label, status in wrong.items():
            await self.ask(f"status {label}", "PUT", f"{path}/r/status", {**made, "status": status})
        good = {**made, "status": issued(key)}
        await self.ask("issued by eve", "PUT", f"{path}/r/status", good, "eve")
        found = await self.ask("issued", "PUT", f"{path}/r/status", good)
        denied = {**found, "status": {"conditions": [verdict("Denied", now)]}}
        await self.ask("denied after all", "PUT", f"{path}/r/status", denied)

    async def _by_node(self, path: str, spec: Obj) -> None:
        given = {
            "of another node": {"nodeName": "n2"}, "other node uid": {"nodeUID": "x"},
            "no such pod": {"podName": "q"}, "other pod uid": {"podUID": "x"},
            "other account": {"serviceAccountName": "default"},
            "other account uid": {"serviceAccountUID": "x"},
            "unmounted signer": {"signerName": "example.com/other"}, "good": {},
        }  # fmt: skip
        for label, changes in given.items():
            made = request(f"node-{label.replace(' ', '-')}", self.version, {**spec, **changes})
            await self.ask(f"node {label}", "POST", path, made, "node")
        await self.ask("node reads", "GET", f"{path}/node-good", None, "node")
        await self.ask("node lists", "GET", path, None, "node")
        selected = f"{GROUP}/{self.version}/podcertificaterequests?fieldSelector=spec.nodeName%3Dn1"
        await self.ask("node lists its own", "GET", selected, None, "node")
        await self.ask("node deletes", "DELETE", f"{path}/node-good", None, "node")
        status = {"status": {"conditions": [verdict("Denied", self.now)]}}
        await self.ask("node denies", "PUT", f"{path}/node-good/status", status, "node")
        bundles = f"{GROUP}/{self.version}/clustertrustbundles"
        await self.ask("node lists bundles", "GET", bundles, None, "node")
        await self.ask("node makes a bundle", "POST", bundles, {}, "node")


def bundle(name: str, version: str, text: str, signer: str = "") -> Obj:
    spec = {"trustBundle": text, **({"signerName": signer} if signer else {})}
    return {
        "apiVersion": f"certificates.k8s.io/{version}",
        "kind": "ClusterTrustBundle",
        "metadata": {"name": name},
        "spec": spec,
    }


def request(name: str, version: str, spec: Obj) -> Obj:
    return {
        "apiVersion": f"certificates.k8s.io/{version}",
        "kind": "PodCertificateRequest",
        "metadata": {"name": name},
        "spec": spec,
    }


def verdict(kind: str, now: float) -> Obj:
    return {
        "type": kind,
        "status": "True",
        "reason": "R",
        "message": "m",
        "lastTransitionTime": time_text(now),
    }


def _stub(curve: ec.EllipticCurve) -> bytes:
    return pod_keys.stub_request(ec.generate_private_key(curve))


def _rsa_stub() -> bytes:
    return pod_keys.stub_request(rsa.generate_private_key(65537, 2048))
