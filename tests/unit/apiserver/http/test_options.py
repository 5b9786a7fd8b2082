import pytest

from sampan.api.calls import DEFAULT_OPTIONS, Options
from sampan.api.errors import BadRequest, Invalid
from sampan.apiserver.http.options import options_of


def test_a_query_becomes_options():
    assert options_of("", "list") is DEFAULT_OPTIONS
    found = options_of(
        "labelSelector=a%3Db&limit=5&resourceVersion=0&watch=1&allowWatchBookmarks=true"
        "&timeoutSeconds=9",
        "list",
    )
    assert found == Options(
        label_selector="a=b", limit=5, resource_version="0", allow_bookmarks=True,
        timeout_seconds=9,
    )  # fmt: skip
    assert options_of("fieldManager=me&dryRun=All&fieldValidation=Strict", "create") == Options(
        field_manager="me", dry_run=True, field_validation="Strict"
    )
    assert options_of("orphanDependents=true", "delete").propagation == "Orphan"
    assert options_of("gracePeriodSeconds=0", "delete").grace_seconds == 0


@pytest.mark.parametrize(
    ("verb", "query", "message"),
    [
        ("create", "dryRun=yes", 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported'),
        ("update", "fieldValidation=Maybe", "UpdateOptions.* fieldValidation: Unsupported value"),
        ("patch", "dryRun=no", "PatchOptions.* dryRun: Unsupported value"),
        ("delete", "propagationPolicy=Later", "DeleteOptions.* propagationPolicy: Unsupported"),
        ("create", "fieldManager=" + "x" * 129, "fieldManager: Too long"),
        ("update", "fieldManager=a%07", r"fieldManager: .* invalid character U\+0007 .*position 1"),
    ],
)
def test_wrong_words_in_a_query_are_invalid(verb, query, message):
    """[A7] named after the options of the verb"""
    with pytest.raises(Invalid, match=message):
        options_of(query, verb)


def test_what_a_verb_has_no_use_for_is_not_looked_at():
    assert options_of("dryRun=yes&fieldValidation=Maybe&propagationPolicy=Later", "list").limit == 0
    assert options_of("fieldValidation=Maybe&fieldManager=%07", "delete").grace_seconds is None
    assert options_of("propagationPolicy=Later", "update").field_validation == "Warn"


def test_a_limit_must_be_a_number():
    with pytest.raises(BadRequest, match=r"strconv\.ParseInt"):
        options_of("limit=x", "list")


@pytest.mark.parametrize("text", ["1_0", " 1", "१", "9" * 30, "1.5", "x", "--1"])
def test_a_number_is_written_as_go_writes_it(text):
    with pytest.raises(BadRequest, match=r"strconv\.ParseInt"):
        options_of(f"timeoutSeconds={text}", "list")


def test_a_negative_limit_is_none():
    assert options_of("limit=-5", "list").limit == 0


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
@pytest.mark.parametrize("query", ["dryRun=", "dryRun", "dryRun=All&dryRun="])
def test_an_empty_dry_run_is_no_dry_run_and_no_write_either(verb, query):
    with pytest.raises(Invalid, match=r"dryRun: Unsupported value: \["):
        options_of(query, verb)


def test_of_several_values_the_first_counts():
    assert options_of("limit=2&limit=3", "list").limit == 2
    assert options_of("fieldValidation=Strict&fieldValidation=Warn", "create") == Options(
        field_validation="Strict"
    )
    with pytest.raises(Invalid, match=r'dryRun: Unsupported value: \["All","Some"\]'):
        options_of("dryRun=All&dryRun=Some", "create")


@pytest.mark.parametrize("query", ["limit=", "timeoutSeconds="])
def test_an_empty_number_is_none(query):
    with pytest.raises(BadRequest, match='parsing "": invalid syntax'):
        options_of(query, "list")


def test_a_deletion_is_propagated_in_one_way():
    with pytest.raises(Invalid, match="orphanDependents and deletionPropagation cannot be both"):
        options_of("propagationPolicy=Orphan&orphanDependents=true", "delete")
    with pytest.raises(Invalid, match='propagationPolicy: Unsupported value: ""'):
        options_of("propagationPolicy=", "delete")


def test_force_is_told_from_nothing():
    assert options_of("force=false", "patch").force is False
    assert options_of("fieldManager=a", "patch").force is None
