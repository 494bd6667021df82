"""Options that are numbers: counts, lengths and areas around the right one.

The place of the right number among its wrong ones is drawn first, so that neither the smallest nor
the middle one is right more often than chance where there is room on both sides.
"""

from math import floor, log10

from soubench.builders.keyed import KeyedRandom

COUNT_STEP_SHARE = 0.2
"""Counts lie this share of the right one apart, and at least 1."""
MIN_RATIO = 1.35
MAX_RATIO = 1.6
"""Each length is this many times the next smaller one."""
DIGITS = 2


def count_options(count: int, wrong: int, rng: KeyedRandom) -> tuple[str, ...]:
    """Draw ``wrong`` counts around the right one."""
    step = max(1, round(COUNT_STEP_SHARE * count))
    below = rng.integer(0, min(wrong, count // step))
    values = [count - i * step for i in range(1, below + 1)]
    values += [count + i * step for i in range(1, wrong - below + 1)]
    rng.shuffle(values)
    return tuple(map(str, values))


def measure_options(value: float, unit: str, wrong: int, rng: KeyedRandom) -> tuple[str, ...]:
    """Draw ``wrong`` lengths or areas around the right one, each with its unit."""
    below = rng.integer(0, wrong)
    values = []
    for steps, sign in ((below, -1), (wrong - below, 1)):
        factor = 1.0
        for _ in range(steps):
            factor *= rng.uniform(MIN_RATIO, MAX_RATIO) ** sign
            values.append(measure_text(value * factor, unit))
    rng.shuffle(values)
    return tuple(values)


def measure_text(value: float, unit: str) -> str:
    """Return a positive number with two digits and its unit.

    >>> measure_text(1234, "m"), measure_text(0.5, "m"), measure_text(9.96, "m²")
    ('1200 m', '0.5 m', '10 m²')
    """
    places = DIGITS - 1 - floor(log10(value))
    rounded = round(value, places)
    return f"{rounded:.0f} {unit}" if rounded >= 10 else f"{rounded:g} {unit}"
