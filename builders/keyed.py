"""Random draws that depend on a key and on nothing else.

Worker count, order on disk, machine and Python version change no draw: the key is hashed with
BLAKE2b, and every draw is made from ``random.Random.random``, the one method whose sequence the
standard library promises to keep for a given seed.
"""

import random
from collections.abc import MutableSequence, Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def keyed_hash(*key: str | int) -> int:
    """Return a 64-bit hash of ``key``, the same on every machine.

    Parts are joined by a separator that no part may contain, so that ("ab", "c") and ("a", "bc")
    differ.

    >>> keyed_hash("sample", 0, "a") == keyed_hash("sample", "0", "a")
    True
    """
    text = "\x1f".join(map(str, key))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


class KeyedRandom:
    """Draws for one key, such as (version, seed, source, image id, sub-task)."""

    __slots__ = ("_random",)

    def __init__(self, *key: str | int) -> None:
        self._random = random.Random(keyed_hash(*key)).random

    def uniform(self, low: float, high: float) -> float:
        """Draw a float in ``[low, high)``."""
        return low + (high - low) * self._random()

    def below(self, n: int) -> int:
        """Draw an int in ``[0, n)``; ``n`` must be positive."""
        return int(self._random() * n)

    def integer(self, low: int, high: int) -> int:
        """Draw an int in ``[low, high]``."""
        return low + int(self._random() * (high - low + 1))

    def choice(self, values: Sequence[T]) -> T:
        """Draw one of ``values``."""
        return values[int(self._random() * len(values))]

    def shuffle(self, values: MutableSequence[T]) -> None:
        """Put ``values`` into a random order, in place."""
        for i in range(len(values) - 1, 0, -1):
            j = int(self._random() * (i + 1))
            values[i], values[j] = values[j], values[i]

    def sample(self, values: Sequence[T], k: int) -> list[T]:
        """Draw ``k`` of ``values`` without replacement, in random order.

        Raises:
            ValueError: Fewer than ``k`` values.
        """
        if k > len(values):
            raise ValueError(f"cannot draw {k} of {len(values)} values")
        pool = list(values)
        for i in range(k):
            j = i + int(self._random() * (len(pool) - i))
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]
