"""Where spans are exported to, as `--tracing-config-file` names it.

Job: a TracingConfiguration → settings of the export, or one sentence with what is wrong with it.
"""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sampan.cmd.errors import CannotStart, reason_of

if TYPE_CHECKING:
    from sampan.core.telemetry.export import ExportSettings

FLAG = "--tracing-config-file"
HELP = (
    "a TracingConfiguration (apiserver.config.k8s.io): samplingRatePerMillion of the traces are "
    "exported to endpoint: OTLP over gRPC (localhost:4317 where it is left out; also dns:, unix:, "
    "unix-abstract:), or a URL that takes OTLP/HTTP in JSON, such as http://localhost:4318"
)
KIND = "TracingConfiguration"
VERSIONS = tuple(f"apiserver.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))


def export_settings_in(path: str) -> "ExportSettings":
    """Raises CannotStart."""
    # Few export, and YAML takes its time.
    import yaml

    from sampan.api.configuration import BadConfiguration

    try:
        return export_settings_of(yaml.safe_load(Path(path).read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotStart(f"{FLAG} {path}: {reason_of(error)}") from error
    except BadConfiguration as error:
        problems = "".join(f"\n  {problem}" for problem in error.problems)
        raise CannotStart(f"{FLAG} {path}:{problems}") from error


def export_settings_of(document: object) -> "ExportSettings":
    """Raises BadConfiguration."""
    from sampan.api.configuration import ConfigReader
    from sampan.core.telemetry.export import DEFAULT_ENDPOINT, ExportSettings
    from sampan.core.telemetry.otlp import MILLION

    reader = ConfigReader()
    written = reader.document(document, KIND, VERSIONS)
    for unknown in sorted(written.keys() - {"apiVersion", "kind", "endpoint", _RATE}):
        reader.wrong(unknown, "unknown field")
    rate = written.get(_RATE, 0)  # as upstream: nothing but what callers have sampled already
    if not isinstance(rate, int) or isinstance(rate, bool) or not 0 <= rate <= MILLION:
        reader.wrong(_RATE, "sampling rate per million must be between 0 and one million")
    endpoint = written.get("endpoint")
    if endpoint is None:
        endpoint = DEFAULT_ENDPOINT
    elif not isinstance(endpoint, str) or (trouble := _trouble_with(endpoint)):
        reader.wrong("endpoint", "must be a text" if not isinstance(endpoint, str) else trouble)
    reader.settle()
    return ExportSettings(endpoint, rate)


def _trouble_with(endpoint: str) -> str:
    """Empty: none. Without a scheme it is a name and a port, as upstream."""
    try:
        found = urlsplit(endpoint if "//" in endpoint else f"dns://{endpoint}")
    except ValueError as error:
        return str(error)
    if found.scheme not in _SCHEMES:
        return f"unsupported scheme: {found.scheme}. Options are {', '.join(_SCHEMES)}, or none"
    if found.scheme in _HTTP and not found.hostname:
        return f"{endpoint!r} names no host"
    return "" if found.netloc or found.path else "it is empty"


_RATE = "samplingRatePerMillion"
_HTTP = ("http", "https")  # ours; the others are upstream's, for gRPC
_SCHEMES = ("dns", "unix", "unix-abstract", *_HTTP)
