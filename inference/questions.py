"""From a row of any dataset to what a model is asked, and to the answer it is scored against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any, Literal, get_args

from soubench.builders.errors import FormatError, RunError
from soubench.builders.prompt_file import read_prompt_file
from soubench.builders.sou.prompts import load_prompts
from soubench.inference.coordinates import (
    COORDS,
    PIXELS,
    Frame,
    convert_options,
    convert_point,
)

WORDS_FILE = "words_v1.toml"

AnswerType = Literal["mcq", "yes_no", "text", "box", "mask"]
ANSWER_TYPES: tuple[AnswerType, ...] = get_args(AnswerType)
PICTURE_COLUMNS = ("image", "images")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Words:
    """What is added to a row's own words.

    Attributes:
        version: Name of the words.
        digest: SHA-256 over everything that can be added, hexadecimal.
        system: Text of the system role, with the field ``system``.
        option: Line of an option, with the fields ``letter`` and ``text``.
        requests: Answer type -> what is asked for at the end; empty for nothing.
        coordinates: Frame -> words for it, with the fields ``width`` and ``height``.
    """

    version: str
    digest: str
    system: str
    option: str
    requests: Mapping[AnswerType, str]
    coordinates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked, and the right answer.

    Attributes:
        id: The row.
        answer_type: ``mcq``, ``yes_no``, ``text``, ``box`` or ``mask``.
        system: What stands in the system role; empty for nothing.
        text: What the user says: the question, the options, the request.
        question: The question alone.
        options: The options in the order in which they are shown; empty unless ``mcq``.
        images: Columns of the row that hold its pictures, in order.
        answer: The right letter, ``yes`` or ``no``, the text, the box or the mask, as the row has
            it (boxes in pixels of the row's picture whatever the frame).
        rotation: By how many places the options are rotated.
        references: All right texts, where a row has several; else the answer alone.
    """

    id: str
    answer_type: AnswerType
    system: str
    text: str
    question: str
    options: tuple[str, ...]
    images: tuple[str, ...]
    answer: str
    rotation: int = 0
    references: tuple[str, ...] = field(default=())

    @property
    def answer_text(self) -> str:
        """The text of the right option, or the answer itself."""
        return self.options[LETTERS.index(self.answer)] if self.options else self.answer


def load_words(path: Path | None = None) -> Words:
    """Read the words from a file; without ``path``, the package's own.

    Raises:
        FormatError: The file is missing, no TOML, or lacks or misuses an entry.
    """
    file = read_prompt_file(path or Path(str(files("soubench.inference") / WORDS_FILE)))
    table = file.table
    choices = load_prompts()
    said = choices.texts["choices"]
    mcq, requests = table.get("mcq", {}), table.get("requests", {})
    coordinates = table.get("coordinates", {})
    for name, part in (("mcq", mcq), ("requests", requests), ("coordinates", coordinates)):
        if not isinstance(part, dict):
            raise FormatError(f"{file.source}: expected a table [{name}], found {part!r}.")

    def text(where: str, value: object, fields: Sequence[str] = ()) -> str:
        return file.text(where, value, WORDS_FILE, fields)

    words = {
        "yes_no": text("[requests] yes_no", requests.get("yes_no")),
        "box": text("[requests] box", requests.get("box"), ["coordinates"]),
        "mask": text("[requests] mask", requests.get("mask")),
        "text": text("[requests] text", requests.get("text")),
        "mcq": text("[mcq] request", mcq.get("request", said["request"])),
    }
    # The words of the options may come from the SOU prompts, so these are hashed, too.
    digest = sha256(file.data + bytes.fromhex(choices.digest)).hexdigest()
    return Words(
        version=f"{file.version}, {choices.version}",
        digest=digest,
        system=text("system", table.get("system"), ["system"]),
        option=text("[mcq] option", mcq.get("option", said["option"]), ["letter", "text"]),
        requests={kind: words[kind] for kind in ANSWER_TYPES},
        coordinates={
            coords: text(f"[coordinates] {coords}", coordinates.get(coords), ["width", "height"])
            for coords in COORDS
        },
    )


@cache
def _package_words() -> Words:
    return load_words()


def question_of(
    row: Row, *, rotation: int = 0, frame: Frame = PIXELS, words: Words | None = None
) -> Question:
    """Make the question of a row from its columns.

    Rows of all datasets of this project are understood, and those of any other with ``question``
    and, for multiple choice, ``options`` and ``answer`` (a letter, an index from 0, or the text of
    an option); else ``target`` or ``answer`` is the text that is right.

    Args:
        row: The row; pictures may be left out.
        rotation: The option at this index comes first, the ones before it last; the right letter
            moves with them.
        frame: What coordinates count.
        words: What is added to the row's words; by default the package's own.

    Raises:
        RunError: A column is missing, or its value makes no sense.
    """
    words = words or _package_words()
    row_id = _text(row, "id")
    kind = _answer_type(row)
    question = _text(row, "question")
    options: tuple[str, ...] = ()
    if kind == "mcq":
        options = tuple(map(str, row["options"]))
        index = _right_index(row, options)
        answer = LETTERS[(index - rotation) % len(options)]
        shift = rotation % len(options)
        options = convert_options(options, frame)
        options = options[shift:] + options[:shift]
    else:
        answer = _text(row, "target" if "target" in row else "answer")
    evidence = row.get("evidence")
    point_xy = evidence.get("point_xy") if isinstance(evidence, Mapping) else None
    if point_xy:
        question = convert_point(question, point_xy, frame)
    lines = [question]
    lines += [
        words.option.format(letter=letter, text=text)
        for letter, text in zip(LETTERS, options, strict=False)
    ]
    coordinates = _coordinates(words, frame)
    request = words.requests[kind].format(coordinates=coordinates)
    system = str(row.get("system_prompt") or "")
    if frame.coords != "pixel":
        stated = sorted(map(str, row.get("options") or ()))
        has_coordinates = bool(point_xy) or sorted(options) != stated
        system = _system_in(system, words, coordinates, row_id, needed=has_coordinates)
    return Question(
        id=row_id,
        answer_type=kind,
        system=words.system.format(system=system),
        text="\n".join([*lines, request] if request else lines),
        question=question,
        options=options,
        images=tuple(name for name in PICTURE_COLUMNS if row.get(name) is not None),
        answer=answer,
        rotation=rotation,
        references=tuple(row.get("references") or ()) or (answer,),
    )


def rotations_of(row: Row) -> int:
    """Return how many rotations the options of a row have; 1 where there are none."""
    return len(row["options"]) if _answer_type(row) == "mcq" else 1


def subset_of(row: Row) -> str:
    """Return the subset or sub-dimension of a row; empty where there is none."""
    return str(row.get("sub_dimension") or row.get("subset") or "")


def stratum_of(row: Row) -> tuple[str, ...]:
    """Return what a row is an example of, from the coarse to the fine: subset and task."""
    parts = ("subset", "sub_dimension", "task", "corruption")
    return tuple(str(row[part]) for part in parts if row.get(part))


def _answer_type(row: Row) -> AnswerType:
    given = row.get("answer_type")
    if given is None:
        return "mcq" if row.get("options") else "text"
    found = next((kind for kind in ANSWER_TYPES if kind == given), None)
    if found is None:
        raise RunError(
            f"{row.get('id')}: expected an answer_type of {', '.join(ANSWER_TYPES)}, got {given!r}."
        )
    return found


def _text(row: Row, column: str) -> str:
    if column not in row:
        raise RunError(
            f"expected rows with a column {column!r}; these have {', '.join(row)}. Rename the "
            "dataset's column (question, options, answer, image) or use another dataset."
        )
    value = row[column]
    if value is None:
        raise RunError(f"{row.get('id')}: expected a text at {column}, found nothing.")
    return str(value)


def _right_index(row: Row, options: Sequence[str]) -> int:
    """Return the index of the right option of a row as it stands."""
    if not 2 <= len(options) <= len(LETTERS):
        raise RunError(f"{row['id']}: expected 2 to 26 options, found {len(options)}.")
    index = row.get("answer_index")
    answer = row.get("answer")
    if isinstance(index, int) and index >= 0:
        found = index
    elif isinstance(answer, int) and not isinstance(answer, bool):
        found = answer
    elif isinstance(answer, str) and len(answer.strip()) == 1 and answer.strip() in LETTERS:
        found = LETTERS.index(answer.strip())
    elif options.count(str(answer)) == 1:
        found = options.index(str(answer))
    else:
        found = -1
    if not 0 <= found < len(options):
        raise RunError(
            f"{row['id']}: expected the answer as a letter, an index from 0 or the text of one "
            f"of the {len(options)} options, found {answer!r}."
        )
    return found


def _coordinates(words: Words, frame: Frame) -> str:
    width, height = frame.model_wh or ("", "")
    return words.coordinates[frame.coords].format(width=width, height=height)


def _system_in(system: str, words: Words, coordinates: str, row_id: str, *, needed: bool) -> str:
    pixels = words.coordinates["pixel"]
    if needed and pixels not in system:
        raise RunError(
            f"{row_id}: --coords exchanges the words {pixels!r} in the system prompt, and they are "
            f"not in {system[:80]!r}. Say at [coordinates] pixel of a --prompt FILE what they are."
        )
    return system.replace(pixels, coordinates)
