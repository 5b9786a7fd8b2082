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
    "exported to endpoint, a URL that takes OTLP/HTTP in JSON, such as http://localhost:4318"
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
    from sampan.core.telemetry.export import ExportSettings
    from sampan.core.telemetry.otlp import MILLION

    reader = ConfigReader()
    written = reader.document(document, KIND, VERSIONS)
    for unknown in sorted(written.keys() - {"apiVersion", "kind", "endpoint", _RATE}):
        reader.wrong(unknown, "unknown field")
    rate = written.get(_RATE, 0)  # as upstream: nothing but what callers have sampled already
    if not isinstance(rate, int) or isinstance(rate, bool) or not 0 <= rate <= MILLION:
        reader.wrong(_RATE, "sampling rate per million must be between 0 and one million")
    endpoint = written.get("endpoint") or ""
    found = urlsplit(endpoint) if isinstance(endpoint, str) else None
    if found is None or found.scheme not in ("http", "https") or not found.hostname:
        reader.wrong(
            "endpoint",
            f"{endpoint!r} is no URL that begins with http:// or https://: OTLP goes over HTTP "
            "here, to the collector's port 4318; gRPC (port 4317) is not there",
        )
    reader.settle()
    return ExportSettings(endpoint, rate)


_RATE = "samplingRatePerMillion"
