"""Which calls are not generic. Their handlers, and with them pod validation, load at the first.

Job: (resource, subresource, verb) → the handler, or None where the call is generic.
Invariant: reads and writes of objects, and of their status, load none but those of OWN.
Owner: Chain.
"""

from collections.abc import Mapping

from sampan.apiserver.authn.tokens import Signer
from sampan.apiserver.write.request_scope import Handler

# Resources of which calls without a subresource, or of /status, are not generic.
OWN = frozenset(
    {
        "bindings", "componentstatuses", "localsubjectaccessreviews.authorization.k8s.io",
        "podcertificaterequests.certificates.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "subjectaccessreviews.authorization.k8s.io", "tokenreviews.authentication.k8s.io",
    }
)  # fmt: skip


class LateHandlers:
    def __init__(
        self, signer: Signer | None, loaded: Mapping[tuple[str, str, str], Handler]
    ) -> None:
        """`loaded`: those that are there anyway."""
        self._signer, self._loaded = signer, loaded
        self._table: Mapping[tuple[str, str, str], Handler] | None = None

    def handler_of(self, resource: str, subresource: str, verb: str) -> Handler | None:
        if subresource in ("", "status") and resource not in OWN:
            return self._loaded.get((resource, subresource, verb))
        if self._table is None:
            from sampan.apiserver.subresources.handlers import handlers

            self._table = {**handlers(self._signer), **self._loaded}
        return self._table.get((resource, subresource, verb))
