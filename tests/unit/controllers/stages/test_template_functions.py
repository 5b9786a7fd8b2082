import pytest

from sampan.api.go_template.execution import Template
from sampan.api.go_template.parser import TemplateError
from sampan.controllers.stages.template_functions import NAMES, Surroundings, functions

AROUND = Surroundings(
    "2026-01-02T03:04:05.000006Z", "2026-01-01T00:00:00.000000Z", "n",
    lambda node: [f"address of {node}"], lambda node, uid: [f"{uid} at {node}"],
)  # fmt: skip
DATA = {"text": 'a"b', "number": 1000000, "map": {"k": [1, {"x": None}]}, "empty": {}}


def rendered(text):
    return Template(text, further=NAMES).rendered(DATA, functions(AROUND))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{{ Now }} {{ StartTime }}", "2026-01-02T03:04:05.000006Z 2026-01-01T00:00:00.000000Z"),
        ("{{ .text | Quote }}{{ Quote 5 }}{{ .none | Quote }}", r'"a\"b""5""null"'),
        ("{{ .number }}", "1000000"),
        ("{{ YAML .map }}", "k:\n- 1\n- x: null\n"),
        ("a:{{ YAML .map 1 }}", "a:\n  k:\n  - 1\n  - x: null\n  "),
        ("{{ (index NodeConditions 0).type }} {{ len NodeConditions }}", "Ready 5"),
        ("{{ with NodePort }}port{{ else }}none{{ end }}", "none"),
        ('{{ NodeName }} {{ NodeIP }} {{ NodeIPWith "m" }}', "n address of n address of m"),
        ('{{ index (NodeIPsWith "m") 0 }}', "address of m"),
        ('{{ PodIPWith "m" false "u" "p" "ns" }}', "u at m"),
        ('{{ index (PodIPsWith "m" true "u" "p" "ns") 0 }}', "address of m"),
        ('{{ or .none dict }}{{ (dict "a" 1).a }}', "map[]1"),
        ('{{ default "d" .none }}{{ default "d" .text }}{{ empty .empty }}', 'da"btrue'),
        ('{{ ternary "y" "n" true }}{{ upper "a" }}{{ lower "B" }}{{ trim " c " }}', "yAbc"),
        ('{{ index (list 1 2) 1 }}{{ quote "a" 1 }}{{ toString 7 }}', '2"a" "1"7'),
        ("{{ Version }}", "sampan"),
    ],
)
def test_what_they_do(text, written):
    assert rendered(text) == written


def test_an_indentation_is_bounded():
    with pytest.raises(TemplateError, match="indentation 100000000 is none of 0 to 50"):
        rendered("{{ YAML .map 100000000 }}")
