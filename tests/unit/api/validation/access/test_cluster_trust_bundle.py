"""What originals say of bundles is in tests/flow/test_recorded_certificate_kinds.py."""

from sampan.api.resources import CLUSTER_TRUST_BUNDLES
from sampan.api.validation import validate_create, validate_update
from tests.support.certificate_story import bundle, certificate


def test_a_bundle_that_is_not_changed_is_not_read_again():
    old = bundle("roots", "v1", "damaged by an older version")
    old["metadata"]["resourceVersion"] = "1"
    assert validate_create(CLUSTER_TRUST_BUNDLES, old)
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert validate_update(CLUSTER_TRUST_BUNDLES, labelled, old) == []
    changed = {**old, "spec": {"trustBundle": "damaged again"}}
    assert validate_update(CLUSTER_TRUST_BUNDLES, changed, old)
    good = {**old, "spec": {"trustBundle": certificate(ca=True)}}
    assert validate_update(CLUSTER_TRUST_BUNDLES, good, old) == []
