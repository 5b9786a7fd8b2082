"""The one place that turns the container runtime's gRPC errors into ours.

Job: CriError → RuntimeFailure, in upstream's words.
Invariant: what the runtime does not have is Gone, what does not answer is RuntimeUnavailable.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sampan.core.grpc.status_codes import status_text
from sampan.cri.client import CriError, CriNotFound, CriUnavailable
from sampan.kubelet.contracts.runtime import RuntimeFailure, RuntimeUnavailable


class Gone(RuntimeFailure):
    """CRI said NOT_FOUND."""


@contextmanager
def translate_errors() -> Iterator[None]:
    try:
        yield
    except CriError as error:
        raise failure_of(error) from error


def unspoken(error: CriError) -> RuntimeFailure:
    """Docker's packages of containerd come with their CRI part switched off."""
    failure = failure_of(error)
    if error.code != "UNIMPLEMENTED":
        return failure
    return RuntimeFailure(
        f"it does not speak CRI v1 ({failure}); with containerd, take cri out of disabled_plugins "
        "in its config.toml"
    )


def failure_of(error: CriError) -> RuntimeFailure:
    kinds: dict[type[CriError], Callable[[str], RuntimeFailure]] = {
        CriUnavailable: RuntimeUnavailable,
        CriNotFound: Gone,
    }
    # As upstream prints gRPC's errors in statuses and events.
    text = status_text(error.code, error.message)
    return kinds.get(type(error), RuntimeFailure)(text)
