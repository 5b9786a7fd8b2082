"""CEL, the expression language of policies, conditions, mappings and selectors. Pure.

What others use, and what stays as it is:

    from sampan.api.cel.catalog import KUBERNETES      # also STANDARD, KUBERNETES_DEVICES, …
    from sampan.api.cel.language.environment import Environment
    from sampan.api.cel.program import compile_expression
    from sampan.api.cel.language.errors import CompileError, EvaluationError, CostExceeded
    from sampan.api.cel.language.types import BOOL, DYN, STRING, Type, list_of, map_of

    environment = Environment({"claims": DYN}, KUBERNETES)
    program = compile_expression("claims.sub.startsWith('x')", environment)   # CompileError
    program.result_type                                                      # a Type, e.g. BOOL
    program.evaluate({"claims": {"sub": "xy"}})    # EvaluationError, CostExceeded
    program.evaluate(variables, Budget(10_000_000))  # Budget: sampan.api.cel.cost; shared by calls

Values are Python's own: int, float, bool, str, bytes, None, list, dict; `values.Uint` for uint,
`values.Timestamp`, `values.Duration`, `values.OptionalValue`. A variable's value may be any
Mapping, so that its entries can be worked out when they are asked for.

Import these where they are first needed, not at the top of a module: the libraries take some
milliseconds to load. Environments and programs are kept by their user; nothing is remembered here.

The way of an expression: lexer → parser (with macros) → checker → evaluator, which makes closures
of it once. functions.py is how a library adds to the language; standard.py and those beside it
are the libraries; catalog.py says who gets which.
"""
