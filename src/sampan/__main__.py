"""`python -m sampan` is `sampan`."""

import sys

from sampan.cmd.entry import main

sys.exit(main())
