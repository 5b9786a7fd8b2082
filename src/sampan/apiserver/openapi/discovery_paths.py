"""What the OpenAPI documents say of discovery, the version and the keys of tokens.

Job: which such document there is, and its operations. Pure.
Invariant: groups of custom kinds have none, as the original has none for them.
"""

from collections.abc import Iterable, Iterator

from sampan.api.resources import Resource
from sampan.apiserver.openapi.paths import FORMS, TEXT, Operation, camel, tag_of

_JSON = ("application/json",)
_GROUP = "get information of a group"
_VERSIONS, _RESOURCES = "get available API versions", "get available resources"


def resources_operation(rows: Iterable[Resource]) -> Iterator[Operation]:
    """/apis/GROUP/VERSION/, of a group version of these resources."""
    for path in dict.fromkeys(row.path for row in rows if row.custom is None):
        row = next(row for row in rows if row.path == path)
        id_ = f"get{camel(row.group)}{row.version.capitalize()}APIResources"
        tag = tag_of(row.group, row.version)
        yield _discovered(f"{path}/", id_, _RESOURCES, "v1 APIResourceList", tag)


def root_operations(rows: Iterable[Resource]) -> dict[str, Operation]:
    """By the name of their document: `api`, `apis`, `apis/apps`, `version` …"""
    found = {
        "api": _discovered("/api/", "getCoreAPIVersions", _VERSIONS, "v1 APIVersions", "core"),
        "apis": _discovered("/apis/", "getAPIVersions", _VERSIONS, "v1 APIGroupList", "apis"),
    }
    for group in dict.fromkeys(row.group for row in rows if row.group and row.custom is None):
        id_ = f"get{camel(group)}APIGroup"
        name = f"apis/{group}"
        found[name] = _discovered(f"/{name}/", id_, _GROUP, "v1 APIGroup", tag_of(group))
    found["version"] = Operation(
        "/version/", "get", "", "getCodeVersion", "get the version information for this server",
        gives="version Info", consumes=_JSON, produces=_JSON, tag="version",
    )  # fmt: skip
    found[".well-known/openid-configuration"] = Operation(
        "/.well-known/openid-configuration/", "get", "",
        "getServiceAccountIssuerOpenIDConfiguration",
        "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
        gives=TEXT, consumes=(), produces=_JSON, tag="WellKnown",
    )  # fmt: skip
    found["openid/v1/jwks"] = Operation(
        "/openid/v1/jwks/", "get", "", "getServiceAccountIssuerOpenIDKeyset",
        "get service account issuer OpenID JSON Web Key Set "
        "(contains public token verification keys)",
        gives=TEXT, consumes=(), produces=("application/jwk-set+json",), tag="openid",
    )  # fmt: skip
    return found


def _discovered(path: str, operation_id: str, told: str, gives: str, tag: str) -> Operation:
    return Operation(
        path, "get", "", operation_id, told, gives=gives, consumes=FORMS, produces=FORMS, tag=tag
    )
