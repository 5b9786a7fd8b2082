"""csrsigning: signs approved CertificateSigningRequests with the cluster's CA.

Job: a certificate for each approved request of the built-in signers, or the reason why not.
Invariant: nothing is signed that is not approved, is denied, or breaks its signer's rules.
Invariant: a certificate's dates are the machine's, whatever time it is in the cluster: TLS judges
    by no other, at both ends.
"""

from base64 import b64encode
from dataclasses import field

from sampan.api.objects import Obj, time_text
from sampan.api.rules.conditions import condition_of
from sampan.controllers.access import csr_requests as requests
from sampan.controllers.actions import NOTHING, Plan, Update
from sampan.controllers.controller import Controller, View, own_key
from sampan.core.clock import Clock, SystemClock
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Ca:
    """Who signs; PEM."""

    certificate: bytes
    key: bytes
    clock: Clock = field(default_factory=SystemClock)  # of those who are shown what it signs


def csr_signing_controller(ca: Ca) -> Controller:
    async def planned(view: View, key: str) -> Plan:
        csr = view.cache(requests.REQUESTS).get(key)
        return NOTHING if csr is None else plan(csr, ca, view.now)

    return Controller(
        name="certificatesigningrequest-signing-controller",
        component="certificate-controller",
        aliases=("csrsigning",),
        wakes={requests.REQUESTS: own_key},
        planned=planned,
        workers=2,
    )


def plan(csr: Obj, ca: Ca, now: float) -> Plan:
    spec = csr.get("spec") or {}
    signer = spec.get("signerName") or ""
    done = requests.certificate_of(csr) or any(
        condition_of(csr, item) for item in ("Denied", "Failed")
    )
    if done or signer not in requests.SIGNERS or not condition_of(csr, "Approved"):
        return NOTHING
    from sampan.controllers.access.csr_certificate import issue

    pem = issue(csr, ca.certificate, ca.key, ca.clock.now())
    if isinstance(pem, str):
        failed = requests.with_condition(
            csr, "Failed", "SignerValidationFailure", pem, time_text(now)
        )
        return Plan([Update(requests.REQUESTS, failed, "status")])
    status = {**(csr.get("status") or {}), "certificate": b64encode(pem).decode()}
    return Plan([Update(requests.REQUESTS, {**csr, "status": status}, "status")])
