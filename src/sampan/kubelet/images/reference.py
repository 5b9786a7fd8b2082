"""What an image reference says: registry, repository, tag, digest. Pure.

Job: the grammar of image references, and the full form of the short ones.
Invariant: the full name of a reference parses to the same reference.
"""

import re

from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = lazy_pattern(
    rf"(?P<name>(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
_LONGEST_NAME = 255
_DEFAULT_REGISTRY = "docker.io"
# Our own, of which nobody needs a registry.
PAUSE_IMAGE, HELLO_IMAGE = "localhost/sampan/pause:1", "localhost/sampan/hello:1"


class InvalidReference(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Reference:
    registry: str  # docker.io where the text has none
    path: str  # library/… where docker.io's short form was used
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        return f"{self.registry}/{self.path}"

    def full_name(self) -> str:
        """With registry, and with `:latest` where neither tag nor digest is given."""
        tag = self.tag or ("" if self.digest else "latest")
        return (
            self.repository
            + (f":{tag}" if tag else "")
            + (f"@{self.digest}" if self.digest else "")
        )


def parse(text: str) -> Reference:
    """As docker's grammar; the messages are those that upstream passes on."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise InvalidReference(f'couldn\'t parse image name "{text}": {_complaint(text)}')
    if re.fullmatch(r"[a-f0-9]{64}", text):
        raise InvalidReference(
            f'couldn\'t parse image name "{text}": invalid repository name ({text}), '
            "cannot specify 64-byte hexadecimal strings"
        )
    digest = match["digest"] or ""
    _check_digest(text, digest)
    registry, path = _split(match["name"])
    if path != path.lower():
        raise InvalidReference(
            f'couldn\'t parse image name "{text}": invalid reference format: '
            f"repository name ({path}) must be lowercase"
        )
    if len(path) > _LONGEST_NAME:
        raise InvalidReference(
            f'couldn\'t parse image name "{text}": repository name must not be more than '
            f"{_LONGEST_NAME} characters"
        )
    return Reference(registry, path, match["tag"] or "", digest)


def with_default_tag(text: str) -> str:
    """`text` itself, with `:latest` where it has neither tag nor digest.

    As upstream: the registry is not filled in, so that the runtime decides what a short name means.
    """
    reference = parse(text)
    return text if reference.tag or reference.digest else f"{text}:latest"


def _split(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    # Without a dot, a port or capitals, the first part is a directory of the default registry.
    is_host = slash and (
        "." in first or ":" in first or first == "localhost" or first != first.lower()
    )
    registry, path = (first, rest) if is_host else (_DEFAULT_REGISTRY, name)
    if registry == "index.docker.io":
        registry = _DEFAULT_REGISTRY
    if registry == _DEFAULT_REGISTRY and "/" not in path:
        path = f"library/{path}"
    return registry, path


def _check_digest(text: str, digest: str) -> None:
    algorithm, _, encoded = digest.partition(":")
    if not digest:
        return
    if algorithm not in _DIGEST_LENGTHS:
        raise InvalidReference(f'couldn\'t parse image name "{text}": unsupported digest algorithm')
    if len(encoded) != _DIGEST_LENGTHS[algorithm] or encoded != encoded.lower():
        raise InvalidReference(
            f'couldn\'t parse image name "{text}": invalid checksum digest '
            + ("length" if encoded == encoded.lower() else "format")
        )


def _complaint(text: str) -> str:
    lowered = _REFERENCE.fullmatch(text.lower())
    if text != text.lower() and lowered is not None:
        path = text.partition("@")[0]
        head, colon, tail = path.rpartition(":")
        path = head if colon and "/" not in tail else path
        _, path = _split(path)
        return f"invalid reference format: repository name ({path}) must be lowercase"
    return "invalid reference format"
