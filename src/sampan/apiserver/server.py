"""The API server: its parts put together, its start and its end.

Job: build the chain, fill an empty store, answer requests from both wires, stop cleanly.
Invariant: when it stops, readyz fails first and watches end before the store is let go.
"""

import random
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sampan.api import features
from sampan.api.calls import Call
from sampan.api.errors import AlreadyExists
from sampan.api.kinds import Kinds
from sampan.api.objects import Obj, labels_of, name_of, namespace_of, time_text
from sampan.api.resources import (
    API_SERVICES,
    DEVICE_TAINT_RULES,
    ENDPOINT_SLICES,
    ENDPOINTS,
    INGRESS_CLASSES,
    INGRESSES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_SLICES,
    RESOURCES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from sampan.api.schema.published import Schema
from sampan.apiserver.admission.admission_metrics import AdmissionMeasure
from sampan.apiserver.admission.chain import Admission
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.plugins import chosen_plugins
from sampan.apiserver.aggregation.aggregation import Aggregation
from sampan.apiserver.audit.audit_log import Audit, Sink
from sampan.apiserver.audit.policy import AuditPolicy
from sampan.apiserver.audit.sinks import FileSink, WebhookSink
from sampan.apiserver.authn.chain import Authentication
from sampan.apiserver.authn.options import authenticators, token_signer
from sampan.apiserver.authn.tokens import TokenSigner
from sampan.apiserver.authn.user import MASTERS, User, with_authenticated_group
from sampan.apiserver.authz.bootstrap.objects import rbac_objects, reconcile
from sampan.apiserver.authz.chain import Authorization
from sampan.apiserver.authz.constrained_impersonation import Impersonation
from sampan.apiserver.authz.modes import Modes, followed_rbac
from sampan.apiserver.authz.settings import AuthorizerSettings
from sampan.apiserver.chain import Chain
from sampan.apiserver.edge.http_edge import HttpEdge, RequestPolicy
from sampan.apiserver.edge.inprocess_edge import AsUser, AuditedUser
from sampan.apiserver.extension.api_services import ApiServices, built_in
from sampan.apiserver.extension.conversion import Conversions
from sampan.apiserver.extension.definitions import Definitions
from sampan.apiserver.flow.control import FlowControl
from sampan.apiserver.flow.dumps import texts
from sampan.apiserver.flow.in_flight import InFlight, RequestLimit
from sampan.apiserver.flow.objects import LEVELS, SCHEMAS, flow_objects
from sampan.apiserver.flow.objects import reconcile as flow_reconciled
from sampan.apiserver.flow.upkeep import FlowUpkeep
from sampan.apiserver.http.health import Health
from sampan.apiserver.http.metrics import Measure
from sampan.apiserver.http.nonresource_paths import Action, Document, Documents
from sampan.apiserver.http.page import Page
from sampan.apiserver.http.request import RequestInfo
from sampan.apiserver.outside.configured_callers import BeforeCall, ConfiguredCallers
from sampan.apiserver.outside.followed_files import Followed
from sampan.apiserver.outside.service_reference import resolver
from sampan.apiserver.outside.webhook_client import Caller
from sampan.apiserver.proxy.metrics_api import MetricsApi
from sampan.apiserver.proxy.node_proxy import NodeProxy
from sampan.apiserver.proxy.service_proxy import SERVICE_NAME, service_origin
from sampan.apiserver.registry import api_services, ingresses, pods
from sampan.apiserver.registry.bootstrap import bootstrap_objects, brought_up_to_date
from sampan.apiserver.registry.certificate_signing_requests import dating_strategy
from sampan.apiserver.registry.endpoint_reconciler import EndpointReconciler
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.registry.metadata import new_uid
from sampan.apiserver.registry.pod_template_cache import PodTemplateCache
from sampan.apiserver.registry.services import service_strategy
from sampan.apiserver.registry.services.allocated import AllAllocated
from sampan.apiserver.registry.services.allocation import Allocator, ServiceRanges
from sampan.apiserver.registry.services.service_claims import SERVICE_CIDRS, Claims
from sampan.apiserver.registry.services.service_repair import Repair
from sampan.apiserver.registry.strategies import (
    Strategies,
    slice_strategy,
    taint_rule_strategy,
    volume_strategy,
)
from sampan.apiserver.registry.strategy import Strategy
from sampan.apiserver.settings import ApiServerSettings
from sampan.apiserver.storage.store_metrics import StoreMetrics
from sampan.apiserver.subresources.late_handlers import LateHandlers
from sampan.apiserver.watch.listener import follow
from sampan.apiserver.watch.watch_cache import LoadProgress, WatchCache
from sampan.apiserver.watch.weights import weigh_server
from sampan.apiserver.write.create import create
from sampan.apiserver.write.ensure import ensure, insist, overwrite
from sampan.apiserver.write.identity_lease import identity_lease
from sampan.apiserver.write.legacy_tokens import LegacyTokens
from sampan.apiserver.write.node_batch import (
    Images,
    LeaseRenewals,
    NodeRegistrations,
    NodeReports,
)
from sampan.apiserver.write.ownership import Ownership
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core import tls
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import replace
from sampan.core.health_checks import Check
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Reply, Request
from sampan.core.http.origin import Origin
from sampan.core.metrics import Metrics
from sampan.core.side_thread import SideThread
from sampan.core.tasks import all_of
from sampan.store.contract import Store

if TYPE_CHECKING:
    from sampan.apiserver.authn.configuration import AuthenticationRules
    from sampan.apiserver.storage.encryption import EncryptedStore

_BOUND = {item.plural: item for item in (NODES, PODS, SECRETS, SERVICE_ACCOUNTS)}


class ApiServer:
    _flow_upkeep: FlowUpkeep | None = None  # where there is priority and fairness

    def __init__(
        self,
        store: Store,
        schema: Schema,
        settings: ApiServerSettings,
        clock: Clock,
        metrics: Metrics,
        rng: random.Random | None = None,
    ) -> None:
        """`rng`: names and uids come from it; whoever gives one can have them again."""
        rng = rng or random.Random(random.SystemRandom().getrandbits(128))
        self._settings, self._clock, self._metrics, self._rng = settings, clock, metrics, rng
        self._store = store = self._encrypt(store)
        self._cache = cache = WatchCache(store, clock)
        self._kinds = kinds = Kinds()
        self._registry = registry = Registry(store, cache, kinds, StoreMetrics(metrics, clock))
        signer = self._signer = token_signer(settings, clock, metrics)
        self._callers: list[Caller] = []
        self._authenticators = authenticators(settings, signer, self._callers, clock)
        claims = Claims(registry, settings.node_ports, clock, rng)
        allocated = AllAllocated(lambda: registry.find_all(SERVICES))
        follow(registry.kind(SERVICES), allocated.change, allocated.forget)
        ranges = ServiceRanges(settings.service_cidrs, lambda: registry.find_all(SERVICE_CIDRS))
        self._allocator = Allocator(ranges, settings.node_ports, allocated, claims, rng)
        self._repair = Repair(registry, claims, clock)
        rbac = followed_rbac(registry)
        self._modes = Modes(registry, rbac, settings.abac_policy, clock, metrics)
        may = self._modes.authorization(settings.authorizers())
        callers = self._named_callers = ConfiguredCallers(resolver(registry.find, registry.find_in))
        conversions = Conversions(callers, lambda: new_uid(rng), SideThread("writes", 2))
        self._plugins = PluginInitializer(
            registry, may, rbac, settings.mount_service_account_tokens, settings.admission,
            self._make_namespace, metrics, clock, rng, schema, SideThread("expressions", 2),
            callers, conversions,
        )  # fmt: skip
        self.followed_files = self._followed_files(may, metrics)
        self._to_nodes = self._node_client()
        self._to_backends = HttpClient(
            ssl_context=tls.client_context(verify=False), allows=settings.proxied_address
        )
        scope = self._scope(schema, may)
        measured = MetricsApi(registry.find_all, self._to_nodes, clock, settings.scripts_of)
        self._aggregation = Aggregation(scope, metrics)
        handlers = LateHandlers(signer, measured.handlers())
        self._chain = Chain(scope, handlers.handler_of, self._aggregation)
        self._endpoint_reconciler = EndpointReconciler(
            registry, settings, partial(overwrite, scope), clock
        )
        self._identity_lease = identity_lease(scope)
        self._health = Health(self._health_checks())
        self._documents = Documents(self._health, metrics, scope, signer, self._aggregation)
        self._definitions = Definitions(scope)
        self._api_services, self._legacy_tokens = ApiServices(scope), LegacyTokens(scope)
        self._definitions.when_changed(self._api_services.changed)
        self._audit = self._audit_of(settings, metrics, clock, rng)
        self._edge = self._http_edge()
        metrics.gauge(
            "apiserver_storage_objects", "Number of stored objects", ("resource",)
        ).read_from(self._sizes)

    def _encrypt(self, store: Store) -> Store:
        """With values encrypted, where that is configured."""
        self._encrypted: EncryptedStore | None = None
        if self._settings.encryption is None:
            return store
        # Who stores in plain text does not wait for cryptography.
        from sampan.apiserver.storage import encryption

        keys = encryption.transformers(self._settings.encryption, self._clock)
        self._encrypted = encryption.EncryptedStore(store, keys)
        return self._encrypted

    def _health_checks(self) -> dict[str, Check]:
        """By upstream's names."""
        found = dict.fromkeys(("etcd", "etcd-readiness", "informer-sync"), self._cache_trouble)
        if self._encrypted is not None and self._encrypted.calling_schemes():
            found["kms-providers"] = self._encrypted.health
        return found

    def _scope(self, schema: Schema, may: Authorization) -> RequestScope:
        settings, clock = self._settings, self._clock
        ownership = Ownership(schema, self._kinds)
        templates = PodTemplateCache(schema, ownership.fields_of_new)
        return RequestScope(
            registry=self._registry,
            schema=schema,
            strategies=Strategies(settings, self._stateful_strategies(templates)),
            ownership=ownership,
            conversions=self._plugins.conversions,
            authentication=Authentication(
                self._authenticators,
                settings.token_audiences,
                self._find_bound,
                clock,
                self._metrics,
            ),
            authorization=may,
            admission=Admission(
                chosen_plugins(self._plugins), AdmissionMeasure(self._metrics, clock)
            ),
            settings=settings,
            clock=clock,
            rng=self._rng,
            side=self._plugins.conversions.side,
            traces=self._metrics.traces,
        )

    def _http_edge(self) -> HttpEdge:
        nodes = None if self._to_nodes is None else self._node_proxy(self._to_nodes)
        limit = self._request_limit(self._settings, self._metrics, self._clock)
        measure = Measure(self._metrics)
        sessions = self._authenticators.sessions
        page = None if sessions is None else Page(sessions)
        policy = RequestPolicy(measure, limit, self._audit, self._constrained_impersonation())
        return HttpEdge(self._chain, self._documents, page, nodes, policy, self._clock)

    def _constrained_impersonation(self) -> Impersonation | None:
        if not features.enabled("ConstrainedImpersonation"):
            return None
        return Impersonation(self._chain.authorize_impersonation, self._metrics, self._clock)

    async def start(self, progress: LoadProgress | None = None) -> None:
        """Read the store, create what a cluster starts with. On a filled store it only reads.
        `progress` hears how many objects of how many were read."""
        weigh_server(self._metrics, self, self._store, self._cache)
        if self._encrypted is not None:
            strategies = self._chain.scope.strategies
            lives = {item.storage_prefix: strategies.of(item).ttl_seconds for item in RESOURCES}
            await self._encrypted.reencrypt(lives)
        await self._cache.start(progress)
        await insist(lambda: all_of(self._missing_objects()), self._clock)
        await self._start_parts()
        self._health.started = True

    def _missing_objects(self) -> list[Coroutine[None, None, object]]:
        """What writes those of a cluster's first objects that are not there as they should be."""
        steps: list[Coroutine[None, None, object]] = []
        scope = self._chain.scope
        for resource, obj in bootstrap_objects(self._settings, self._allocator.first_address):
            found = self._registry.find(resource, namespace_of(obj), name_of(obj))
            if found is None:
                steps.append(ensure(scope, resource, obj))
            elif self._store.shared and resource in (ENDPOINTS, ENDPOINT_SLICES):
                continue  # other servers are in there too
            elif changed := brought_up_to_date(resource, found, obj):
                steps.append(overwrite(scope, resource, changed))
        own = [(*item, reconcile) for item in rbac_objects()]
        own += [(*item, flow_reconciled) for item in flow_objects(self._clock.now())]
        for resource, obj, put_right in own:
            found = self._registry.find(resource, namespace_of(obj), name_of(obj))
            if found is None:
                steps.append(ensure(scope, resource, obj))
            elif changed := put_right(found, obj):
                steps.append(overwrite(scope, resource, changed))
        for service in built_in():
            if self._registry.find(API_SERVICES, "", name_of(service)) is None:
                steps.append(ensure(scope, API_SERVICES, service))
        return steps

    async def _start_parts(self) -> None:
        if self._signer is not None:
            await self._signer.start()
        await self._definitions.start()
        await self._api_services.start()
        await self._legacy_tokens.start()
        self._aggregation.start()
        await self._repair.at_start()
        if self._store.shared:
            await self._endpoint_reconciler.once()
        if self._identity_lease is not None:
            await self._identity_lease.begin()

    @property
    def sign_account_token(self) -> Callable[[str, str, str, str], str] | None:
        """For the controller that fills secrets with tokens; None: this server signs none."""
        return self._signer.legacy_token if isinstance(self._signer, TokenSigner) else None

    async def renew_leases(self, times: Mapping[str, str]) -> Collection[str]:
        """For nodes of this process: node → renewTime; those that have to renew by themselves."""
        return await self._chain.node_batch(LeaseRenewals(times))

    async def register_nodes(
        self, pattern: str, addresses: Mapping[str, Sequence[str]]
    ) -> Collection[str]:
        """For nodes of this process, that are like one of them; those that have to register by
        themselves."""
        return await self._chain.node_batch(NodeRegistrations(pattern, addresses))

    async def report_nodes(self, images: Images, agent: str = "") -> Collection[str]:
        """For nodes of this process, that are Ready: the images of those that have others than
        before; those that have to patch their status by themselves."""
        return await self._chain.node_batch(NodeReports(images, agent))

    async def token_user(self, token: str) -> User:
        """Whom a bearer token stands for. Raises BadToken."""
        return await self._chain.scope.authentication.token_user(token)

    def add_document(self, prefix: str, found: Document) -> None:
        """Serve other parts' answers below a path, to who is allowed to get it."""
        self._documents.add(prefix, found)

    def add_action(self, path: str, action: Action) -> None:
        """Do what another part is asked to by a POST there, for who is allowed to post it."""
        self._documents.actions[path] = action

    def before_webhooks(self, before: BeforeCall) -> None:
        """Called before each webhook is: whoever wants to see that, or to hold it up."""
        self._named_callers.before = before

    async def wants_body(self, request: Request) -> bool:
        return await self._edge.wants_body(request)

    async def handle_http(self, request: Request) -> Reply:
        return await self._edge.reply(request)

    def as_user(self, user: User) -> AsUser | AuditedUser:
        """The server as one user sees it from inside this process."""
        if self._audit is None:
            return AsUser(self._chain, with_authenticated_group(user))
        return AuditedUser(self._chain, with_authenticated_group(user), self._audit)

    async def keep_repaired(self) -> None:
        """Now and then what services have is compared with what is taken, and the servers that
        there are with the endpoints of `kubernetes`; flow schemas and priority levels, when they
        change, with what must be. Until cancelled."""
        works = [self._repair.keep_going(), *(file.keep_going() for file in self.followed_files)]
        if self._store.shared:
            works.append(self._endpoint_reconciler.keep_going())
        if self._identity_lease is not None:
            works.append(self._identity_lease.keep_going())
        if self._signer is not None:
            works.append(self._signer.keep_going())
        if self._flow_upkeep is not None:
            scope = self._chain.scope
            works.append(
                self._flow_upkeep.keep_going(partial(ensure, scope), partial(overwrite, scope))
            )
        await all_of(works)

    def wind_down(self) -> None:
        """readyz fails from now on; requests are still answered."""
        self._health.stopping = True

    async def stop(self) -> None:
        self.wind_down()
        if self._store.shared and not self._cache.stopped:
            await self._endpoint_reconciler.leave()
            if self._identity_lease is not None:
                await self._identity_lease.leave()
        await self._aggregation.stop()
        await self._legacy_tokens.stop()
        await self._api_services.stop()
        await self._definitions.stop()
        await self._cache.stop()
        if self._to_nodes is not None:
            await self._to_nodes.close()
        await self._to_backends.close()
        self._edge.close()
        self._plugins.side.close()
        self._chain.scope.side.close()
        if self._audit is not None:
            await self._audit.close()  # it has something left to say to one of these
        for caller in self._callers:
            await caller.close()
        await self._named_callers.close()
        for close in self._plugins.at_stop:
            await close()
        await self._modes.close()
        if self._authenticators.issuers is not None:
            await self._authenticators.issuers.close()
        if self._signer is not None:
            await self._signer.close()

    def _followed_files(self, may: Authorization, metrics: Metrics) -> list[Followed[Any]]:
        """Configuration that is read again when its file changes; what it says of anonymous
        callers holds from the start on, as upstream."""
        settings, clock = self._settings, self._clock
        found: list[Followed[Any]] = []
        issuers = self._authenticators.issuers

        async def new_issuers(rules: "AuthenticationRules") -> None:
            assert issuers is not None
            await issuers.replace((*settings.oidc, *rules.issuers))

        async def new_authorizers(chosen: tuple[AuthorizerSettings, ...]) -> None:
            await self._modes.replace(may, chosen)

        if settings.authentication_config is not None:
            source = settings.authentication_config
            found.append(Followed("authentication", source, new_issuers, clock, metrics))
        if settings.authorization_config is not None:
            chain = settings.authorization_config
            found.append(Followed("authorization", chain, new_authorizers, clock, metrics))
        return found

    def _stateful_strategies(self, templates: PodTemplateCache) -> dict[str, Strategy]:
        return {
            "pods": replace(pods.STRATEGY, templates=templates),
            "services": service_strategy.strategy(self._allocator),
            INGRESSES.group_resource: ingresses.strategy(
                lambda: self._registry.find_all(INGRESS_CLASSES)
            ),
            "persistentvolumes": volume_strategy(self._clock),
            RESOURCE_SLICES.group_resource: slice_strategy(self._clock),
            DEVICE_TAINT_RULES.group_resource: taint_rule_strategy(self._clock),
            "certificatesigningrequests.certificates.k8s.io": dating_strategy(self._clock),
            API_SERVICES.group_resource: api_services.strategy(
                lambda: time_text(self._clock.now())
            ),
        }

    async def _make_namespace(self, name: str) -> None:
        """For NamespaceAutoProvision: as the server itself."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        system = with_authenticated_group(User("system:apiserver", (MASTERS,)))
        try:
            await create(self._chain.scope, system, Call("create", NAMESPACES, body=body))
        except AlreadyExists:
            return

    def _audit_of(
        self, settings: ApiServerSettings, metrics: Metrics, clock: Clock, rng: random.Random
    ) -> Audit | None:
        if settings.audit_policy is None:
            return None
        sinks: list[Sink] = []
        if settings.audit_file is not None:
            sinks.append(FileSink(settings.audit_file, clock, metrics))
        if settings.audit_webhook is not None:
            self._callers.append(Caller(settings.audit_webhook))
            sinks.append(WebhookSink(self._callers[-1], clock, metrics))
        return Audit(AuditPolicy(settings.audit_policy), sinks, clock, lambda: new_uid(rng))

    def _request_limit(
        self, settings: ApiServerSettings, metrics: Metrics, clock: Clock
    ) -> RequestLimit:
        """Priority and fairness, or the plain counters where it is switched off; never both."""
        if not settings.request_seats:
            return InFlight(
                settings.max_requests_in_flight, settings.max_mutating_requests_in_flight
            )
        registry = self._registry

        def count(info: RequestInfo) -> int:
            if info.resource is None or info.elsewhere:
                return 0
            return len(registry.kind(info.resource))

        flow = FlowControl(
            settings.request_seats, lambda: registry.find_all(SCHEMAS),
            lambda: registry.find_all(LEVELS), count, clock, metrics,
        )  # fmt: skip
        self._documents.texts |= texts(flow.state)
        upkeep = self._flow_upkeep = FlowUpkeep(
            lambda: registry.find_all(SCHEMAS), lambda: registry.find_all(LEVELS), clock
        )

        def changed() -> None:
            flow.changed()
            upkeep.changed()

        for kind in (SCHEMAS, LEVELS):
            follow(registry.kind(kind), lambda _before, _now: changed(), changed)
        return flow

    def _node_client(self) -> HttpClient | None:
        make = self._settings.kubelet_tls
        if make is None:
            return None
        return HttpClient(ssl_context=make(), place_of=self._settings.kubelet_place)

    def _node_proxy(self, http: HttpClient) -> NodeProxy:
        async def get_pod(namespace: str, name: str) -> Obj:
            return (await self._registry.current(PODS, namespace, name)).obj

        async def get_node(name: str) -> Obj:
            return (await self._registry.current(NODES, "", name)).obj

        async def get_service_origin(namespace: str, name: str, scheme: str, port: str) -> Origin:
            registry = self._registry
            service = (await registry.current(SERVICES, namespace, name)).obj
            slices = [
                item
                for item in registry.find_all(ENDPOINT_SLICES)
                if namespace_of(item) == namespace and labels_of(item).get(SERVICE_NAME) == name
            ]

            def find_pod(pod_namespace: str, pod_name: str) -> Obj | None:
                return registry.find(PODS, pod_namespace, pod_name)

            return service_origin(service, slices, find_pod, scheme, port, self._chain.scope.rng)

        return NodeProxy(
            http, get_pod, get_node,
            backend_http=self._to_backends, get_service_origin=get_service_origin,
        )  # fmt: skip

    def _find_bound(self, plural: str, namespace: str, name: str) -> Obj | None:
        return self._registry.find(_BOUND[plural], namespace, name)

    def _cache_trouble(self) -> str:
        return "the watch cache does not follow the store" if self._cache.stopped else ""

    def _sizes(self) -> dict[tuple[str, ...], float]:
        sizes = self._cache.sizes()
        return {(prefix.split("/")[2],): float(size) for prefix, size in sizes.items()}
