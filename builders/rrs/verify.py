"""Whether the rows of rrs still are those of their build, and whether they make sense."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from soubench.builders.rrs.build import LETTERS, fingerprint
from soubench.builders.rrs.corruptions import OCCLUDED_SHARE, keeps_visible
from soubench.builders.rrs.distractors import Pools, sdfs
from soubench.builders.rrs.questions import box_text
from soubench.builders.rrs.record import record_id
from soubench.builders.rrs.robustness import CORRUPTED_TASKS
from soubench.builders.rrs.taxonomy import ALL, LEAF_TASKS, Task, configs
from soubench.builders.scene import normalized
from soubench.builders.verification import Problem, Row

SAME_AS_CLEAN = ("question", "options", "answer", "answer_index", "answer_type", "references")
"""Rectangles are whole pixels."""


def verify(tables: Mapping[str, Sequence[Row]], manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the rows of a build.

    No model is needed: the cosines that distractors were filtered by are kept in the manifest.

    Args:
        tables: Config -> its rows, without pictures.
        manifest: What ``soubench.builders.rrs.build.manifest`` returned.
    """
    everything = tables.get(ALL)
    if everything is None:
        yield Problem("", "config", f"there is no config {ALL!r}")
        return
    there = {row["task"] for row in everything}
    expected = {name: tasks for name, tasks in configs().items() if there.intersection(tasks)}
    for name in sorted(set(expected) ^ set(tables)):
        yield Problem("", "config", f"the config {name!r} is missing, or should not be there")
    for name, tasks in expected.items():
        own = [row for row in everything if row["task"] in tasks]
        given = tables.get(name, own)
        pairs = zip_longest(own, given)
        differing = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if differing is not None:
            # The row that only one of the two has.
            one, found = differing
            other = found if one is None or (found and len(given) > len(own)) else one
            message = f"{name!r} does not hold the rows of {ALL!r} of its tasks, from here on"
            yield Problem(other["id"], "config", message)
    yield from _fingerprint_problems(everything, manifest)
    by_id = {row["id"]: row for row in everything}
    if len(by_id) < len(everything):
        yield Problem("", "id", "ids are repeated")
    words = manifest["head"]["pools"]
    pools = Pools({tuple(name.split("/", 1)): tuple(found) for name, found in words.items()})
    for row in everything:
        if row["task"] not in LEAF_TASKS:
            yield Problem(row["id"], "task", f"there is no task {row['task']!r}")
            continue
        yield from _row_problems(row, by_id, manifest, pools)


def _fingerprint_problems(rows: Sequence[Row], manifest: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        pictures = [picture_digests(row, manifest) for row in rows]
    except KeyError as error:
        yield Problem("", "fingerprint", f"the manifest does not know {error}")
        return
    found = fingerprint(manifest["head"], rows, pictures)
    if found != manifest["fingerprint"]:
        yield Problem(
            "", "fingerprint", f"expected {manifest['fingerprint']}, the rows give {found}"
        )


def picture_digests(row: Row, manifest: Mapping[str, Any]) -> list[str]:
    """Return the SHA-256 of a row's source pictures, and of a corrupted copy's pixels.

    Raises:
        KeyError: The manifest does not know the row's record or copy.
    """
    found = [picture["sha256"] for picture in manifest["pictures"][record_id(row["id"])]]
    return [*found, manifest["pixels"][row["id"]]] if row["corruption"] else found


def _row_problems(
    row: Row, by_id: Mapping[str, Row], manifest: Mapping[str, Any], pools: Pools
) -> Iterator[Problem]:
    leaf = LEAF_TASKS[Task(row["task"])]
    for name, right in (
        ("dimension", leaf.sub_dimension.dimension),
        ("sub_dimension", leaf.sub_dimension.name),
    ):
        if row[name] != right:
            yield Problem(row["id"], name, f"expected {right!r}, got {row[name]!r}")
    kind = row["answer_type"]
    if kind not in leaf.answer_types:
        expected = " or ".join(leaf.answer_types)
        yield Problem(row["id"], "answer_type", f"expected {expected}, got {kind!r}")
    if kind == "mcq":
        yield from _option_problems(row, manifest, pools)
    elif row["options"] or row["answer_index"] != -1:
        yield Problem(row["id"], "options", f"expected none, as answers are of type {kind!r}")
    if kind == "yes_no" and row["answer"] not in ("yes", "no"):
        yield Problem(row["id"], "answer", f"expected yes or no, got {row['answer']!r}")
    if kind == "box" and row["answer"] != box_text(row["box_xyxy"]):
        yield Problem(row["id"], "answer", f"expected {box_text(row['box_xyxy'])}")
    if kind == "text" and row["answer"] not in row["references"]:
        yield Problem(row["id"], "answer", "it is none of the references")
    if kind == "mask" and (
        row["answer"] != row["mask_rle"] or json.loads(row["answer"])["size"] != row["size_hw"]
    ):
        yield Problem(row["id"], "answer", "it is not the row's mask, or of another size")
    height, width = row["size_hw"]
    for box in (row["box_xyxy"], *row["evidence"]["boxes_xyxy"]):
        if box and not (0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= height):
            yield Problem(row["id"], "box_xyxy", f"{box} is not within {width}×{height} px")
    if row["task"] in (Task.NR, Task.OR):
        yield from _corruption_problems(row, by_id, manifest)
    elif row["clean_id"] or row["corruption"] or row["severity"]:
        yield Problem(row["id"], "corruption", "only NR and OR rows are corrupted")


def _option_problems(row: Row, manifest: Mapping[str, Any], pools: Pools) -> Iterator[Problem]:
    options, index = row["options"], row["answer_index"]
    if not 0 <= index < len(options) <= len(LETTERS) or row["answer"] != LETTERS[index]:
        yield Problem(row["id"], "answer", f"{row['answer']!r} is not the letter of index {index}")
        return
    if len(set(map(normalized, options))) < max(2, len(options)):
        yield Problem(row["id"], "options", f"expected different ones, got {options}")
    pool = row["evidence"]["pool"]
    if not pool:
        return
    answer = options[index]
    key = tuple(pool.split("/", 1))
    candidates = pools.candidates(key, answer, row["evidence"]["also_true"], len(options) - 1)
    cosines = manifest["similarities"]
    if cosines is not None:
        known = manifest["pictures"].get(record_id(row["id"]), [{"sha256": ""}])
        own = cosines.get(known[-1]["sha256"], {})
        if not {answer, *candidates} <= set(own):
            yield Problem(row["id"], "options", "the manifest lacks their cosines")
            return
        candidates = sdfs(answer, candidates, own.__getitem__, len(options) - 1).kept
    stray = [o for i, o in enumerate(options) if i != index and o not in candidates]
    if stray:
        yield Problem(row["id"], "options", f"{stray} cannot be drawn from the pool {pool!r}")


def _corruption_problems(
    row: Row, by_id: Mapping[str, Row], manifest: Mapping[str, Any]
) -> Iterator[Problem]:
    clean = by_id.get(row["clean_id"])
    same = clean is not None and record_id(clean["id"]) == record_id(row["id"])
    if clean is None or clean["task"] not in CORRUPTED_TASKS or not same:
        yield Problem(row["id"], "clean_id", f"there is no clean row {row['clean_id']!r}")
        return
    for name in SAME_AS_CLEAN:
        if row[name] != clean[name]:
            yield Problem(row["id"], name, f"expected that of {clean['id']}, got {row[name]!r}")
    occluded = row["evidence"]["occluded_xyxy"]
    if (row["task"] == Task.OR) != bool(occluded) or not 1 <= row["severity"] <= 5:
        yield Problem(row["id"], "severity", "severity or covered rectangles make no sense")
        return
    if not occluded:
        return
    height, width = row["size_hw"]
    covered = sum((x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in occluded)
    share = OCCLUDED_SHARE[row["severity"] - 1]
    # Sides are whole pixels: each height is up to half a pixel off.
    slack = 1 + sum(x2 - x1 for x1, _, x2, _ in occluded) / 2
    if abs(covered - share * width * height) > slack:
        message = f"{covered / (width * height):.3f} is covered, expected {share}"
        yield Problem(row["id"], "evidence", message)
    boxes = row["evidence"]["boxes_xyxy"]
    whole = [tuple(map(int, rectangle)) for rectangle in occluded]
    hidden = not keeps_visible([(a, b, c, d) for a, b, c, d in whole], boxes)
    if hidden and not manifest["head"]["hide_evidence"]:
        yield Problem(row["id"], "evidence", "what the answer rests on is hidden")
