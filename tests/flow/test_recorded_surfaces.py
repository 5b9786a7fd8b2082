"""What each version says of itself, beside what originals of it said.

Discovery in both forms, operations and types of OpenAPI, columns of tables, first roles, flow
schemas and other objects. recorded/surfaces.json.gz was made by
`python -m tests.support.api_sampling.surface`: v1.35 whole, the others as what they say otherwise.
"""

import re
from pathlib import Path

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.schema.published import Schema
from sampan.version import MINORS
from tests.support import virtual_time
from tests.support.api_sampling.servers import InProcess, settings
from tests.support.api_sampling.surface import changes_from, compact, recorded, surface_of
from tests.support.generators.api_requests import api_server

RECORDED = Path(__file__).parent / "recorded" / "surfaces.json.gz"
# What only sampan has: metrics of its own, roles of its own parts.
OURS = re.compile(r"metrics\.k8s\.io|sampan:|system:controller:local-provisioner"
                  r"|clusterrolebindings system:kubelet-api-admin")  # fmt: skip
# Health checks and documents of features that are not here.
UNCHECKED = re.compile(
    r"/(flagz|statusz)$|loopback-serving-certificate|peer-endpoint-reconciler-controller"
)
MORE_RIGHTS = {
    "system:controller:certificate-controller": {
        "list /nodes", "watch /nodes",
        "approve certificates.k8s.io/signers kubernetes.io/kubelet-serving",
    },
    "system:controller:service-controller": {
        "list discovery.k8s.io/endpointslices", "watch discovery.k8s.io/endpointslices",
    },
}  # fmt: skip


def is_kept(section, key, wanted, found):
    """Whether a difference has its reason."""
    if wanted is None:
        return OURS.search(key)
    if "roles " in key and found is not None:
        more = set(found) - set(wanted) - MORE_RIGHTS.get(key.rpartition(" ")[2], set())
        # Our controllers patch what upstream's update.
        patches = all(right.replace("patch ", "update ", 1) in wanted for right in more)
        return set(wanted) <= set(found) and patches
    return section == "paths" and found is None and UNCHECKED.search(key)


@pytest.mark.slow
@pytest.mark.parametrize("minor", MINORS)
def test_a_version_says_of_itself_what_its_original_does(minor):
    """[A5] [V1]"""

    async def told():
        async with api_server(Schema.load(), settings=settings()) as api:
            return compact(await surface_of(InProcess(api.server)))

    with features.used(Release(minor)):
        ours = virtual_time.run(told())
    theirs = recorded(RECORDED, minor)
    assert {section: len(rows) for section, rows in theirs.items() if not rows} == {}
    wrong = {
        f"{section} {key}": (theirs[section].get(key), found)
        for section, rows in changes_from(theirs, ours).items()
        for key, found in rows.items()
        if not is_kept(section, key, theirs[section].get(key), found)
    }
    assert wrong == {}
