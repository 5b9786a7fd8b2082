"""Generated names.

Job: `generateName` plus five characters that spell no words. Pure, given the randomness.
"""

import random

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # as upstream: no vowels, nothing that looks alike
SUFFIX_LENGTH = 5
NAME_LENGTH = 63
ATTEMPTS = 8


def suffix(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=SUFFIX_LENGTH))


def generate_name(base: str, rng: random.Random) -> str:
    return base[: NAME_LENGTH - SUFFIX_LENGTH] + suffix(rng)
