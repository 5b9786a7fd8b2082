"""CEL as a language: a table of expressions and what they come to, by the specification.

[A3] Each row is a fact of the language or of one of Kubernetes' libraries.
"""

import math
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.cel.catalog import KUBERNETES_PATCHES, STANDARD
from sampan.api.cel.language.cost import Budget
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import (
    CompileError,
    CostExceeded,
    EvaluationError,
    Interrupted,
)
from sampan.api.cel.language.types import DYN, INT, STRING, list_of, map_of
from sampan.api.cel.language.values import Uint
from sampan.api.cel.program import compile_expression

VARIABLES = {
    "x": DYN, "i": INT, "s": STRING, "l": list_of(INT), "m": map_of(STRING, INT), "object": DYN,
    "a.b": INT,
}  # fmt: skip
CEL = Environment(VARIABLES, STANDARD)
K8S = Environment(VARIABLES, KUBERNETES_PATCHES)
VALUES = {
    "x": {"a": 1, "b": [1, 2, 3], "n": None, "t": "text", "f": 1.5, "nested": {"deep": {"k": "v"}}},
    "i": 5,
    "s": "hello",
    "l": [1, 2, 3],
    "m": {"one": 1, "two": 2},
    "object": {
        "metadata": {"name": "web", "labels": {"app": "web", "a/b": "c"}},
        "spec": {"replicas": 3, "containers": [{"name": "c", "image": "r/i:1"}, {"name": "d"}]},
    },
    "a.b": 42,
}


def evaluated(text, environment=CEL):
    return compile_expression(text, environment).evaluate(VALUES)


TRUE_IN_CEL = """
1 + 2 == 3
7 - 10 == -3
6 * 7 == 42
7 / 2 == 3
-7 / 2 == -3
7 % 3 == 1
-7 % 3 == -1
7u + 3u == 10u
10u - 3u == 7u
7u / 2u == 3u
7u % 4u == 3u
1.5 + 1.5 == 3.0
3.0 / 2.0 == 1.5
1.0 / 0.0 > 1.0
0x10 == 16
0xFFu == 255u
1e3 == 1000.0
.5 == 0.5
-(-5) == 5
--5 == 5
!false
!!true
-9223372036854775808 < 0
2 + 3 * 4 == 14
(2 + 3) * 4 == 20
10 - 2 - 3 == 5
2 * 3 % 4 == 2
1 < 2
2 <= 2
3 > 2
3 >= 3
1 != 2
1 < 2.5
2.5 > 1u
1u < 2
'a' < 'b'
'B' < 'a'
'abc' < 'abd'
b'a' < b'b'
false < true
1 < 2 == true
'a' + 'b' == 'ab'
b'a' + b'b' == b'ab'
[1] + [2, 3] == [1, 2, 3]
'x' in ['x', 'y']
!('z' in ['x', 'y'])
'k' in {'k': 1}
!('z' in {'k': 1})
2 in l
'one' in m
1 in {1: 'a'}
l[0] == 1
m['two'] == 2
m.one == 1
x.a == 1
x['a'] == 1
x.b[2] == 3
x.nested.deep.k == 'v'
{1: 'a', 2: 'b'}[2] == 'b'
{true: 'a'}[true] == 'a'
{1u: 'a'}[1u] == 'a'
{'a': {'b': 1}}.a.b == 1
[[1, 2], [3]][1][0] == 3
[1, 2, 3,] == [1, 2, 3]
{'a': 1,} == {'a': 1}
{} == {}
[] == []
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
[1, 2] != [2, 1]
null == null
x.n == null
dyn(1) == 1.0
dyn(1) == 1u
dyn(1u) == 1.0
dyn(1) != 'a'
dyn(true) != 1
dyn([1]) == [1.0]
dyn({'a': 1}) == {'a': 1.0}
dyn(null) != 0
true ? true : false
false ? false : true
(i > 3 ? 'big' : 'small') == 'big'
(i < 3 ? 'a' : i < 6 ? 'b' : 'c') == 'b'
true || (1 / 0 > 0)
(1 / 0 > 0) || true
!(false && (1 / 0 > 0))
!((1 / 0 > 0) && false)
true || x.missing
x.missing == 1 || true
has(x.a)
!has(x.z)
has(x.nested.deep)
!has(x.nested.nope)
has(x.n)
has({'a': 1}.a)
l.all(e, e > 0)
!l.all(e, e > 1)
l.exists(e, e == 2)
!l.exists(e, e == 9)
l.exists_one(e, e == 2)
!l.exists_one(e, e > 1)
l.map(e, e * 2) == [2, 4, 6]
l.map(e, e > 1, e * 2) == [4, 6]
l.filter(e, e > 1) == [2, 3]
m.all(k, k.size() == 3)
m.exists(k, k == 'one')
m.filter(k, m[k] > 1) == ['two']
m.map(k, m[k]).exists(v, v == 2)
[1, 0].exists(e, 4 / e == 4)
[0, 1].exists(e, 4 / e == 4)
![0, 2].all(e, 4 / e == 4)
[].all(e, e > 1)
![].exists(e, e > 1)
l.all(e, l.all(f, e * f > 0))
l.map(e, l.map(f, e + f))[1][1] == 4
[[1], [2]].all(l, l.all(e, e > 0))
l.all(i, i < 4) && i == 5
size('hello') == 5
'hello'.size() == 5
size([1, 2]) == 2
size({'a': 1}) == 1
size(b'abc') == 3
size('éa') == 2
size(b'é') == 2
'hello'.contains('ell')
'hello'.startsWith('he')
'hello'.endsWith('lo')
'hello'.matches('^h.*o$')
matches('hello', 'l+')
!'hello'.matches('^l')
'a.b'.matches('a\\\\.b')
int('42') == 42
int(3.9) == 3
int(-3.9) == -3
int(7u) == 7
uint(7) == 7u
uint('7') == 7u
double('1.5') == 1.5
double(3) == 3.0
string(42) == '42'
string(1.5) == '1.5'
string(true) == 'true'
string(b'abc') == 'abc'
string(1000000.0) == '1e+06'
string(0.00001) == '1e-05'
bytes('é') == b'\\303\\251'
bool('true')
!bool('0')
type(1) == int
type(1u) == uint
type(1.0) == double
type('') == string
type(b'') == bytes
type(true) == bool
type(null) == null_type
type([]) == list
type({}) == map
type(int) == type
type(timestamp('2020-01-01T00:00:00Z')) == google.protobuf.Timestamp
type(duration('1s')) == google.protobuf.Duration
type(dyn([1])[0]) == int
timestamp('2024-02-29T12:30:45.5Z').getFullYear() == 2024
timestamp('2024-02-29T12:30:45.5Z').getMonth() == 1
timestamp('2024-02-29T12:30:45.5Z').getDate() == 29
timestamp('2024-02-29T12:30:45.5Z').getDayOfMonth() == 28
timestamp('2024-02-29T12:30:45.5Z').getDayOfWeek() == 4
timestamp('2024-02-29T12:30:45.5Z').getDayOfYear() == 59
timestamp('2024-02-29T12:30:45.5Z').getHours() == 12
timestamp('2024-02-29T12:30:45.5Z').getMinutes() == 30
timestamp('2024-02-29T12:30:45.5Z').getSeconds() == 45
timestamp('2024-02-29T12:30:45.5Z').getMilliseconds() == 500
timestamp('2024-02-29T23:30:00Z').getHours('+02:00') == 1
timestamp('2024-02-29T23:30:00Z').getDate('+02:00') == 1
timestamp('2024-02-29T23:30:00Z').getHours('-03:30') == 20
timestamp('2024-07-01T12:00:00Z').getHours('UTC') == 12
timestamp('2020-01-01T00:00:00Z') < timestamp('2020-01-02T00:00:00Z')
timestamp('2020-01-01T02:00:00+02:00') == timestamp('2020-01-01T00:00:00Z')
timestamp('2020-01-01T00:00:00Z') + duration('24h') == timestamp('2020-01-02T00:00:00Z')
duration('1h') + timestamp('2020-01-01T00:00:00Z') == timestamp('2020-01-01T01:00:00Z')
timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('24h')
timestamp('2020-01-02T01:00:00Z') - duration('25h') == timestamp('2020-01-01T00:00:00Z')
timestamp(0) == timestamp('1970-01-01T00:00:00Z')
int(timestamp('1970-01-01T00:01:00Z')) == 60
string(timestamp('2020-01-01T00:00:00.120Z')) == '2020-01-01T00:00:00.12Z'
duration('1h30m') == duration('90m')
duration('1.5s').getMilliseconds() == 1500
duration('90m').getHours() == 1
duration('90m').getMinutes() == 90
duration('90m').getSeconds() == 5400
duration('-1s') < duration('0s')
string(duration('90s')) == '90s'
string(duration('1.5s')) == '1.5s'
duration('0s') - duration('1s') == duration('-1s')
null != timestamp(0)
(x.a == 1 ? l : dyn(1)) == [1, 2, 3]
!(x.a == 2 ? l : dyn(false))
optional.of(1).hasValue()
!optional.none().hasValue()
optional.of(1).value() == 1
optional.ofNonZeroValue(0).orValue(5) == 5
optional.ofNonZeroValue('a').orValue('b') == 'a'
optional.of(1) == optional.of(1)
optional.none() == optional.none()
optional.of(1) != optional.none()
x.?a.hasValue()
!x.?z.hasValue()
x.?nested.deep.k.value() == 'v'
x.?nope.deep.k.orValue('d') == 'd'
x.?nested.?nope.orValue('d') == 'd'
x[?'a'].value() == 1
l[?0].value() == 1
!l[?9].hasValue()
x.?z.or(optional.of(3)).value() == 3
[?optional.of(1), ?optional.none(), 2] == [1, 2]
{?'a': optional.of(1), ?'b': optional.none()} == {'a': 1}
optional.of(2).optMap(v, v * 2).value() == 4
!optional.none().optMap(v, v * 2).hasValue()
optional.of(2).optFlatMap(v, optional.of(v + 1)).value() == 3
has(x.?nested.deep)
cel.bind(v, i * 2, v + v) == 20
l.all(k, v, k < v)
l.exists(k, v, k == 2 && v == 3)
l.existsOne(k, v, v == 3)
m.all(k, v, m[k] == v)
m.exists(k, v, k == 'two' && v == 2)
l.transformList(k, v, k * v) == [0, 2, 6]
l.transformList(k, v, v > 1, v) == [2, 3]
m.transformMap(k, v, v + 1) == {'one': 2, 'two': 3}
m.transformMap(k, v, v > 1, v) == {'two': 2}
m.transformMapEntry(k, v, {v: k}) == {1: 'one', 2: 'two'}
'hello'.charAt(1) == 'e'
'hello'.charAt(5) == ''
'hello'.indexOf('l') == 2
'hello'.indexOf('l', 3) == 3
'hello'.indexOf('z') == -1
'hello'.lastIndexOf('l') == 3
'hello'.lastIndexOf('l', 2) == 2
['a', 'b'].join() == 'ab'
['a', 'b'].join('-') == 'a-b'
'TacoCat'.lowerAscii() == 'tacocat'
'TacoCÆt'.upperAscii() == 'TACOCÆT'
'hello hello'.replace('he', 'we') == 'wello wello'
'hello hello'.replace('he', 'we', 1) == 'wello hello'
'a b c'.split(' ') == ['a', 'b', 'c']
'a b c'.split(' ', 2) == ['a', 'b c']
'abc'.split('') == ['a', 'b', 'c']
'a b'.split(' ', 0) == []
'tacocat'.substring(4) == 'cat'
'tacocat'.substring(0, 4) == 'taco'
'  trim  '.trim() == 'trim'
'%s and %d'.format([dyn('a'), 5]) == 'a and 5'
'%.2f'.format([1.234]) == '1.23'
'%x %X %o %b'.format([255, 255, 8, 5]) == 'ff FF 10 101'
'%s'.format([[1, 2]]) == '[1, 2]'
'100%%'.format([]) == '100%'
'%e'.format([1052.0]) == '1.052000e+03'
strings.quote('a"b') == '"a\\\\"b"'
math.greatest(1, 2, 3) == 3
math.least([3, 1, 2]) == 1
math.abs(-5) == 5
math.ceil(1.2) == 2.0
math.floor(1.8) == 1.0
math.round(2.5) == 3.0
math.trunc(-1.5) == -1.0
math.sign(-4) == -1
math.isNaN(0.0 / 0.0)
math.bitAnd(6, 3) == 2
math.bitShiftLeft(1, 4) == 16
sets.contains([1, 2, 3], [2])
!sets.contains([1], [2])
sets.equivalent([1, 1], [1])
sets.intersects([1, 2], [2, 3])
base64.encode(b'hello') == 'aGVsbG8='
base64.decode('aGVsbG8') == b'hello'
r'a\\n' == 'a\\\\n'
'''a'b''' == "a'b"
'\\x41\\u0042\\U00000043\\104' == 'ABCD'
"it's" == 'it\\'s'
b'\\xff'.size() == 1
1 == 1 // a comment
a.b == 42
.i == 5
l.all(i, .i == 5)
"""

TRUE_IN_KUBERNETES = """
[1, 2, 3].isSorted()
!['b', 'a'].isSorted()
[1, 2, 3].sum() == 6
[1.5, 1.5].sum() == 3.0
[duration('1m'), duration('1s')].sum() == duration('61s')
[3, 1, 2].min() == 1
[3, 1, 2].max() == 3
['a', 'c'].max() == 'c'
[1, 2, 1].indexOf(1) == 0
[1, 2, 1].lastIndexOf(1) == 2
[1, 2].indexOf(5) == -1
'abc 123'.find('[0-9]+') == '123'
'abc'.find('[0-9]+') == ''
'1 2 3'.findAll('[0-9]') == ['1', '2', '3']
'1 2 3'.findAll('[0-9]', 2) == ['1', '2']
url('https://user@example.com:80/a/b?k=1&k=2').getScheme() == 'https'
url('https://example.com:80/').getHost() == 'example.com:80'
url('https://example.com:80/').getHostname() == 'example.com'
url('https://[::1]:80/').getHostname() == '::1'
url('https://[::1]:80/').getHost() == '[::1]:80'
url('https://example.com:80/').getPort() == '80'
url('/absolute/path').getScheme() == ''
url('https://example.com/a b'.replace(' ', '%20')).getEscapedPath() == '/a%20b'
url('https://example.com/?k=1&k=2').getQuery() == {'k': ['1', '2']}
isURL('https://example.com')
!isURL('../relative')
quantity('1Gi').isGreaterThan(quantity('1G'))
quantity('500m').isLessThan(quantity('1'))
quantity('1k') == quantity('1000')
quantity('1').compareTo(quantity('2')) == -1
quantity('1Ki').asInteger() == 1024
!quantity('500m').isInteger()
quantity('500m').asApproximateFloat() == 0.5
quantity('1').add(quantity('1')) == quantity('2')
quantity('1').add(1) == quantity('2')
quantity('3').sub(1).sub(quantity('1')) == quantity('1')
quantity('-1').sign() == -1
isQuantity('1Gi') && !isQuantity('x')
ip('127.0.0.1').family() == 4
ip('::1').family() == 6
ip('127.0.0.1').isLoopback()
ip('0.0.0.0').isUnspecified()
ip('169.254.1.1').isLinkLocalUnicast()
ip('224.0.0.1').isLinkLocalMulticast()
ip('8.8.8.8').isGlobalUnicast()
isIP('1.2.3.4') && !isIP('1.2.3')
!isIP('::ffff:1.2.3.4')
ip.isCanonical('2001:db8::1')
!ip.isCanonical('2001:DB8::1')
string(ip('2001:DB8::1')) == '2001:db8::1'
ip('1.2.3.4') == ip('1.2.3.4')
cidr('10.0.0.0/8').containsIP('10.1.2.3')
!cidr('10.0.0.0/8').containsIP(ip('11.1.2.3'))
cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')
!cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))
cidr('10.1.2.3/8').ip() == ip('10.1.2.3')
cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')
cidr('10.0.0.0/8').prefixLength() == 8
isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0')
!format.dns1123Label().validate('web').hasValue()
format.dns1123Label().validate('Web').hasValue()
format.named('dns1123Subdomain').hasValue()
!format.named('nothing').hasValue()
!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()
format.date().validate('2020-13-01').hasValue()
semver('1.2.3').major() == 1
semver('1.2.3').minor() == 2
semver('1.2.3').patch() == 3
semver('1.2.3').isLessThan(semver('1.10.0'))
semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))
semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))
semver('1.0.0+a') == semver('1.0.0+b')
semver('v1.0', true) == semver('1.0.0')
isSemver('1.0.0') && !isSemver('v1.0')
jsonpatch.escapeKey('a/b~c') == 'a~1b~0c'
object.metadata.labels['a/b'] == 'c'
object.spec.containers.filter(c, has(c.image)).size() == 1
object.spec.containers.map(c, c.name).join(',') == 'c,d'
object.spec.containers.all(c, c.?image.orValue('r/').startsWith('r/'))
object.spec.replicas <= 5 && object.metadata.name == 'web'
[object.spec.replicas, 1].max() == 3
object.metadata.name.find('^[a-z]') == 'w'
"""

FAILING = {
    "1 / 0": "division by zero",
    "1 % 0": "modulus by zero",
    "1u / 0u": "division by zero",
    "9223372036854775807 + 1": "integer overflow",
    "-9223372036854775808 - 1": "integer overflow",
    "-(-9223372036854775808)": "integer overflow",
    "9223372036854775807 * 2": "integer overflow",
    "0u - 1u": "unsigned integer overflow",
    "18446744073709551615u + 1u": "unsigned integer overflow",
    "int(1e20)": "integer overflow",
    "uint(-1)": "unsigned integer overflow",
    "int('x')": "type conversion error from 'string' to 'int'",
    "bool('yes')": "type conversion error from 'string' to 'bool'",
    "string(b'\\xff')": "invalid UTF-8 in bytes, cannot convert to string",
    "x.missing": "no such key: missing",
    "m['zero']": "no such key: zero",
    "m.zero": "no such key: zero",
    "l[3]": "index out of bounds: 3",
    "l[-1]": "index out of bounds: -1",
    "x.b['a']": "unsupported index type 'string' in list",
    "x.t.field": "no such overload",
    "x.a + x.t": "no such overload",
    "x.a < x.t": "no such overload",
    "x.a && true": "no such overload",
    "!x.a": "no such overload",
    "x.a.size()": "no such overload: size(int)",
    "x.a.all(e, true)": "no such overload",
    "x.missing || false": "no such key: missing",
    "true && x.missing == 1": "no such key: missing",
    "l.exists(e, 1 / (e - e) > 0)": "division by zero",
    "l.exists_one(e, 1 / (e - e) > 0)": "division by zero",
    "{'a': 1, 'a': 2}": "insert failed: key a already exists",
    "optional.none().value()": "optional.none() dereference",
    "timestamp('9999-12-31T23:59:59Z') + duration('2s')": "timestamp overflow",
    "'abc'.charAt(9)": "index out of range: 9",
    "'abc'.substring(2, 1)": "invalid substring range. start: 2, end: 1",
    "'%d'.format(['a'])": "decimal clause can only be used on integers",
}
FAILING_IN_KUBERNETES = {
    "quantity('x')": "quantities must match",
    "ip('x')": "unable to parse IP",
    "url('x')": "URL parse error",
    "[].min()": "min called on empty list",
    "quantity('500m').asInteger()": "cannot convert value to integer",
    "semver('1')": "Semver parse error",
}

REFUSED = {
    "": "1:0: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(',",
    "1 +": "1:4: Syntax error: mismatched input '<EOF>'",
    "(1": "1:3: Syntax error: missing ')' at '<EOF>'",
    "(1 2)": "1:4: Syntax error: extraneous input '2' expecting ')'",
    "((1": "1:4: Syntax error: mismatched input '<EOF>' expecting ')'",
    "1 2": "1:3: Syntax error: mismatched input '2' expecting <EOF>",
    "'abc": "1:1: Syntax error: token recognition error at: ''abc'",
    "1 ~ 2": "1:3: Syntax error: token recognition error at: '~'",
    "f(1,)": "1:5: Syntax error: mismatched input ')'",
    "9223372036854775808": "1:1: invalid int literal",
    "for": "1:1: reserved identifier: for",
    "nothing": "1:1: undeclared reference to 'nothing' (in container '')",
    "x.nothing()": "1:10: undeclared reference to 'nothing' (in container '')",
    "nothing(1)": "1:8: undeclared reference to 'nothing' (in container '')",
    "1 + 'a'": "1:3: found no matching overload for '_+_' applied to '(int, string)'",
    "1 + 1u": "1:3: found no matching overload for '_+_' applied to '(int, uint)'",
    "1 == 1.0": "1:3: found no matching overload for '_==_' applied to '(int, double)'",
    "s.startsWith(1)": "found no matching overload for 'startsWith' applied to 'string.(int)'",
    "!1": "1:1: found no matching overload for '!_' applied to '(int)'",
    "true && 1": "found no matching overload for '_&&_' applied to '(bool, int)'",
    "true ? 1 : 'a'": "found no matching overload for '_?_:_' applied to '(bool, int, string)'",
    "[1, 'a']": "1:5: expected type 'int' but found 'string'",
    "{'a': 1, 'b': 'c'}": "1:15: expected type 'int' but found 'string'",
    "i.field": "1:2: type 'int' does not support field selection",
    "i.all(e, true)": "1:1: expression of type 'int' cannot be range of a comprehension",
    "l.map(1, 2)": "1:7: argument is not an identifier",
    "l.all(e.f, true)": "1:8: argument must be a simple name",
    "l.all(e, 1)": "found no matching overload for '_&&_' applied to '(bool, int)'",
    "has(x)": "1:4: invalid argument to has() macro",
    "l.all(e, true) && e": "1:19: undeclared reference to 'e' (in container '')",
    "'a'.matches('(')": "1:13: invalid matches argument",
    "'a'.matches('(?=b)')": "invalid matches argument",
    "duration('1x')": "1:10: invalid duration argument",
    "timestamp('now')": "1:11: invalid timestamp argument",
    "Nothing{a: 1}": "1:8: undeclared reference to 'Nothing' (in container '')",
    "'\\q'": "unable to unescape string",
    "optional.of(1).orValue('a')": "found no matching overload for 'orValue'",
}


@pytest.mark.parametrize("text", TRUE_IN_CEL.strip().splitlines())
def test_it_holds_in_cel(text):
    assert evaluated(text) is True


@pytest.mark.parametrize("text", TRUE_IN_KUBERNETES.strip().splitlines())
def test_it_holds_in_kubernetes(text):
    assert evaluated(text, K8S) is True


@pytest.mark.parametrize("text", FAILING)
def test_it_fails_when_it_runs(text):
    with pytest.raises(EvaluationError) as found:
        evaluated(text)
    assert FAILING[text] in str(found.value)


@pytest.mark.parametrize("text", FAILING_IN_KUBERNETES)
def test_a_library_says_what_is_wrong(text):
    with pytest.raises(EvaluationError) as found:
        evaluated(text, K8S)
    assert FAILING_IN_KUBERNETES[text] in str(found.value)


@pytest.mark.parametrize("text", REFUSED)
def test_it_is_refused_before_it_runs(text):
    with pytest.raises(CompileError) as found:
        compile_expression(text, CEL)
    assert REFUSED[text] in str(found.value)


@pytest.mark.parametrize(
    "text", ["math.abs(-1) == 1", "cel.bind(v, 1, v) == 1", "base64.encode(b'a') == ''"]
)
def test_kubernetes_has_no_math_no_bindings_and_no_encoders(text):
    with pytest.raises(CompileError, match="undeclared reference"):
        compile_expression(text, K8S)


def test_a_complaint_shows_the_line_and_the_place():
    with pytest.raises(CompileError) as found:
        compile_expression("true &&\n  nothing", CEL)
    assert str(found.value) == (
        "ERROR: <input>:2:3: undeclared reference to 'nothing' (in container '')\n"
        " |   nothing\n"
        " | ..^"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "int"), ("l", "list(int)"), ("[]", "list(dyn)"), ("{}", "map(dyn, dyn)"),
        ("m.map(k, m[k])", "list(int)"), ("x.a", "dyn"), ("optional.of(1)", "optional_type(int)"),
        ("i > 1 ? x : 1", "dyn"), ("timestamp(0)", "timestamp"), ("type(1)", "type(int)"),
        ("[null]", "list(null)"), ("m[?'a']", "optional_type(int)"),
    ],
)  # fmt: skip
def test_the_checker_knows_the_type(text, expected):
    assert str(compile_expression(text, CEL).result_type) == expected


def test_a_bool_is_another_key_than_a_number():
    assert evaluated("{1: 'a', 2: 'b'}.exists(k, k == 1)") is True
    assert evaluated("dyn({true: 'a'})[?1].hasValue()") is False
    assert evaluated("{true: 1, false: 0}.map(k, k)") == [True, False]


def test_a_deep_expression_is_refused_and_a_long_one_is_not():
    with pytest.raises(CompileError, match="recursion limit"):
        compile_expression("(" * 2000 + "1" + ")" * 2000, CEL)
    assert evaluated(" && ".join(["true"] * 3000)) is True


def test_an_expression_runs_only_as_long_as_it_may():
    """[A3] The limit of one call, and what a budget has left, both end it; `||` does not help."""
    program = compile_expression(
        "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c,"
        " [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, a+b+c+d+e > 0))))) || true",
        CEL,
    )
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        program.evaluate({})
    budget = Budget(100)
    cheap = compile_expression("[1, 2, 3].all(e, e > 0)", CEL)
    for _ in range(3):
        cheap.evaluate({}, budget)
    assert 0 < budget.left < 70
    budget.left = 5
    with pytest.raises(CostExceeded):
        cheap.evaluate({}, budget)


def test_an_expression_can_be_interrupted_at_any_time():
    """By the clock, whatever it costs; `||` does not help here either."""
    ten = "[1,2,3,4,5,6,7,8,9,10]"
    loops = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, a+b+c+d > 0)))) || true"
    program = compile_expression(loops, CEL)
    asked = 0

    def interrupt():
        nonlocal asked
        asked += 1
        if asked > 5:
            raise Interrupted

    budget = Budget(interrupt=interrupt)
    with pytest.raises(Interrupted, match="operation interrupted"):
        program.evaluate({}, budget)
    assert 3_000 < 10_000_000 - budget.left < 10_000
    # What it costs does not depend on who watches.
    spent = []
    for watched in (None, lambda: None):
        budget = Budget(interrupt=watched)
        program.evaluate({}, budget)
        spent.append(budget.left)
    assert spent[0] == spent[1]


@pytest.mark.parametrize(
    "text",
    [
        "s.replace('a', s).size() > 0",
        "s.replace('', s).size() > 0",
        "[s, s, s, s, s, s, s, s].map(x, s).join(s + s + s + s).size() > 0",
        "s.split('').join(s).size() > 0",
        "'%s%s%s%s'.format([s, s, s, s]).replace('a', s).size() > 0",
        "'%.999999999f'.format([1.0]).size() > 0",
        "'%.1001e'.format([1.0]).size() > 0",
        "s.matches('((a{0,30}b?){30}c?)*d')",
    ],
)
def test_what_is_made_of_a_long_text_is_paid_for_before_it_is_made(text):
    """An attack on memory, or on time: a short expression and a text of 300 kB."""
    program = compile_expression(text, CEL)
    with pytest.raises((CostExceeded, EvaluationError)):
        program.evaluate({"s": "a" * 300_000})


def test_a_long_text_costs_more_than_a_short_one():
    program = compile_expression("s.contains('zzz')", CEL)
    spent = []
    for text in ("short", "long" * 1000):
        budget = Budget(1_000_000)
        program.evaluate({"s": text}, budget)
        spent.append(1_000_000 - budget.left)
    assert spent[0] < 10 < 400 <= spent[1]


def test_a_variable_is_worked_out_only_when_it_is_asked_for():
    asked = []

    class Lazy(dict):
        def __getitem__(self, key):
            asked.append(key)
            return super().__getitem__(key)

    program = compile_expression("i > 3 || x.never", CEL)
    assert program.evaluate(Lazy(i=5, x={})) is True
    assert asked == ["i"]


INTS = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.one_of(INTS, st.floats(allow_nan=False), st.integers(0, 2**64 - 1).map(Uint))
PAIR = Environment({"a": DYN, "b": DYN}, STANDARD)
PROGRAMS = {
    sign: compile_expression(f"a {sign} b", PAIR)
    for sign in ("+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=")
}


@given(INTS, INTS)
def test_whole_numbers_are_reckoned_exactly_or_not_at_all(a, b):
    def towards_zero(a, b):
        return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))

    oracle = {
        "+": a + b,
        "-": a - b,
        "*": a * b,
        "/": towards_zero(a, b) if b else None,
        "%": a - b * towards_zero(a, b) if b else None,
    }
    for sign, expected in oracle.items():
        if expected is None or not -(2**63) <= expected < 2**63:
            with pytest.raises(EvaluationError):
                PROGRAMS[sign].evaluate({"a": a, "b": b})
        else:
            assert PROGRAMS[sign].evaluate({"a": a, "b": b}) == expected


@given(NUMBERS, NUMBERS)
def test_numbers_of_every_kind_have_one_order(a, b):
    oracle = {
        "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b
    }  # fmt: skip
    for sign, expected in oracle.items():
        assert PROGRAMS[sign].evaluate({"a": a, "b": b}) is expected


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), INTS, st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(JSON, JSON)
def test_equality_tells_a_truth_from_a_number(a, b):
    def tagged(value):
        if isinstance(value, list):
            return [tagged(one) for one in value]
        if isinstance(value, dict):
            return {key: tagged(one) for key, one in value.items()}
        return (type(value).__name__, value)

    assert PROGRAMS["=="].evaluate({"a": a, "b": b}) is (tagged(a) == tagged(b))
    assert PROGRAMS["=="].evaluate({"a": a, "b": a}) is True


@given(st.text(max_size=40))
def test_no_text_breaks_the_compiler(text):
    with suppress(CompileError):
        compile_expression(text, CEL)
