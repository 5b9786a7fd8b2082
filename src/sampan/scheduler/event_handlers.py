"""Event handlers: changes of pods, nodes, volumes and devices, for cache and queue.

Job: upstream's event handlers: an object that changed is told to the cache; what that may help,
and the pods that wait, to the queue.
Invariant: pods of another scheduler, or with a node, are never queued.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sampan.api.objects import Obj, is_deleted, key_of, labels_of, name_of, uid_of
from sampan.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from sampan.api.rules.device_taints import served_taint_rules
from sampan.api.rules.pods import is_terminal, node_name
from sampan.client.informer import Informer, Informers
from sampan.scheduler.binding.bind import GATED, GATED_MESSAGE
from sampan.scheduler.binding.binding_cycle import Bindings
from sampan.scheduler.binding.cycle_parts import CycleParts
from sampan.scheduler.intake import Changed, Steps
from sampan.scheduler.model.assigned_pod import assigned_pod_after, assigned_pod_of
from sampan.scheduler.model.cluster_events import DevicesChanged, StorageChanged
from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import PodInfo, pod_info_of, scheduler_of, without
from sampan.scheduler.model.pod_weight import is_long
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.profile import Profile

Put = Callable[[str, Obj | None], None]  # an object's key and what it is now; None: it is gone


class EventHandlers:
    def __init__(
        self,
        parts: CycleParts,
        bindings: Bindings,
        profiles: Mapping[str, Profile],
        plugins: Mapping[str, Sequence[tuple[Plugin, int]]],
    ) -> None:
        self._cache, self._pending, self._reports = parts.cache, parts.pending, parts.reports
        self._outside, self._intake = parts.outside, parts.intake
        self._bindings, self._profiles, self._plugins = bindings, profiles, plugins
        self.nodes: dict[str, Obj] = {}  # as objects, for extenders

    def follow(self, informers: Informers) -> Sequence[Informer]:
        """Returns those without which nothing can be scheduled."""
        needed = []
        for resource, changed in (
            (NAMESPACES, self._intake.through(self.namespace_changed)),
            (NODES, self._intake.through(self.node_changed)),
            (PODS, self._intake.in_steps(self.pod_changed, is_long)),
        ):
            informer = informers.of(resource)
            informer.on_change(changed)
            needed.append(informer)
        self._watch_storage(informers)
        self._watch_workloads(informers)
        self._watch_devices(informers)
        return needed

    def _watch_storage(self, informers: Informers) -> None:
        volumes = self._cache.columns.volumes
        for resource, put in (
            (PERSISTENT_VOLUME_CLAIMS, volumes.put_claim),
            (PERSISTENT_VOLUMES, volumes.put_volume),
            (STORAGE_CLASSES, volumes.put_class),
            (CSI_NODES, volumes.put_limits),
            (VOLUME_ATTACHMENTS, volumes.put_attachment),
            (CSI_DRIVERS, volumes.put_driver),
            (CSI_STORAGE_CAPACITIES, volumes.put_capacity),
        ):
            informers.of(resource).on_change(self._intake.through(self._storage_changes(put)))

    def _watch_workloads(self, informers: Informers) -> None:
        """They change where a pod would rather go, not whether it can: no pod is called back."""
        workloads = self._cache.columns.workloads
        informers.of(SERVICES).on_change(
            self._intake.through(_change_listener(workloads.put_service))
        )
        for resource in (REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS):
            put = partial(workloads.put_controller, resource.kind)
            informers.of(resource).on_change(self._intake.through(_change_listener(put)))

    def _watch_devices(self, informers: Informers) -> None:
        allocation = self._cache.columns.devices
        for resource, put in (
            (RESOURCE_SLICES, allocation.put_slice),
            (DEVICE_CLASSES, allocation.devices.put_class),
        ):
            informers.of(resource).on_change(self._intake.through(self._device_changes(put)))
        rules = served_taint_rules()
        if rules is not None:
            put_rule = self._device_changes(allocation.put_rule)
            informers.of(rules).on_change(self._intake.through(put_rule))
        informers.of(RESOURCE_CLAIMS).on_change(self._intake.through(self._device_claim_changed))

    def node_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            if self._outside:
                self.nodes[name_of(new)] = new
            self._pending.happened(self._cache.put_node(node_info_of(new)))
        elif old is not None:
            self.nodes.pop(name_of(old), None)
            self._pending.happened(self._cache.remove_node(name_of(old)))

    def namespace_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            if old is None or labels_of(old) != labels_of(new):
                self._pending.happened(self._cache.put_namespace(name_of(new), labels_of(new)))
        elif old is not None:
            self._pending.happened(self._cache.put_namespace(name_of(old), None))

    def _storage_changes(self, put: Put) -> Changed:
        def put_and_tell(key: str, written: Obj | None) -> None:
            put(key, written)
            self._cache.columns.changed_beside()
            self._bindings.volumes.changed()
            self._pending.happened(StorageChanged(key))

        return _change_listener(put_and_tell)

    def _device_changes(self, put: Put) -> Changed:
        def put_and_tell(key: str, written: Obj | None) -> None:
            put(key, written)
            self._cache.columns.changed_beside()
            self._pending.happened(DevicesChanged())

        return _change_listener(put_and_tell)

    def _device_claim_changed(self, old: Obj | None, new: Obj | None) -> None:
        claim = new if new is not None else old
        assert claim is not None
        devices = self._cache.columns.devices.devices
        before = devices.claims.get(key_of(claim))
        devices.put_claim(key_of(claim), new)
        self._cache.columns.changed_beside()
        after = devices.claims.get(key_of(claim))
        had = before is not None and before.allocation is not None
        freed = had and (after is None or after.allocation is None)
        self._pending.happened(DevicesChanged(key_of(claim), freed))

    def pod_changed(self, old: Obj | None, new: Obj | None) -> Steps:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            yield from self._pod_gone(uid_of(old))
        if new is None:
            return
        if is_terminal(new):
            yield from self._pod_gone(uid_of(new))
        elif node := node_name(new):
            uid = uid_of(new)
            self._pending.remove(uid)
            self._bindings.confirmed(uid)
            before = self._cache.pod(uid) if old is not None else None
            made = yield (
                partial(assigned_pod_of, new)
                if old is None or before is None
                else partial(assigned_pod_after, before, old, new)
            )
            events = yield partial(self._cache.put_pod, uid, node, made)
            for event in events:
                self._pending.happened(event)
        elif scheduler_of(new) in self._profiles:
            yield from self._pod_waits(new)

    def _pod_gone(self, uid: str) -> Steps:
        self._bindings.gone(uid)
        self._pending.withdraw(uid)
        gone = yield partial(self._cache.remove_pod, uid)
        self._pending.happened(gone)

    def _pod_waits(self, pod: Obj) -> Steps:
        uid = uid_of(pod)
        if is_deleted(pod):
            self._pending.withdraw(uid)
            return
        if uid not in self._pending.queue and self._cache.node_of(uid) is not None:
            return  # bound by us, and this is from before: the confirmation is on its way
        row = yield partial(pod_info_of, pod)
        self._pending.put(self._row(pod, row), pod)
        waiting = self._pending.queue.get(uid)
        if waiting is not None and set(waiting.pod.gates) - {waiting.pod.shape.devices.problem}:
            self._reports.not_scheduled(pod, GATED, GATED_MESSAGE)

    def _row(self, pod: Obj, row: PodInfo) -> PodInfo:
        """With what the plugins say of its turn."""
        if row.shape.devices.problem:
            # As upstream's PreEnqueue: until its claims are made, it is not even tried.
            row = replace(row, gates=(*row.gates, row.shape.devices.problem))
        for plugin, _ in self._plugins[row.scheduler]:
            held = plugin.pre_enqueue(pod)
            if held is not None:
                row = replace(row, gates=(*row.gates, f"{plugin.name}: {held}"))
            order = plugin.sort_key(pod)
            if order is not None:
                row = replace(row, order=order)
        profile = self._profiles[row.scheduler]
        if not self._outside.resources and not profile.ignores_some:
            return row
        requested = (name for name, _ in row.shape.usage.requests)
        return without(
            row,
            {
                item
                for item in requested
                if item in self._outside.resources or profile.ignores(item)
            },
        )

    def reconsider(self, uid: str) -> None:
        pod = self._pending.objects.get(uid)
        if pod is not None:
            self._pending.put(self._row(pod, pod_info_of(pod)), pod)
            self._pending.activate(uid)


def _change_listener(put: Put) -> Changed:
    def changed(old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        put(key_of(obj), new)

    return changed
