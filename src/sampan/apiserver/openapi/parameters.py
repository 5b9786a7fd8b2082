"""The parameters of the OpenAPI documents' operations.

Job: names → parameters with their types and, where the published definitions have one, their text.
    Pure.
"""

from collections.abc import Mapping

from sampan.core.fast_dataclass import dataclass

SELECTED = (
    "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds",
)  # fmt: skip
LISTED = ("allowWatchBookmarks", *SELECTED, "watch")
WRITTEN = ("dryRun", "fieldManager", "fieldValidation")
DELETED = (
    "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents", "propagationPolicy",
)  # fmt: skip
LOGGED = (
    "container", "follow", "insecureSkipTLSVerifyBackend", "limitBytes", "previous",
    "sinceSeconds", "stream", "tailLines", "timestamps",
)  # fmt: skip
_STREAMED = ("container", "stderr", "stdin", "stdout", "tty")
CONNECTED = {
    "PodAttachOptions": _STREAMED,
    "PodExecOptions": ("command", *_STREAMED),
    "PodPortForwardOptions": ("ports",),
    "PodProxyOptions": ("path",),
    "ServiceProxyOptions": ("path",),
    "NodeProxyOptions": ("path",),
}
_TYPES = {
    **dict.fromkeys(("limit", "timeoutSeconds", "gracePeriodSeconds", "limitBytes", "sinceSeconds",
                     "tailLines", "ports"), "integer"),
    **dict.fromkeys(("allowWatchBookmarks", "sendInitialEvents", "watch", "force",
                     "orphanDependents", "ignoreStoreReadErrorWithClusterBreakingPotential",
                     "follow", "insecureSkipTLSVerifyBackend", "previous", "timestamps",
                     "stderr", "stdin", "stdout", "tty"), "boolean"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    where: str  # path or query
    type: str = "string"
    description: str = ""


def in_path(name: str, description: str = "") -> Parameter:
    return Parameter(name, "path", description=description)


def in_query(*names: str, texts: Mapping[str, str] | None = None) -> tuple[Parameter, ...]:
    told = texts or {}
    return tuple(
        Parameter(name, "query", _TYPES.get(name, "string"), told.get(name, "")) for name in names
    )
