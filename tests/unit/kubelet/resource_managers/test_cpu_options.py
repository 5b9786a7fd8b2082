"""Options of the static policy, and what upstream says of wrong ones."""

import pytest

from sampan.kubelet.resource_managers.cpu_options import (
    ALPHA_GATE,
    BETA_GATE,
    CpuOptions,
    cpu_options,
)


def test_options_are_read_as_go_reads_truth():
    found = cpu_options({"full-pcpus-only": "T", "strict-cpu-reservation": "1"}, {})
    assert found == CpuOptions(full_cores=True, strict_reservation=True)
    assert cpu_options({"full-pcpus-only": "False"}, {}) == CpuOptions()


@pytest.mark.parametrize(
    ("options", "gates", "why"),
    [
        ({"tea": "true"}, {}, 'unknown CPU Manager Policy option: "tea"'),
        ({"align-by-socket": "true"}, {}, "Alpha-level Options not enabled"),
        ({"distribute-cpus-across-numa": "1"}, {BETA_GATE: False}, "Beta-level Options not"),
        ({"full-pcpus-only": "yes"}, {}, 'strconv.ParseBool: parsing "yes": invalid syntax'),
        (
            {"full-pcpus-only": "true", "distribute-cpus-across-cores": "true"},
            {ALPHA_GATE: True},
            "full-pcpus-only and distribute-cpus-across-cores can not be used at the same time",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_upstreams_words(options, gates, why):
    with pytest.raises(ValueError, match=r"option|Option") as refused:
        cpu_options(options, gates)
    assert why in str(refused.value)
