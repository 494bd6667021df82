"""Build a dataset into the local datasets cache."""

import argparse
from collections.abc import Sequence
from typing import Any

from soubench.commands import Commands
from soubench.commands.build import (
    detection,
    plant_leaves,
    primitive_shapes,
    rrs,
    sou_train,
    sou_vqa,
)

DATASETS = (sou_vqa, sou_train, primitive_shapes, plant_leaves, rrs, detection)
"""Modules of the datasets, in the order of ``soubench build --help``."""


def add_parser(commands: Commands) -> None:
    """Register ``build``."""
    datasets = commands.add_parser(
        "build", help="build a dataset into the local datasets cache"
    ).add_subparsers(required=True, metavar="DATASET", action=_AnyName)
    # Else names that are none of ours would be refused before the action sees them.
    datasets.choices = None  # type: ignore[assignment]
    for dataset in DATASETS:
        dataset.add_parser(datasets)


class _AnyName(argparse._SubParsersAction):  # type: ignore[type-arg]  # no subscript when run
    """Hands names that are none of ours to the parser for any detection set."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given = list(values or ())
        if given[0] not in self._name_parser_map or given[0] == detection.ANY_NAME:
            given = [detection.ANY_NAME, *given]
        super().__call__(parser, namespace, given, option_string)
