"""DRAResourceClaimGranularStatusAuthorization: who may write which part of a claim's status.

Job: ask for the verb on resourceclaims/binding where allocation or reservations change, and on
    resourceclaims/driver, by the driver's name, where what a driver says of its devices does. Not
    to be switched off but by the gate: part of the kind itself.
"""

from collections.abc import Awaitable, Mapping, Sequence

from sampan.api import features
from sampan.api.errors import FieldError, Forbidden, field_forbidden, invalid
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.authn.user import User, account_of
from sampan.apiserver.authz.chain import Attributes as Asked
from sampan.apiserver.authz.chain import Authorization

NODE_NAME = "authentication.kubernetes.io/node-name"


def plugin(initializer: PluginInitializer) -> Steps:
    may = initializer.authorization

    def validate(attributes: Attributes) -> Awaitable[None] | None:
        if attributes.subresource != "status" or not features.enabled(
            "DRAResourceClaimGranularStatusAuthorization"
        ):
            return None
        new, old = (((item or {}).get("status") or {}) for item in (attributes.obj, attributes.old))
        binds = any(
            (new.get(key) or None) != (old.get(key) or None)
            for key in ("allocation", "reservedFor")
        )
        drivers = changed_drivers(new, old) if new.get("allocation") else []
        return _check(may, attributes, new, drivers, binds) if binds or drivers else None

    return Steps(validate=validate)


def changed_drivers(new: Obj, old: Obj) -> list[str]:
    """Whose devices are new, gone or told of in other words."""
    before, after = _by_device(old), _by_device(new)
    changed = (key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return sorted({key[0] for key in changed})


def _by_device(status: Obj) -> Mapping[tuple[str, ...], Obj]:
    keys = ("driver", "pool", "device", "shareID")
    devices = status.get("devices") or ()
    return {tuple(str(item.get(key) or "") for key in keys): item for item in devices}


def driver_verbs(user: User, verb: str, allocation: Obj) -> list[str]:
    """Any of them is enough: an account on the node that the claim is bound to may do with less."""
    arbitrary = f"arbitrary-node:{verb}"
    node = _node_of(allocation)
    is_there = (
        node
        and account_of(user.name) is not None
        and user.extra.get(NODE_NAME) == (node,)
        and not names.dns_subdomain(node)
    )
    return [f"associated-node:{verb}", arbitrary] if is_there else [arbitrary]


def _node_of(allocation: Obj) -> str:
    """Of an allocation that is for one node, and says so by its name."""
    terms: list[Obj] = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    fields: list[Obj] = (terms[0].get("matchFields") or []) if len(terms) == 1 else []
    if len(fields) != 1 or terms[0].get("matchExpressions"):
        return ""
    values: list[str] = fields[0].get("values") or []
    is_name = (fields[0].get("key"), fields[0].get("operator")) == ("metadata.name", "In")
    return values[0] if is_name and len(values) == 1 else ""


async def _check(
    may: Authorization, attributes: Attributes, status: Obj, drivers: Sequence[str], binds: bool
) -> None:
    """Raises Invalid."""
    user, verb, resource = attributes.user, attributes.verb, attributes.resource
    errors: list[FieldError] = []

    async def refusal(verbs: Sequence[str], subresource: str, namespace: str, name: str) -> str:
        first = ""
        for each in verbs:
            asked = Asked(
                user, each, resource.group, resource.plural, subresource, namespace, name
            )  # fmt: skip
            try:
                await may.require(asked)
            except Forbidden as refused:
                first = first or refused.message
                continue
            return ""
        return first

    if binds and (why := await refusal([verb], "binding", "", "")):
        said = "changing status.allocation or status.reservedFor requires"
        needed = f'resource="resourceclaims/binding", verb="{verb}" permission'
        errors.append(field_forbidden("status.allocation", f"{said} {needed}: {why}"))
    verbs = driver_verbs(user, verb, status.get("allocation") or {})
    for driver in drivers:
        if why := await refusal(verbs, "driver", attributes.namespace, driver):
            needed = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" permission'
            said = f"changing status.devices requires {needed}: {why}"
            errors.append(field_forbidden("status.devices", said))
    if errors:
        raise invalid(resource.kind, resource.group, attributes.name, errors)
