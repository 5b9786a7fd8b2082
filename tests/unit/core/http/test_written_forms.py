import orjson
import yaml

from sampan.core.http.written_forms import YAML, written

OBJ = {"kind": "Status", "metadata": {}, "causes": ["é"]}


def test_each_form_says_the_same():
    assert orjson.loads(written(OBJ)) == orjson.loads(written(OBJ, pretty=True)) == OBJ
    assert yaml.safe_load(written(OBJ, YAML)) == OBJ
    assert written(OBJ).count(b"\n") == 1
    assert written(OBJ, pretty=True).count(b"\n") > 3
    assert "é".encode() in written(OBJ, YAML)
