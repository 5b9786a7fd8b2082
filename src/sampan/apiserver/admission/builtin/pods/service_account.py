"""ServiceAccount: every pod runs as a service account that exists.

Job: fill in `default`, refuse an account that is missing, copy its pull secrets and, where the
    setting says so, mount a token.
"""

import random
from functools import lru_cache
from zlib import crc32

from sampan.api.errors import ApiError, forbidden
from sampan.api.objects import Obj, annotations_of, uid_of
from sampan.api.resources import SERVICE_ACCOUNTS
from sampan.api.rules.pods import MIRROR_ANNOTATION
from sampan.api.rules.tokens.account_token import token_projection
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.registry.names import ALPHABET, SUFFIX_LENGTH, suffix

VOLUME = "kube-api-access-"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def plugin(initializer: PluginInitializer) -> Steps:
    find, mount_tokens, rng = initializer.registry.find, initializer.mount_tokens, initializer.rng

    def admit(attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None:
            return
        spec = pod.setdefault("spec", {})
        if MIRROR_ANNOTATION in annotations_of(pod):
            _check_mirror(attributes, spec)
            return
        name = spec.setdefault("serviceAccountName", "") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = find(SERVICE_ACCOUNTS, attributes.namespace, name)
        if account is None:
            where = f"{attributes.namespace}/{name}"
            raise _refusal(
                attributes,
                f'error looking up service account {where}: serviceaccount "{name}" not found',
            )
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]
        if mount_tokens and _wants_token(spec, account):
            _mount_token(spec, account, rng)

    return Steps(admit)


def _refusal(attributes: Attributes, why: str) -> ApiError:
    return forbidden("pods", "", attributes.called, why)


def _check_mirror(attributes: Attributes, spec: Obj) -> None:
    if spec.get("serviceAccountName"):
        raise _refusal(attributes, "a mirror pod may not reference service accounts")
    for volume in spec.get("volumes") or ():
        if "secret" in volume:
            raise _refusal(attributes, "a mirror pod may not reference secrets")


def _wants_token(spec: Obj, account: Obj) -> bool:
    for holder in (spec, account):
        asked = holder.get("automountServiceAccountToken")
        if asked is not None:
            return bool(asked)
    return True


def _mount_token(spec: Obj, account: Obj, rng: random.Random) -> None:
    name, volumes = _volume_name(uid_of(account)), spec.get("volumes") or []
    while any(volume.get("name") == name for volume in volumes):
        name = f"{VOLUME}{suffix(rng)}"
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    without = [
        item
        for item in containers
        if all(m.get("mountPath") != TOKEN_PATH for m in item.get("volumeMounts") or ())
    ]
    if not without:
        return
    for container in without:
        mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}
        container.setdefault("volumeMounts", []).append(mount)
    spec["volumes"] = [*volumes, {"name": name, "projected": token_projection()}]


@lru_cache(maxsize=4096)
def _volume_name(account_uid: str) -> str:
    """The same for all pods of an account, where upstream's is random: so pods of one template
    stay alike, and what is alike is kept once."""
    number, letters = crc32(account_uid.encode()), ""
    for _ in range(SUFFIX_LENGTH):
        number, at = divmod(number, len(ALPHABET))
        letters += ALPHABET[at]
    return f"{VOLUME}{letters}"
