"""Ids that sort by the time they were made."""

from __future__ import annotations

import os
import random
import threading
import time


def new_id() -> str:
    """A UUIDv7 (RFC 9562) as text: ids made later in this process sort behind earlier ones.

    >>> first, second = new_id(), new_id()
    >>> first < second, len(first), first[14]
    (True, 36, '7')
    """
    global _last_id  # noqa: PLW0603 - the order holds within the process
    with _id_lock:
        fresh = (time.time_ns() // 1_000_000 << 74) | _random.getrandbits(74)
        # Within a millisecond, or after the clock went back: a random step beyond the last one.
        _last_id = fresh if fresh >> 74 > _last_id >> 74 else _last_id + 1 + _random.getrandbits(32)
        moment, middle, tail = _last_id >> 74, _last_id >> 62 & 0xFFF, _last_id & (1 << 62) - 1
    text = (moment << 80 | 0x7 << 76 | middle << 64 | 0b10 << 62 | tail).to_bytes(16, "big").hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_id_lock = threading.Lock()
_last_id = 0
_random = random.Random()


def _begin_anew() -> None:
    """A forked child must not wait for its parent's lock, nor go on with its parent's ids."""
    global _id_lock, _last_id, _random
    _id_lock, _last_id, _random = threading.Lock(), 0, random.Random()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
