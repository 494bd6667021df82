"""One module per command: ``add_parser`` registers it; what it needs is imported when it runs."""

import argparse
import os
from collections.abc import Sequence
from typing import TypeAlias

from soubench.builders.errors import BuildError

PROBLEMS_SHOWN = 10
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add ``--workers``."""
    parser.add_argument(
        "--workers",
        metavar="N",
        type=positive,
        default=os.cpu_count() or 1,
        help="processes; changes no byte of the result (default: all cores)",
    )


def positive(text: str) -> int:
    """Read a whole number of at least 1 from an argument."""
    return _whole(text, least=1)


def not_negative(text: str) -> int:
    """Read a whole number of at least 0 from an argument."""
    return _whole(text, least=0)


def _whole(text: str, *, least: int) -> int:
    number = int(text) if text.isdecimal() else -1
    if number < least:
        raise argparse.ArgumentTypeError(f"expected a number of at least {least}, got {text}")
    return number


def pairs(flag: str, values: Sequence[str], example: str = "visdrone=DIR") -> dict[str, str]:
    """Read arguments of the form NAME=VALUE, each name once."""
    found: dict[str, str] = {}
    for value in values:
        name, sign, rest = value.partition("=")
        if not (name and sign and rest):
            raise BuildError(f"{flag} expects NAME=VALUE, such as {example}; got {value!r}.")
        if name in found:
            raise BuildError(f"{flag} {name}=.. is given twice: {found[name]!r} and {rest!r}.")
        found[name] = rest
    return found


def add_pictures(parser: argparse.ArgumentParser, *, verb: str) -> None:
    """Add the flags of which build goes out, and with which pictures."""
    parser.add_argument(
        "--pictures",
        choices=("all", "none"),
        default="all",
        help="all that may be passed on (default), or none: labels only",
    )
    parser.add_argument(
        "--i-have-the-right-to-redistribute",
        dest="have_the_right",
        action="store_true",
        help=f"{verb} pictures whose licenses do not allow it as such",
    )
    parser.add_argument("--fingerprint", help="which build, where the cache holds several")
