"""CEL libraries by use: which expressions get which.

Job: the sets of libraries that environments are made of, as v1.35 has them.
"""

from sampan.api.cel.language.operators import OPERATORS
from sampan.api.cel.language.optionals import OPTIONALS
from sampan.api.cel.libraries.addresses import ADDRESSES, URLS
from sampan.api.cel.libraries.authorizer import AUTHORIZERS
from sampan.api.cel.libraries.extensions import BINDINGS, ENCODERS, MATH, SETS, TWO_VARIABLES
from sampan.api.cel.libraries.formats import FORMATS
from sampan.api.cel.libraries.kubernetes import JSON_PATCH, LISTS, QUANTITIES, REGEX
from sampan.api.cel.libraries.standard import FUNCTIONS
from sampan.api.cel.libraries.strings import STRINGS
from sampan.api.cel.libraries.times import TIMES
from sampan.api.cel.libraries.versions import VERSIONS

_CEL = (OPERATORS, FUNCTIONS, TIMES)
# CEL with its own extensions; Kubernetes enables only some of them.
STANDARD = (*_CEL, OPTIONALS, STRINGS, SETS, MATH, ENCODERS, BINDINGS, TWO_VARIABLES)
KUBERNETES = (
    *_CEL, OPTIONALS, STRINGS, SETS, TWO_VARIABLES, LISTS, REGEX, URLS, QUANTITIES, ADDRESSES,
    FORMATS, VERSIONS, AUTHORIZERS,
)  # fmt: skip
KUBERNETES_DEVICES = (*KUBERNETES, BINDINGS)
KUBERNETES_PATCHES = (*KUBERNETES, JSON_PATCH)
