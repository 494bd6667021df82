"""Check the rows of a SOU dataset against themselves, without decoding a picture.

Every row says what proves it: ``objects`` and ``evidence``. From these the answer is derived anew
here, by code that shares nothing with the builder but constants; then the options, the letters, the
ambiguity rules, the manifest and the fingerprint are checked.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from math import ceil, floor
from typing import Any

from soubench.builders.scene import normalized
from soubench.builders.sou.fingerprint import PINNED, fingerprint, objects_digest
from soubench.builders.sou.prompts import Prompts
from soubench.builders.sou.questions import LETTERS
from soubench.builders.sou.subsets import Task
from soubench.builders.sou.tasks import DIRECTIONS, Mode, Target
from soubench.builders.verification import Problem, Row, guarded

Picture = Mapping[str, Any]
AREA_SLACK_PX = 1e-3


def verify(rows: Iterable[Row], manifest: Mapping[str, Any], prompts: Prompts) -> list[Problem]:
    """Return every problem, row by row, then those of the dataset as a whole.

    Args:
        rows: All rows of the largest config, in their order, without ``image``; ``answer`` is an
            index or a letter. They are gone through once.
        manifest: What the build says of itself, see ``soubench.builders.sou.build.manifest``.
        prompts: The prompt file that the manifest names, or another one: then the words of the
            questions are not checked.
    """
    problems: list[Problem] = []
    letters: dict[tuple[str, str], Counter[str]] = {}
    known: defaultdict[tuple[str, str], Picture] = defaultdict(lambda: dict.fromkeys(PINNED))
    for subset, pictures in manifest["pictures"].items():
        known |= {(subset, image_id): picture for image_id, picture in pictures.items()}
    asked_about: set[tuple[str, str]] = set()
    words = prompts if prompts.digest == manifest["head"]["prompts"] else None

    def checked() -> Iterator[Row]:
        seen: set[str] = set()
        for given in rows:
            row = dict(given) | {"answer": _letter(given["answer"])}
            if row["id"] in seen:
                problems.append(Problem(row["id"], "id", "this id has come before"))
            seen.add(row["id"])
            asked_about.add((row["subset"], row["image_id"]))
            problems.extend(guarded(row, _row_problems(row, manifest, words)))
            letters.setdefault((row["subset"], row["task"]), Counter())[row["answer"]] += 1
            yield row

    found = fingerprint(manifest["head"], checked(), known)
    for subset, image_id in sorted(set(known) - asked_about):
        message = "no row asks about this picture of the manifest"
        problems.append(Problem(f"{subset}/{image_id}", "missing", message))
    problems.extend(_letter_problems(letters))
    if found != manifest["fingerprint"]:
        message = f"expected {manifest['fingerprint']}, the rows give {found}"
        problems.append(Problem("", "fingerprint", message))
    return problems


def _row_problems(
    row: Row, manifest: Mapping[str, Any], words: Prompts | None
) -> Iterator[Problem]:
    mode: Mode = manifest["head"]["mode"]
    picture = manifest["pictures"].get(row["subset"], {}).get(row["image_id"])
    if picture is None or row["task"] not in set(Task):
        where = f"{row['subset']}, {row['image_id']}, {row['task']}"
        yield Problem(row["id"], "id", f"the manifest knows no row of {where}")
        return
    (subset,) = (s for s in manifest["head"]["subsets"] if s["name"] == row["subset"])
    yield from _frame_problems(row, picture, subset)
    yield from _objects_problems(row, picture, subset["statistics"]["small_area_px"])
    yield from _option_problems(row)
    yield from _answer_problems(row, mode, picture)
    yield from _distractor_problems(row, mode, subset["statistics"], picture)
    if words is not None:
        yield from _word_problems(row, mode, words, subset)


def _letter(answer: object) -> str:
    """Return the letter of an answer; what is none stays as it is, for a message."""
    if isinstance(answer, int) and 0 <= answer < len(LETTERS):
        return LETTERS[answer]
    return str(answer)


def _frame_problems(row: Row, picture: Picture, subset: Mapping[str, Any]) -> Iterator[Problem]:
    expected = f"{row['subset']}/{row['image_id']}/{row['task'].lower()}"
    if row["id"] != expected:
        yield Problem(row["id"], "id", f"expected {expected!r}")
    if row["scenario"] != subset["scenario"]:
        yield Problem(row["id"], "scenario", f"expected {subset['scenario']!r}")
    if row["group_id"] != picture["group_id"]:
        yield Problem(row["id"], "group_id", f"expected {picture['group_id']!r}")


def _objects_problems(row: Row, picture: Picture, small_area_px: float) -> Iterator[Problem]:
    objects = row["objects"]
    if objects_digest(objects) != picture["objects_sha256"]:
        yield Problem(row["id"], "objects", "they are not those of the build")
    right, bottom = picture["width"], picture["height"]
    if any(b[2] > right or b[3] > bottom or min(b) < 0 for b in objects["box_xyxy"]):
        message = f"an object lies outside the picture of {right} × {bottom} px"
        yield Problem(row["id"], "objects", message)
    n, quads = len(objects["category"]), objects["quad_xy8"]
    if len(objects["box_xyxy"]) != n or len(objects["area_px"]) != n or len(quads) not in (0, n):
        yield Problem(row["id"], "objects", "the lists differ in length")
        return
    for i, (box, area) in enumerate(zip(objects["box_xyxy"], objects["area_px"], strict=True)):
        x1, y1, x2, y2 = box
        if not (x1 < x2 and y1 < y2 and 0 < area <= small_area_px):
            yield Problem(row["id"], "objects", f"object {i} is not small: {box}, {area} px²")
        elif not quads and abs(area - (x2 - x1) * (y2 - y1)) > AREA_SLACK_PX:
            yield Problem(row["id"], "objects", f"object {i} at {box} does not have {area} px²")


def _option_problems(row: Row) -> Iterator[Problem]:
    options, answer = row["options"], row["answer"]
    if len(options) != len(LETTERS) or len(set(map(normalized, options))) < len(LETTERS):
        yield Problem(row["id"], "options", f"expected four different options, got {options}")
        return
    if answer not in LETTERS:
        yield Problem(row["id"], "answer", f"expected one of {LETTERS}, got {answer}")
        return
    named = options[LETTERS.index(answer)]
    if named != row["answer_text"]:
        message = f"{answer} is {named!r}, but the answer is {row['answer_text']!r}"
        yield Problem(row["id"], "answer", message)


def _distractor_problems(
    row: Row, mode: Mode, statistics: Mapping[str, Any], picture: Picture
) -> Iterator[Problem]:
    """Check the wrong options against the rules that they are drawn by."""
    named, options = row["answer_text"], row["options"]
    answers = statistics["answers"].get(row["task"], {})
    wrong = [option for option in options if option != named]
    if row["task"] == Task.OL:
        unfit = _unfit_places(row, mode, statistics["small_area_px"], picture)
    elif mode == "balanced" and len(LETTERS) * max(answers.values()) <= sum(answers.values()):
        unfit = [option for option in wrong if option not in answers]
    elif row["task"] in (Task.CR, Task.POI):
        unfit = [option for option in wrong if option not in statistics["categories"]]
    else:
        unfit = _unfit_numbers(row["task"], int(named), wrong, statistics)
    for option in unfit:
        message = f"{option!r} is no option of {row['task']} beside {named!r}"
        yield Problem(row["id"], "options", message)


def _unfit_numbers(
    task: str, answer: int, wrong: Sequence[str], statistics: Mapping[str, Any]
) -> list[str]:
    """Return the numbers out of the range that the subset's counts give, or next to the answer."""
    low, high = {
        Task.CE: (0, len(statistics["categories"])),
        Task.OC: statistics["object_counts"],
        Task.SCC: statistics["category_counts"],
    }[Task(task)]
    banned = {answer - 1, answer, answer + 1} if task == Task.OC else {answer}
    fitting = [n for n in range(low, high + 1) if n not in banned]
    above = (n for n in count(high + 1) if n not in banned)
    fitting += islice(above, max(0, len(wrong) - len(fitting)))
    return sorted(set(wrong) - set(map(str, fitting)))


def _unfit_places(row: Row, mode: Mode, small_area_px: float, picture: Picture) -> list[str]:
    """Return the boxes or quads that are not small, stand out of their frame, or overlap.

    In ``balanced`` mode the frame is the red region, and no two options overlap by 0.3 or more; in
    ``paper`` mode it is the picture, and none overlaps the answer by 0.5 or more.
    """
    import shapely

    balanced, answer = mode == "balanced", row["answer_text"]
    n = 8 if row["objects"]["quad_xy8"] else 4
    frame = row["evidence"]["mark"] if balanced else (0, 0, picture["width"], picture["height"])
    shapes: dict[str, Any] = {}
    for option in row["options"]:
        numbers = json.loads(option)
        if len(numbers) != n or not all(isinstance(number, int) for number in numbers):
            return [option]
        corners = list(zip(numbers[::2], numbers[1::2], strict=True))
        shape = shapely.Polygon(corners) if n == 8 else shapely.box(*numbers)
        # Rounding may make the corners of a thin quad cross.
        shapes[option] = shape if shape.is_valid else shapely.make_valid(shape)
    unfit = []
    for option, shape in shapes.items():
        if option == answer:
            continue
        others = [of for of in shapes if of != option] if balanced else [answer]
        limit = 0.3 if balanced else 0.5
        too_near = any(
            shape.intersection(shapes[of]).area >= limit * shape.union(shapes[of]).area
            for of in others
        )
        small = balanced or shape.area < small_area_px
        if too_near or not small or not shapely.box(*frame).covers(shape):
            unfit.append(option)
    return unfit


def _answer_problems(row: Row, mode: Mode, picture: Picture) -> Iterator[Problem]:
    evidence, n = row["evidence"], len(row["objects"]["category"])
    if not evidence["objects"] or not all(0 <= i < n for i in evidence["objects"]):
        yield Problem(row["id"], "evidence", f"indices {evidence['objects']} of {n} objects")
        return
    derived = _DERIVE[Task(row["task"])](row, mode, picture)
    if derived is None:
        yield Problem(row["id"], "evidence", "it does not prove one answer")
    elif derived != row["answer_text"]:
        message = f"expected {derived!r}, got {row['answer_text']!r}"
        yield Problem(row["id"], "answer_text", message)


def _distinct(row: Row, mode: Mode, picture: Picture) -> str | None:
    named = {row["objects"]["category"][i] for i in row["evidence"]["objects"]}
    present = set(row["objects"]["category"])
    return str(len(present)) if named == present else None


def _number(row: Row, mode: Mode, picture: Picture) -> str | None:
    n = len(row["objects"]["category"])
    return str(n) if list(row["evidence"]["objects"]) == list(range(n)) else None


def _number_of(row: Row, mode: Mode, picture: Picture) -> str | None:
    asked = row["evidence"]["category"]
    members = [i for i, c in enumerate(row["objects"]["category"]) if c == asked]
    return str(len(members)) if members == list(row["evidence"]["objects"]) else None


def _at_point(row: Row, mode: Mode, picture: Picture) -> str | None:
    objects, evidence = row["objects"], row["evidence"]
    if len(evidence["point_xy"]) != 2 or len(evidence["objects"]) != 1:
        return None
    x, y = evidence["point_xy"]
    x1, y1, x2, y2 = objects["box_xyxy"][evidence["objects"][0]]
    if (x, y) != (floor((x1 + x2) / 2), floor((y1 + y2) / 2)):
        return None
    here = {
        category
        for category, (a, b, c, d) in zip(objects["category"], objects["box_xyxy"], strict=True)
        if a < x + 1 and c > x and b < y + 1 and d > y
    }
    return here.pop() if len(here) == 1 else None


def _outermost(row: Row, mode: Mode, picture: Picture) -> str | None:
    objects, evidence = row["objects"], row["evidence"]
    if evidence["direction"] not in DIRECTIONS or len(evidence["objects"]) != 1:
        return None
    axis = 0 if evidence["direction"] in ("leftmost", "rightmost") else 1
    back = evidence["direction"] in ("rightmost", "bottommost")
    edges = [-b[axis + 2] if back else b[axis] for b in objects["box_xyxy"]]
    centers = [(b[axis] + b[axis + 2]) / (-2 if back else 2) for b in objects["box_xyxy"]]
    found = set()
    for places in (edges, centers):
        first = min(places)
        found |= {c for c, p in zip(objects["category"], places, strict=True) if p < first + 1}
    proof = evidence["objects"][0]
    return found.pop() if len(found) == 1 and edges[proof] < min(edges) + 1 else None


def _place(row: Row, mode: Mode, picture: Picture) -> str | None:
    objects, mark = row["objects"], list(row["evidence"]["mark"])
    if len(row["evidence"]["objects"]) != 1:
        return None
    (i,) = row["evidence"]["objects"]
    x1, y1, x2, y2 = objects["box_xyxy"][i]
    if objects["quad_xy8"]:
        numbers = [floor(v + 0.5) for v in objects["quad_xy8"][i]]
    else:
        numbers = [floor(x1), floor(y1), ceil(x2), ceil(y2)]
    if mode == "paper":
        proven = mark == numbers
    else:
        left, top, right, bottom = mark if len(mark) == 4 else (0, 0, 0, 0)
        inside = [
            j
            for j, (a, b, c, d) in enumerate(objects["box_xyxy"])
            if a < right and c > left and b < bottom and d > top
        ]
        in_picture = 0 <= left < right <= picture["width"] and 0 <= top < bottom
        proven = inside == [i] and in_picture and bottom <= picture["height"]
    return "[" + ",".join(map(str, numbers)) + "]" if proven else None


_DERIVE: Mapping[Task, Callable[[Row, Mode, Picture], str | None]] = {
    Task.CE: _distinct,
    Task.OC: _number,
    Task.CR: _at_point,
    Task.OL: _place,
    Task.SCC: _number_of,
    Task.POI: _outermost,
}
"""Sub-task -> the answer that a row's evidence proves, or None."""


def _word_problems(
    row: Row, mode: Mode, prompts: Prompts, subset: Mapping[str, Any]
) -> Iterator[Problem]:
    evidence = row["evidence"]
    point = evidence["point_xy"]
    target = Target(
        row["answer_text"],
        tuple(evidence["objects"]),
        point_xy=(point[0], point[1]) if len(point) == 2 else None,
        direction=evidence["direction"],
        category=evidence["category"],
    )
    expected = prompts.question(Task(row["task"]), target, mode)
    if row["question"] != expected:
        yield Problem(row["id"], "question", f"expected {expected!r}, got {row['question']!r}")
    expected = prompts.system(
        subset["source"],
        subset["statistics"]["categories"],
        oriented=bool(row["objects"]["quad_xy8"]),
        small_area_px=subset["statistics"]["small_area_px"],
    )
    if row["system_prompt"] != expected:
        yield Problem(row["id"], "system_prompt", "it is not that of this subset")


def _letter_problems(
    letters: Mapping[tuple[str, str], Counter[str]],
) -> Iterator[Problem]:
    for (subset, task), counts in letters.items():
        numbers = [counts[letter] for letter in LETTERS]
        if max(numbers) - min(numbers) > 1:
            message = f"letters of {subset}, {task} are not balanced: {dict(counts)}"
            yield Problem("", "answer", message)
