"""Which sampan this is, and which Kubernetes it speaks."""

VERSION = "0.2.0.dev0"  # the one place: the package is built with it
MINORS = ("1.34", "1.35", "1.36", "1.37")  # of Kubernetes, that it can be
DEFAULT_MINOR = "1.35"
KUBERNETES_VERSION = f"v{DEFAULT_MINOR}.0"
GIT_VERSION = f"{KUBERNETES_VERSION}+sampan-{VERSION}"


def git_version(minor: str) -> str:
    """What such a cluster calls itself."""
    return f"v{minor}.0+sampan-{VERSION}"
