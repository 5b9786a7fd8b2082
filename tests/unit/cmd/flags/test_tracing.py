"""--tracing-config-file."""

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.tracing import export_settings_in
from sampan.core.telemetry.export import ExportSettings

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"


def read(tmp_path, text):
    path = tmp_path / "tracing.yaml"
    path.write_text(text)
    return export_settings_in(str(path))


def test_where_and_how_much(tmp_path):
    text = f"{HEAD}endpoint: http://localhost:4318\nsamplingRatePerMillion: 5000\n"
    assert read(tmp_path, text) == ExportSettings("http://localhost:4318", 5000)


def test_nothing_is_sampled_where_nothing_is_said(tmp_path):
    assert read(tmp_path, f"{HEAD}endpoint: https://otel:4318\n").per_million == 0


@pytest.mark.parametrize(
    "endpoint", ["localhost:4317", "dns:///otel:4317", "unix:///run/otel.sock", "[::1]:4317"]
)
def test_collectors_are_named_as_upstream_names_them(tmp_path, endpoint):
    assert read(tmp_path, f"{HEAD}endpoint: '{endpoint}'\n").endpoint == endpoint


def test_without_an_endpoint_it_is_the_collector_of_this_machine(tmp_path):
    assert read(tmp_path, HEAD).endpoint == "localhost:4317"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{HEAD}endpoint: ftp://localhost:4317\n", "unsupported scheme: ftp"),
        (f"{HEAD}endpoint: http://\n", "names no host"),
        (f"{HEAD}endpoint: ''\n", "empty"),
        (f"{HEAD}endpoint: 'http://[x'\n", "endpoint"),
        (f"{HEAD}endpoint: 7\n", "endpoint"),
        (f"{HEAD}endpoint: http://x:4318\nsamplingRatePerMillion: 1000001\n", "million"),
        (f"{HEAD}endpoint: http://x:4318\nsamplingRatePerMillion: often\n", "million"),
        (f"{HEAD}endpoint: http://x:4318\nspeed: 9\n", "speed: unknown field"),
        ("kind: Other\n", "TracingConfiguration"),
        ("a: [", "tracing.yaml"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, text, why):
    with pytest.raises(CannotStart, match=why):
        read(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CannotStart, match="tracing-config-file"):
        export_settings_in(str(tmp_path / "none"))
