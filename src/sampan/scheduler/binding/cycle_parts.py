"""What the binding cycle and preemption share.

Job: one value instead of nine arguments.
"""

from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.binding.api_call_limiter import Calls
from sampan.scheduler.binding.reports import Reports
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.extenders.extender_chain import Extenders
from sampan.scheduler.intake import Intake
from sampan.scheduler.metrics import Measures
from sampan.scheduler.queue.pending import Pending


@dataclass(frozen=True, slots=True)
class CycleParts:
    client: Client
    clock: Clock
    cache: CacheState
    pending: Pending
    reports: Reports
    measures: Measures
    calls: Calls
    outside: Extenders
    intake: Intake
