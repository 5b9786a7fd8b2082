"""Names of API versions, and which is to be preferred.

Job: put `v1alpha1`, `v1beta2`, `v1`, `v2` and names of other forms in order. Pure.
"""

from sampan.core.patterns import lazy_pattern

_VERSION = lazy_pattern(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_MATURITY = {None: 2, "beta": 1, "alpha": 0}


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Sorts versions as Kubernetes prefers them, the best one last: v1alpha1, v1beta2, v1, v2."""
    form = _VERSION.fullmatch(version)
    if form is None:
        return (-1, 0, 0, version)
    return (_MATURITY[form[2]], int(form[1]), int(form[3] or 0), "")
