"""The client's own version, as kubectl tells it.

Job: what `version` prints of it, and whether a server is the same.
"""

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.version import GIT_VERSION, KUBERNETES_VERSION


def own_version() -> Obj:
    import platform
    import sys

    major, minor = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major, "minor": minor, "gitVersion": GIT_VERSION, "gitCommit": "$Format:%H$",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}", "compiler": "gc",
        "platform": f"{sys.platform}/{machine}",
    }  # fmt: skip


def check_match(server: Obj) -> None:
    """--match-server-version: the same build, to the letter."""
    own = own_version()
    if server.get("gitVersion") != own["gitVersion"]:
        raise CliError(
            f"server version (&{_go_text(server)}) differs from client version ({_go_text(own)})"
        )


_FIELDS = (
    "major", "minor", "emulationMajor", "emulationMinor", "minCompatibilityMajor",
    "minCompatibilityMinor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion",
    "compiler", "platform",
)  # fmt: skip


def _go_text(info: Obj) -> str:
    pairs = (f'{name[0].upper()}{name[1:]}:"{info.get(name, "")}"' for name in _FIELDS)
    return f"version.Info{{{', '.join(pairs)}}}"
