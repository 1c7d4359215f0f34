"""The random seed of a run, sealed: only the user who sealed it can open it. Knows a key and a box, no tape's place.

From the seed every value can be computed that the agent drew, so a tape that is given away should not have it in clear;
its owner's replays need it. The box is ChaCha20-Poly1305 (RFC 8439) under a key made of the redaction key; it is bound
to the tape's start. Importing cryptography costs 50 ms, and is done for tapes with such a box alone.
"""

import dataclasses
import secrets
from typing import Final

from blake3 import blake3

from tapeproxy.tapes.records import Head

_CONTEXT: Final = "tapeproxy 2026 the box of a run's seed"
_NONCE: Final = 12


def sealed(head: Head, key: bytes) -> Head:
    """The head with its seed in a box; as it is where it has none. `key`: the user's redaction key."""
    if head.seed is None:
        return head
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    nonce = secrets.token_bytes(_NONCE)
    box = nonce + ChaCha20Poly1305(_key(key)).encrypt(nonce, head.seed.encode(), head.started_at.encode())
    return dataclasses.replace(head, seed=None, sealed_seed=box.hex())


def opened(head: Head, key: bytes) -> Head:
    """The head with the seed from its box; as it is where there is none, or it is another's."""
    if head.sealed_seed is None or head.seed is not None:
        return head
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        box = bytes.fromhex(head.sealed_seed)
        seed = ChaCha20Poly1305(_key(key)).decrypt(box[:_NONCE], box[_NONCE:], head.started_at.encode())
    except (InvalidTag, ValueError):
        return head
    return dataclasses.replace(head, seed=seed.decode())


def _key(key: bytes) -> bytes:
    return blake3(key, derive_key_context=_CONTEXT).digest()
