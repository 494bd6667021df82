"""Ask a model every question of a dataset, and keep what it says in a RUN folder."""

import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import datasets
from tqdm import tqdm

from soubench.builders.errors import PictureError, RunError
from soubench.builders.keyed import keyed_hash
from soubench.inference.backends import OUT_OF_MEMORY, Backend
from soubench.inference.chat import Picture, Request, pictures_of
from soubench.inference.coordinates import BOX_FORMATS, PIXELS, Coords, Frame
from soubench.inference.dataset_rows import LoadedRows, open_rows
from soubench.inference.questions import (
    Question,
    Words,
    load_words,
    question_of,
    rotations_of,
    stratum_of,
    subset_of,
)
from soubench.inference.run_folder import Description, Reply, RunFolder

COLUMNS_READ = (
    "id",
    "subset",
    "sub_dimension",
    "task",
    "corruption",
    "answer_type",
    "question",
    "options",
    "answer",
    "answer_index",
    "target",
    "references",
    "system_prompt",
    "evidence",
)
"""Columns that questions are made of; rows may hold much more."""
LIBRARIES = ("datasets",)
FAILURES_AT_THE_START = 8
"""After so many failures without one reply, something is wrong with the settings, not the rows."""
FAILURES_IN_A_ROW = 100
"""After so many failures that might have passed, whoever answers is gone."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows ``index``, ``index + count``, ..; the shards of a run are made on several machines."""

    index: int = 0
    count: int = 1

    def __str__(self) -> str:
        """Write it as ``i/n``."""
        return f"{self.index}/{self.count}"


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """What is asked of which dataset, and how.

    Attributes:
        dataset: Name, folder or Hub id.
        config: Name of the config; None where there is only one.
        out: The RUN folder.
        split: Name of the split; None for the only one, or ``test``.
        revision: Of a dataset on the Hub.
        limit: Rows asked at most, as evenly as possible over subsets and sub-tasks; None for all.
        seed: Of the limit's draw.
        shard: Which part of the rows.
        circular: Ask with all rotations of the options.
        blind: Ask without the pictures.
        coords: What coordinates in questions count.
        box_format: How boxes are going to be written, as ``acc_at_iou`` knows it; None for what
            the words of ``coords`` ask for.
        words: File with the words that are added to the rows' own; None for the package's.
    """

    dataset: str
    config: str | None
    out: Path
    split: str | None = None
    revision: str | None = None
    limit: int | None = None
    seed: int = 0
    shard: Shard = field(default_factory=Shard)
    circular: bool = False
    blind: bool = False
    coords: Coords = "pixel"
    box_format: str | None = None
    words: Path | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to.

    Attributes:
        asked: Requests of this run: rows, times rotations.
        answered: Requests with a reply, those of earlier starts included.
        errors: Requests that ended in an error.
        permanent: Those of them that are not asked again unless it is said so.
        new: Requests that were sent by this process.
        seconds: Time that took.
    """

    asked: int
    answered: int
    errors: int
    permanent: int
    new: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run asks.

    Attributes:
        loaded: The rows.
        light: The columns that questions are made of, of all rows.
        chosen: Indices of the rows of this run, in order.
        words: What is added to the rows' words.
        options: How to ask.
    """

    loaded: LoadedRows
    light: Sequence[Mapping[str, Any]]
    chosen: Sequence[int]
    words: Words
    options: PredictOptions

    def keys(self) -> list[tuple[int, int]]:
        """Return (index of the row, rotation) of every request, in order."""
        circular = self.options.circular
        return [
            (i, rotation)
            for i in self.chosen
            for rotation in range(rotations_of(self.light[i]) if circular else 1)
        ]

    def key(self, index: int, rotation: int) -> tuple[str, int]:
        """Return (id, rotation) of a request, as in the replies."""
        return str(self.light[index]["id"]), rotation

    def asked(self) -> list[tuple[Question, tuple[str, ...]]]:
        """Return all questions of the dataset, as they stand, and what they are examples of."""
        return [(question_of(row, words=self.words), stratum_of(row)) for row in self.light]


def plan(options: PredictOptions) -> Plan:
    """Open the rows and choose those of this run.

    Raises:
        RunError: The rows are not there, or are none that could be asked about.
        FormatError: The words cannot be read.
    """
    words = load_words(options.words)
    loaded = open_rows(options.dataset, options.config, options.split, revision=options.revision)
    light = _light(loaded.rows).to_list()
    if not light:
        raise RunError(f"{loaded.source}, {loaded.config}, {loaded.split}: there are no rows.")
    if not options.blind:
        if not loaded.picture_columns:
            raise RunError(
                f"{loaded.source}: expected pictures in a column image or images, found "
                f"{', '.join(loaded.rows.column_names)}. Ask without pictures with --blind."
            )
        loaded.check_pictures()
    # All at once, so that a row that makes no sense is not found after hours.
    for row in light:
        question_of(row, words=words)
    chosen = choose_rows(light, options.limit, options.seed)
    return Plan(loaded, light, chosen[options.shard.index :: options.shard.count], words, options)


def choose_rows(rows: Sequence[Mapping[str, Any]], limit: int | None, seed: int) -> list[int]:
    """Choose rows as evenly as possible over subsets and sub-tasks.

    Each sub-task of each subset gives a row in turn. Neighbours in turn are of different subsets,
    so that a limit below the number of turns leaves out sub-tasks of a subset, and no whole one.
    Within each, a keyed draw decides. A larger limit keeps what a smaller one chose.

    Args:
        rows: All rows.
        limit: Rows to choose; None for all.
        seed: Of the draw.

    Returns:
        Indices in the order of the rows.
    """
    if limit is None or limit >= len(rows):
        return list(range(len(rows)))
    strata: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        strata.setdefault(stratum_of(row), []).append(i)
    drawn = [
        sorted(members, key=lambda i: keyed_hash("limit", seed, rows[i]["id"]))
        for members in _in_turn(strata, rows, seed)
    ]
    longest = max(map(len, drawn))
    in_turn = [members[n] for n in range(longest) for members in drawn if n < len(members)]
    return sorted(in_turn[:limit])


def _in_turn(
    strata: Mapping[tuple[str, ...], list[int]], rows: Sequence[Mapping[str, Any]], seed: int
) -> Iterator[list[int]]:
    """Yield the strata in turn over subsets, each time the task that has been seen the least."""

    def key(name: tuple[str, ...]) -> int:
        return keyed_hash("limit", seed, *name)

    waiting: dict[str, list[tuple[str, ...]]] = {}
    for name in sorted(strata, key=key):
        waiting.setdefault(subset_of(rows[strata[name][0]]), []).append(name)
    tasks = {name: str(rows[members[0]].get("task")) for name, members in strata.items()}
    seen: Counter[str] = Counter()
    while waiting:
        for subset, names in list(waiting.items()):
            name = min(names, key=lambda n: seen[tasks[n]])
            names.remove(name)
            seen[tasks[name]] += 1
            if not names:
                del waiting[subset]
            yield strata[name]


def predict(
    planned: Plan,
    backend: Backend,
    *,
    retry_errors: bool = False,
    on_resume: Callable[[int, int], None] | None = None,
) -> Summary:
    """Ask what has not been answered yet, and write every reply as it comes.

    Args:
        planned: What to ask.
        backend: Who answers.
        retry_errors: Ask again what ended in an error, however lasting that seemed.
        on_resume: Called with the requests that are done and all of them, where some are done.

    Raises:
        RunError: The RUN folder holds another run; nothing can be answered; the first requests of
            this start, or too many in a row, failed. What was answered is kept.
    """
    _check_frame(planned, backend)
    description = describe(planned, backend)
    everything = planned.keys()
    with RunFolder.create_or_resume(planned.options.out, description) as run:
        done = run.done(retry_errors=retry_errors)
        todo = [key for key in everything if planned.key(*key) not in done]
        if done:
            todo = _scattered_first(todo)
        if done and on_resume is not None:
            on_resume(len(everything) - len(todo), len(everything))
        started = time.monotonic()
        # Closed at once whatever happens, so that nothing is asked that will not be written.
        with closing(backend.replies(_requests(planned, backend, todo))) as replies_to_come:
            new = _write_all(run, replies_to_come, len(everything), [planned.key(*k) for k in todo])
        seconds = time.monotonic() - started
        asked = {planned.key(*key) for key in everything}
        replies = [reply for reply in run.replies() if reply.key in asked]
    errors = [reply.error for reply in replies if reply.error is not None]
    permanent = sum(error.permanent for error in errors)
    return Summary(
        len(everything), len(replies) - len(errors), len(errors), permanent, new, seconds
    )


def _scattered_first(todo: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Put a few requests from all over in front.

    Whether a start works is told by its first requests. A run may have been stopped among rows
    that are all too large for the model, and others say more.
    """
    first = todo[:: max(1, len(todo) // FAILURES_AT_THE_START)][:FAILURES_AT_THE_START]
    return [*first, *(key for key in todo if key not in first)]


def _write_all(
    run: RunFolder, replies: Iterator[Reply], asked: int, todo: Sequence[tuple[str, int]]
) -> int:
    """Write replies as they come; return how many.

    Failures wait for the first reply: if the first requests of a start all fail, none is written,
    so that rows are not given up for a fault of the settings. The last few of a run that has
    worked may all be ones that the model cannot take.
    """
    held: list[Reply] = []
    has_replies = any(reply.error is None for reply in run.replies())
    is_working = False
    waiting_for = set(todo[:FAILURES_AT_THE_START])
    errors = in_a_row = new = 0
    with tqdm(
        total=asked, initial=asked - len(todo), unit=" replies", disable=None, dynamic_ncols=True
    ) as bar:
        for reply in replies:
            new += 1
            bar.update()
            if reply.error is None:
                is_working, in_a_row = True, 0
            else:
                errors += 1
                bar.set_postfix(errors=errors)
                # A whole subset may be too large for a server or a card; that is no fault of the
                # run. Anything else that fails again and again is.
                lasting = reply.error.permanent or reply.error.kind == OUT_OF_MEMORY
                in_a_row = 0 if lasting else in_a_row + 1
            held.append(reply)
            if is_working:
                for waiting in held:
                    run.append(waiting)
                held.clear()
            else:
                waiting_for.discard(reply.key)
                if not waiting_for and len(held) >= FAILURES_AT_THE_START:
                    break
            if in_a_row >= FAILURES_IN_A_ROW:
                raise _gave_up(run, f"{in_a_row} requests in a row failed", reply)
    if held and has_replies and len(held) < FAILURES_AT_THE_START:
        for waiting in held:
            run.append(waiting)
    elif held:
        first = min(len(todo), FAILURES_AT_THE_START)
        raise _gave_up(run, f"all of the first {first} requests failed", held[0])
    return new


def _gave_up(run: RunFolder, what: str, reply: Reply) -> RunError:
    reason = f"{reply.error.kind}: {reply.error.message}" if reply.error else ""
    kept = "There is no reply yet"
    if any(there.error is None for there in run.replies()):
        kept = f"Replies so far are kept in {run.path}"
    return RunError(
        f"{what}, such as {reply.id}: {reason}. {kept}; once this is mended, the same command goes "
        "on."
    )


def _light(rows: datasets.Dataset) -> datasets.Dataset:
    return rows.select_columns([name for name in COLUMNS_READ if name in rows.column_names])


def _requests(
    planned: Plan, backend: Backend, todo: Sequence[tuple[int, int]]
) -> Iterator[Request]:
    """Make requests one by one; pictures are read when they are answered."""
    options, words = planned.options, planned.words
    needs_pictures = not options.blind
    rows = planned.loaded.undecoded()
    columns = list(planned.loaded.picture_columns)
    stored = rows.select_columns(columns)
    for index, rotation in todo:
        row = planned.light[index]
        pictures: tuple[Picture, ...] = ()
        if columns and (needs_pictures or options.coords != "pixel"):
            pictures = pictures_of(stored[index], columns)
        frame = PIXELS
        if options.coords != "pixel":
            frame = _frame(options.coords, backend, pictures, str(row["id"]))
        yield Request(
            question_of(row, rotation=rotation, frame=frame, words=words),
            pictures if needs_pictures else (),
            stratum_of(row),
            frame,
        )


def _check_frame(planned: Plan, backend: Backend) -> None:
    """Check that coordinates can be said in the frame asked for, before anything is written.

    The first rows may have none, and the run would stop later on.
    """
    columns, coords = list(planned.loaded.picture_columns), planned.options.coords
    if coords == "pixel" or not planned.chosen:
        return
    first = planned.chosen[0]
    stored = planned.loaded.undecoded().select_columns(columns)
    pictures = pictures_of(stored[first], columns) if columns else ()
    _frame(coords, backend, pictures, str(planned.light[first]["id"])).scales()


def _frame(coords: Coords, backend: Backend, pictures: Sequence[Picture], row_id: str) -> Frame:
    """Return the frame of a row's coordinates: that of its first picture."""
    if not pictures:
        raise RunError(f"{row_id}: --coords {coords} needs the picture's size; there is none.")
    try:
        fed = backend.fed_size(pictures[0]) if coords == "model-pixel" else None
        return Frame(coords, pictures[0].size_wh, fed)
    except PictureError as error:
        raise RunError(f"{row_id}: {error}") from error


def describe(planned: Plan, backend: Backend) -> Description:
    """Return what ``run.json`` says of a run."""
    options, loaded, facts = planned.options, planned.loaded, backend.facts
    has_boxes = any(row.get("answer_type") == "box" for row in planned.light)
    box_format = options.box_format or (BOX_FORMATS[options.coords] if has_boxes else None)
    return {
        "soubench": _version("soubench"),
        "dataset": {
            "name": loaded.name,
            "config": loaded.config,
            "split": loaded.split,
            "source": loaded.source,
            "fingerprint": loaded.fingerprint,
            "rows": len(planned.chosen),
        },
        "model": dict(facts.model),
        "prompt": {"sha256": planned.words.digest, "version": planned.words.version},
        "decoding": dict(facts.decoding),
        "coords": options.coords,
        "box_format": box_format,
        "circular": options.circular,
        "blind": options.blind,
        "limit": options.limit,
        "seed": options.seed,
        "shard": str(options.shard),
        "libraries": {name: _version(name) for name in (*LIBRARIES, *facts.libraries)},
        "machine": {"platform": platform.platform(), **facts.machine},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
