"""What a caller must say, and what it may ask for. Pure.

Job: refuse with the codes that CSI names, before anything is done.
"""

from collections.abc import Iterable
from typing import Any

from sampan.core.digits import number_up_to
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.drivers.csi.settings import DIRECTORY, KIND, LOOP, MUTABLE
from sampan.plugins.gen import sampan_csi_pb2 as csi

Message = Any
GIB = 1 << 30
SMALLEST_BYTES, DEFAULT_BYTES = 1 << 20, GIB
_MODES = csi.VolumeCapability.AccessMode
# A volume is a directory of one node: nobody elsewhere reads or writes it.
_POSSIBLE = frozenset(
    {
        _MODES.SINGLE_NODE_WRITER, _MODES.SINGLE_NODE_READER_ONLY,
        _MODES.SINGLE_NODE_SINGLE_WRITER, _MODES.SINGLE_NODE_MULTI_WRITER,
        _MODES.MULTI_NODE_READER_ONLY, _MODES.MULTI_NODE_MULTI_WRITER,
        _MODES.MULTI_NODE_SINGLE_WRITER,
    }
)  # fmt: skip


def invalid(what: str) -> GrpcFailure:
    return GrpcFailure(what, code="INVALID_ARGUMENT")


def not_found(what: str) -> GrpcFailure:
    return GrpcFailure(what, code="NOT_FOUND")


def need(**given: object) -> None:
    """Raises GrpcFailure for the first that is missing."""
    for name, value in given.items():
        if not value:
            raise invalid(f"{name} is required")


def check_capabilities(asked: Iterable[Message]) -> bool:
    """Whether they are for a block device. Raises GrpcFailure."""
    kinds = {capability.WhichOneof("access_type") for capability in asked}
    if not kinds or None in kinds:
        raise invalid("volume_capabilities are required, each with an access type")
    if len(kinds) > 1:
        raise invalid("a volume is mounted, or a block device, not both")
    for capability in asked:
        if capability.access_mode.mode not in _POSSIBLE:
            raise invalid(f"access mode {capability.access_mode.mode} is not possible")
    return kinds == {"block"}


def kind_of(parameters: dict[str, str], *, is_block: bool) -> str:
    """Raises GrpcFailure."""
    kind = parameters.get(KIND) or (LOOP if is_block else DIRECTORY)
    if kind not in (DIRECTORY, LOOP):
        raise invalid(f"parameter {KIND}: {kind!r} is neither {DIRECTORY} nor {LOOP}")
    if is_block and kind == DIRECTORY:
        raise invalid("a directory cannot be a block device")
    return kind


def check_mutable(parameters: Iterable[str]) -> None:
    unknown = sorted(set(parameters) - MUTABLE)
    if unknown:
        raise invalid(f"mutable parameters {unknown} are not known, only {sorted(MUTABLE)}")


def size_of(wanted: Message, least: int = 0) -> int:
    """How large a new volume is. Raises GrpcFailure."""
    if wanted.required_bytes < 0 or wanted.limit_bytes < 0:
        raise GrpcFailure("capacity_range is negative", code="OUT_OF_RANGE")
    size = max(wanted.required_bytes or DEFAULT_BYTES, SMALLEST_BYTES, least)
    if wanted.limit_bytes and not wanted.required_bytes:
        size = max(min(size, wanted.limit_bytes), least)
    if wanted.limit_bytes and size > wanted.limit_bytes:
        what = f"{size} bytes are more than the limit of {wanted.limit_bytes}"
        raise GrpcFailure(what, code="OUT_OF_RANGE")
    return int(size)


def fits(size: int, wanted: Message) -> bool:
    if wanted.required_bytes and size < wanted.required_bytes:
        return False
    return not wanted.limit_bytes or size <= wanted.limit_bytes


def fs_type_of(asked: Iterable[Message]) -> str:
    return next((one.mount.fs_type for one in asked if one.mount.fs_type), "")


def page(found: list[Any], most: int, token: str) -> tuple[list[Any], str]:
    """One page of a list, and where the next begins. Raises GrpcFailure."""
    if most < 0:
        raise invalid("max_entries is negative")
    begin = number_up_to(len(found), token) if token else 0
    if begin is None:
        raise GrpcFailure(f"starting_token {token!r} is not one of ours", code="ABORTED")
    end = begin + most if most else len(found)
    return found[begin:end], str(end) if end < len(found) else ""
