"""Which questions are asked again with noise or with a part covered (NR, OR)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soubench.builders.keyed import KeyedRandom, keyed_hash
from soubench.builders.rrs.corruptions import (
    NOISES,
    OCCLUSION,
    SEVERITIES,
    Pixels,
    Rectangle,
    gaussian_noise,
    occlude,
    place_occlusion,
    salt_and_pepper,
)
from soubench.builders.rrs.questions import Draft, Evidence
from soubench.builders.rrs.record import Record
from soubench.builders.rrs.taxonomy import Task
from soubench.builders.sou.render import file_stem

CORRUPTED_TASKS = (Task.SU, Task.SC, Task.OC, Task.OE, Task.AR)
"""What noise and occlusion rows are made from (the paper is silent)."""


@dataclass(frozen=True, slots=True)
class Corruption:
    """How one picture is corrupted.

    Attributes:
        kind: ``gaussian_noise``, ``salt_and_pepper`` or ``occlusion``.
        severity: 1 to 5.
        file: Name of the new file.
        seed: Seed of noise.
        rectangles: What is covered.
    """

    kind: str
    severity: int
    file: str
    seed: int = 0
    rectangles: tuple[Rectangle, ...] = ()

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the corrupted pixels."""
        if self.kind == OCCLUSION:
            return occlude(pixels, self.rectangles)
        corrupt = gaussian_noise if self.kind == "gaussian_noise" else salt_and_pepper
        return corrupt(pixels, self.severity, self.seed)


@dataclass(frozen=True, slots=True)
class Planned:
    """A row to be made of another one.

    Attributes:
        task: NR or OR.
        draft: Index of the question that is asked again.
        corruption: What is done to its picture.
    """

    task: Task
    draft: int
    corruption: Corruption


def plan(
    record: Record,
    drafts: Sequence[Draft],
    size_wh: tuple[int, int],
    key: tuple[str, int],
    *,
    hide_evidence: bool,
) -> list[Planned | tuple[Task, str]]:
    """Plan a row with noise and one with occlusion for a record of one picture.

    Kind and severity are drawn first and do not depend on the question: else the severe ones would
    go to questions whose evidence is easily spared, and there would be fewer of them.

    Args:
        record: The record.
        drafts: Its questions.
        size_wh: Width and height of its picture in px.
        key: Version and seed.
        hide_evidence: Occlusion may hide what the answer rests on.

    Returns:
        What is planned, or the task and the reason why nothing is.
    """
    planned: list[Planned | tuple[Task, str]] = []
    for task in (Task.NR, Task.OR):
        if len(record.images) > 1 or (record.tasks is not None and task not in record.tasks):
            continue
        row_id = f"{record.id}/{task.lower()}"
        rng = KeyedRandom(*key, record.source, row_id, "corruption")
        severity, kind = rng.choice(SEVERITIES), rng.choice(NOISES)
        file = f"{file_stem(row_id)}.png"
        pool = [i for i, draft in enumerate(drafts) if draft.task in CORRUPTED_TASKS]
        rng.shuffle(pool)
        if not pool:
            planned.append((task, "no_clean_row"))
            continue
        if task is Task.NR:
            seed = _noise_seed(record.source, row_id, key)
            planned.append(Planned(task, pool[0], Corruption(kind, severity, file, seed=seed)))
            continue
        for i in pool:
            evidence = drafts[_proof_of(i, drafts)].evidence
            boxes = must_be_seen(evidence, hide_evidence=hide_evidence)
            found = None if boxes is None else place_occlusion(size_wh, severity, boxes, rng)
            if found is not None:
                corruption = Corruption(OCCLUSION, severity, file, rectangles=found)
                planned.append(Planned(task, i, corruption))
                break
        else:
            planned.append((task, "occlusion_would_hide_the_evidence"))
    return planned


def _noise_seed(source: str, row_id: str, key: tuple[str, int]) -> int:
    return keyed_hash(*key, source, row_id, "noise")


def corruption_of(row: Mapping[str, Any], key: tuple[str, int]) -> Corruption:
    """Return how the picture of a row was corrupted.

    Args:
        row: An NR or OR row.
        key: Version and seed of the build.
    """
    rectangles = [tuple(map(int, r)) for r in row["evidence"]["occluded_xyxy"]]
    return Corruption(
        row["corruption"],
        row["severity"],
        f"{file_stem(row['id'])}.png",
        _noise_seed(row["source"], row["id"], key),
        tuple((x1, y1, x2, y2) for x1, y1, x2, y2 in rectangles),
    )


def _proof_of(i: int, drafts: Sequence[Draft]) -> int:
    """Return whose evidence is spared: of a question for what is absent, that of its partner.

    Nothing has to be seen for a "no". Its picture must not be the easier one to cover, or there
    would be more of them, and "no" a good guess.
    """
    if drafts[i].answer != "no":
        return i
    same = [j for j, draft in enumerate(drafts) if draft.task is drafts[i].task]
    yes, no = ([j for j in same if drafts[j].answer == answer] for answer in ("yes", "no"))
    place = no.index(i)
    return yes[place] if place < len(yes) else i


def must_be_seen(
    evidence: Evidence, *, hide_evidence: bool
) -> tuple[tuple[float, ...], ...] | None:
    """Return the boxes that occlusion has to spare; None where nobody said what they are."""
    if hide_evidence:
        return ()
    if evidence.boxes_xyxy or evidence.whole_picture:
        return evidence.boxes_xyxy
    return None
