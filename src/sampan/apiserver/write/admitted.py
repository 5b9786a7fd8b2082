"""A write between its last check and its end.

Job: run the validating plugins, and settle what they took for the write (quota) when it is over.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sampan.apiserver.admission.chain import Admission, Attributes
from sampan.apiserver.audit.audit_log import is_noting


@asynccontextmanager
async def admitted(admission: Admission, attributes: Attributes) -> AsyncIterator[None]:
    """Validated; what plugins took for the write (quota) is let go when it is over."""
    stored = False
    try:
        await admission.validate(attributes)
        yield
        stored = True
    finally:
        if attributes.audit and is_noting():
            admission.note(attributes)
        if attributes.releases:
            await admission.settle(attributes, stored)
