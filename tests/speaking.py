"""What tests/e2e/programs/speakers.py says and is told: texts that only depend on where they are said."""

import random

STREAMS = 4
ROUNDS = 3
PIECES = 12


def text(path: str, piece: int) -> str:
    """Of any size, and never the start of a secret, for which it would be held back."""
    rng = random.Random(f"{path} {piece}")
    return f"{path} {piece} {rng.randbytes(rng.choice((5, 50, 3000))).hex()} .\n"
