"""ServiceAccount: every pod runs as a service account that exists.

Job: fill in `default`, refuse an account that is missing, copy its pull secrets and, where the
    setting says so, mount a token.
"""

import random

from sampan.api.account_token import token_projection
from sampan.api.errors import ApiError, forbidden
from sampan.api.objects import Obj, annotations_of
from sampan.api.resources import SERVICE_ACCOUNTS
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts
from sampan.apiserver.registry.names import suffix

MIRROR = "kubernetes.io/config.mirror"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def plugin(parts: PluginParts) -> Steps:
    find, mount_tokens, rng = parts.registry.find, parts.mount_tokens, parts.rng

    def admit(attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None:
            return
        spec = pod.setdefault("spec", {})
        if MIRROR in annotations_of(pod):
            _check_mirror(attributes, spec)
            return
        name = spec.setdefault("serviceAccountName", "") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = find(SERVICE_ACCOUNTS, attributes.namespace, name)
        if account is None:
            where = f"{attributes.namespace}/{name}"
            raise _refused(
                attributes,
                f'error looking up service account {where}: serviceaccount "{name}" not found',
            )
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(one) for one in account["imagePullSecrets"]]
        if mount_tokens and _wants_token(spec, account):
            _mount_token(spec, rng)

    return Steps(admit)


def _refused(attributes: Attributes, why: str) -> ApiError:
    return forbidden("pods", "", attributes.name, why)


def _check_mirror(attributes: Attributes, spec: Obj) -> None:
    if spec.get("serviceAccountName"):
        raise _refused(attributes, "a mirror pod may not reference service accounts")
    for volume in spec.get("volumes") or ():
        if "secret" in volume:
            raise _refused(attributes, "a mirror pod may not reference secrets")


def _wants_token(spec: Obj, account: Obj) -> bool:
    for holder in (spec, account):
        asked = holder.get("automountServiceAccountToken")
        if asked is not None:
            return bool(asked)
    return True


def _mount_token(spec: Obj, rng: random.Random) -> None:
    name = f"kube-api-access-{suffix(rng)}"
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    without = [
        one
        for one in containers
        if all(m.get("mountPath") != TOKEN_PATH for m in one.get("volumeMounts") or ())
    ]
    if not without:
        return
    for container in without:
        mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}
        container.setdefault("volumeMounts", []).append(mount)
    spec.setdefault("volumes", []).append({"name": name, "projected": token_projection()})
