"""What tests draw by chance: the same in every run.

Job: one seed for all; SAMPAN_SEED chooses another story.
"""

import os
import random

SEED = int(os.environ.get("SAMPAN_SEED") or "1")


def drawn() -> random.Random:
    return random.Random(SEED)
