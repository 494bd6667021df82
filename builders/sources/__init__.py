"""The table of annotation formats: one module each, one line each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources import (
    ai_tod,
    coco,
    dota,
    ruod,
    soda_a,
    soda_d,
    visdrone,
    voc,
    yolo,
)

Reader = Callable[[Path, str, ReadReport], Iterator[Scene]]


@dataclass(frozen=True, slots=True)
class Source:
    """One annotation format.

    Attributes:
        name: What users type.
        read: Reads the split of a folder as scenes and fills a report on the way.
        categories: The format's categories; None where each file names its own.
        test_split: The split that a benchmark is built from.
        train_split: The split that training data is built from.
    """

    name: str
    read: Reader
    categories: tuple[str, ...] | None
    test_split: str = "val"
    train_split: str = "train"


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source("soda-d", soda_d.read, soda_d.CATEGORIES),
        Source("visdrone", visdrone.read, visdrone.CATEGORIES),
        Source("ai-tod", ai_tod.read, ai_tod.CATEGORIES),
        Source("soda-a", soda_a.read, soda_a.CATEGORIES),
        Source("ruod", ruod.read, ruod.CATEGORIES, test_split="test"),
        Source("coco", coco.read, coco.CATEGORIES),
        Source("yolo", yolo.read, yolo.CATEGORIES),
        Source("voc", voc.read, voc.CATEGORIES),
        Source("dota", dota.read, dota.CATEGORIES),
    )
}
