"""gRPC's errors, in upstream's words [R1]."""

import pytest

from sampan.cri.client import CriError, CriNotFound, CriUnavailable
from sampan.kubelet.contracts.runtime import RuntimeFailure, RuntimeUnavailable
from sampan.kubelet.runtime.cri_errors import Gone, failure_of, translate_errors, unspoken


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (CriNotFound("no such", code="NOT_FOUND", method="X"), Gone,
         "rpc error: code = NotFound desc = no such"),
        (CriUnavailable("gone", code="UNAVAILABLE", method="X"), RuntimeUnavailable,
         "rpc error: code = Unavailable desc = gone"),
        (CriError("bad", code="INVALID_ARGUMENT", method="X"), RuntimeFailure,
         "rpc error: code = InvalidArgument desc = bad"),
    ],
)  # fmt: skip
def test_each_code_has_its_failure(error, kind, text):
    assert type(failure_of(error)) is kind
    assert str(failure_of(error)) == text
    with pytest.raises(kind), translate_errors():
        raise error


def test_only_what_is_not_implemented_is_about_cri_itself():
    other = CriError("bad", code="UNKNOWN", method="Version")
    assert str(unspoken(other)) == str(failure_of(other))
    missing = CriError("unknown service", code="UNIMPLEMENTED", method="Version")
    assert "disabled_plugins" in str(unspoken(missing))
