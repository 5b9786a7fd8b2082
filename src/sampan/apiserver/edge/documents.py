"""Non-resource paths: health, version, discovery, OpenAPI, traces, the page's login code.

Job: authorize the path, then answer with the document that is served there.
"""

from sampan.api.errors import BadRequest, Forbidden, NotAcceptable
from sampan.api.protobuf.codec import ProtobufReader
from sampan.apiserver.authn.page_sessions import CODE_SECONDS
from sampan.apiserver.authn.user import User
from sampan.apiserver.chain import Chain
from sampan.apiserver.http import bodies, page, replies
from sampan.apiserver.http.negotiate import REPRESENTED, check_represented
from sampan.apiserver.http.nonresource_paths import Documents
from sampan.apiserver.http.page import Page
from sampan.apiserver.http.request import method_not_allowed, nothing_at
from sampan.apiserver.http.trace_paths import TracePaths
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.written_forms import JSON

_READ_ONLY = {
    "/version": (JSON,),
    "/.well-known/openid-configuration": (JSON,),
    "/openid/v1/jwks": ("application/jwk-set+json",),
}


class DocumentsEdge:
    def __init__(
        self, chain: Chain, documents: Documents, page: Page | None, protobuf: ProtobufReader
    ) -> None:
        self._chain, self._documents, self._page, self._protobuf = chain, documents, page, protobuf
        self._trace_paths = TracePaths(chain.traced, chain.scope.authorization, protobuf)

    def page_reply(self, request: Request) -> Reply | None:
        """A file of the page, which nobody has to be somebody for; None: the path is another's."""
        return None if self._page is None else self._page.reply(request)

    async def wants_body(self, request: Request, user: User) -> bool:
        """Of what other parts are asked to do. Raises ApiError."""
        if request.path not in self._documents.actions:
            return False
        await self._chain.authorize_path(user, request.method.lower(), request.path)
        return True

    async def reply(self, request: Request, verb: str, user: User) -> Reply:
        """Raises ApiError."""
        traced = await self._trace_paths.reply(request, verb, user)
        if traced is not None:
            return traced
        if request.path == page.CODE_PATH and verb == "create" and self._page is not None:
            return await self._login_code(request, user)
        await self._chain.authorize_path(user, request.method.lower(), request.path)
        if request.method == "POST" and (action := self._documents.actions.get(request.path)):
            body = bodies.body_of(request, "Ignore", self._protobuf)[0] if request.body else {}
            if not isinstance(body, dict):
                raise BadRequest("the body is no object")
            return replies.object_reply(await action(body))
        aggregation = self._chain.aggregation
        server = aggregation.openapi_server(request.path) if verb == "get" else None
        if server is not None:
            return await aggregation.proxy.reply(server, request, user)
        available = _only_read(request.path)
        try:
            reply = await self._documents.reply(request)
        except NotAcceptable:
            check_represented(request.headers.get("accept", ""), available)
            raise
        if reply is None:
            raise nothing_at(request.path)
        if available and request.method != "GET":
            raise method_not_allowed()
        check_represented(request.headers.get("accept", ""), available)
        return reply

    async def _login_code(self, request: Request, user: User) -> Response:
        """Whoever is somebody may log in to the page, as that. Raises Forbidden."""
        code = await self._chain.scope.authentication.login_code(request, user)
        if code is None:
            raise Forbidden("a login code is for who shows a certificate or token of their own")
        return replies.object_reply(page.code_answer(code, CODE_SECONDS), 201)


def _only_read(path: str) -> tuple[str, ...]:
    """In which forms, where anything but a GET is refused. As upstream: whoever answers the others
    does not look at the method; a health check by OPTIONS, as balancers send it, is one."""
    path = path.rstrip("/")
    is_core = path == "/api" or path.startswith("/api/")
    is_version = path.startswith("/apis/") and path.count("/") > 2
    return REPRESENTED if is_core or is_version else _READ_ONLY.get(path, ())
