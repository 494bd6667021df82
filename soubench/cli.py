"""The ``soubench`` command."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence

from soubench.builders.errors import SoubenchError
from soubench.commands import (
    ablate,
    attach,
    build,
    compare,
    demo,
    export,
    inspect,
    install_metrics,
    model_card,
    overlap,
    predict,
    pull,
    push,
    push_metric,
    render,
    report,
    score,
    stats,
    train,
    verify,
)

COMMANDS = (
    build,
    inspect,
    verify,
    export,
    attach,
    push,
    pull,
    push_metric,
    overlap,
    predict,
    score,
    compare,
    report,
    model_card,
    render,
    stats,
    train,
    ablate,
    install_metrics,
    demo,
)
"""Modules of the commands, in the order of ``soubench --help``."""

Command = Callable[[argparse.Namespace], int | None]
"""Runs a command and returns the exit status if it is not 0."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; errors of ours become one message and exit status 2."""
    args = _parser().parse_args(argv)
    command: Command = args.command
    try:
        return command(args) or 0
    except BrokenPipeError:
        # Whoever read our output has closed it (soubench .. | head); the work is done.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (SoubenchError, OSError) as error:
        advice = ""
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            advice = ". Make room, or set HF_DATASETS_CACHE to another disk"
        print(f"soubench: error: {error}{advice}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("soubench: stopped; what was written is whole. Run it again", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="soubench", description="Build VQA datasets from detection labels and score models."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser
