"""`python -m sampan` is `sampan`."""

import sys

from sampan.cmd.main import main

sys.exit(main())
