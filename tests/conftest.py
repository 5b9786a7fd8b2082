"""For all tests: Hypothesis without deadlines, since a busy machine is not a bug; frozen instances
that refuse to be changed; and programs that need not compile sampan at each start, whatever the
environment says, and that end with Ctrl-C, even where a shell runs the tests in the background and
has them ignore it."""

import os
import signal

from hypothesis import settings

from sampan.core.fast_dataclass import refuse_changes

refuse_changes()  # before any other module of sampan defines its classes

settings.register_profile("sampan", deadline=None, print_blob=True)
settings.load_profile("sampan")

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # of processes that tests start
signal.signal(signal.SIGINT, signal.default_int_handler)
