"""Replies that need no model: what every score should be read against."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from soubench.builders.keyed import KeyedRandom

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Row = Mapping[str, Any]
"""A row of a multiple-choice dataset: at least ``id``, ``options`` and ``answer``."""


def random_letter(row: Row, seed: int = 0) -> str:
    """Reply with a random letter, the same for a row in every run with this seed."""
    return LETTERS[KeyedRandom("baseline:random", seed, row["id"]).below(len(row["options"]))]


def constant_letter(row: Row) -> str:
    """Reply with the first letter, always."""
    return LETTERS[0]


def smallest_number(row: Row) -> str:
    """Reply with the smallest option where all are whole numbers, else with a random letter."""
    options: Sequence[str] = row["options"]
    if not all(option.isdecimal() for option in options):
        return random_letter(row)
    return LETTERS[min(range(len(options)), key=lambda i: int(options[i]))]


def oracle(row: Row) -> str:
    """Reply with the right letter."""
    return LETTERS[row["answer"]]


BASELINES: Mapping[str, Callable[[Row], str]] = MappingProxyType(
    {
        "random": random_letter,
        "constant letter": constant_letter,
        "smallest number": smallest_number,
        "oracle": oracle,
    }
)
