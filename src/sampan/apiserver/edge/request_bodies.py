"""Request bodies on their way into a call: beside the event loop where one is large.

Job: the call of a request's head → the same call with its body, options and problems.
Invariant: no body is read before its call was authorized: reading one costs more than refusing it.
"""

from sampan.api.calls import Call
from sampan.api.errors import RequestEntityTooLarge
from sampan.api.protobuf.codec import ProtobufReader
from sampan.apiserver.http import bodies
from sampan.apiserver.write.decoding import expected_kind
from sampan.core.http.messages import Request
from sampan.core.side_thread import SideThread


class RequestBodies:
    def __init__(self, protobuf: ProtobufReader, side: SideThread, yaml_side: SideThread) -> None:
        self._protobuf, self._side, self._yaml_side = protobuf, side, yaml_side

    async def read(self, request: Request, call: Call) -> Call:
        """Raises BadRequest, RequestEntityTooLarge, UnsupportedMediaType."""
        refuse_too_large(request)

        def read() -> Call:
            return self._with_body(request, call)

        if bodies.is_long_yaml(request):
            return await self._yaml_side.run(read)
        if len(request.body) > bodies.AT_ONCE_BYTES:
            return await self._side.run(read)
        return read()

    def _with_body(self, request: Request, call: Call) -> Call:
        options = call.options
        body: object = None
        problems: tuple[str, ...] = ()
        if call.verb == "patch":
            kind = options.patch_type
            body, problems = bodies.patch_body_of(request, kind, options.field_validation)
        elif call.verb in ("delete", "deletecollection"):
            options = bodies.delete_options(request, options, self._protobuf)
        else:
            kind = expected_kind(call.resource, call.subresource)[1]
            validation = options.field_validation
            body, problems = bodies.body_of(request, validation, self._protobuf, kind)
            if call.resource.custom is not None:
                bodies.check_kind(request, kind, body)
        return Call(
            call.verb, call.resource, call.namespace, call.name, call.subresource, body, options,
            problems, call.agent, len(request.body), call.marks,
        )  # fmt: skip


def refuse_too_large(request: Request) -> None:
    """Raises RequestEntityTooLarge."""
    if request.body_too_large:
        raise RequestEntityTooLarge(f"Request entity too large: limit is {bodies.LIMIT}")
