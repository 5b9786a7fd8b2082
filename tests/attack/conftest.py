"""What measurements of the loop have in common."""

import gc

import pytest


@pytest.fixture
def settled_memory():
    """Collecting the garbage of a whole test run is nobody's request."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()
