"""A RUN folder: what was asked of which model (``run.json``), and what came (``replies.jsonl``).

``run.json`` is written as a whole before the first request, and stays once there is a reply::

    soubench        version that made the run
    dataset         name, config, split, source (as typed), fingerprint, rows (asked in this run)
    model           name, backend, revision, parameters (int or null), dtype, processor, ..
    prompt          sha256 and version of the words added to a row's own
    decoding        max_new_tokens, do_sample, batch-independent settings, ..
    coords          frame of coordinates in the questions: pixel, model-pixel, norm1000, unit
    box_format      format that boxes were asked for in (a name that acc_at_iou knows), or null
    circular        whether all rotations of the options were asked
    blind           whether the pictures were left out
    limit           rows asked at most, or null
    seed            of the limit's draw, of sampling and of random baselines
    shard           "i/n": rows i, i + n, i + 2n, ..
    libraries       name -> version
    machine         platform and device
    started         UTC time, ISO 8601

``replies.jsonl`` only grows, by one line per reply, each on the disk before the next is written.
A request that failed for good has a line too. Where a row has several lines (a failure that passes,
then a reply), the last one counts.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from filelock import FileLock, Timeout

from soubench.builders.errors import RunError

RUN_FILE = "run.json"
REPLIES_FILE = "replies.jsonl"
LOCK_FILE = "lock"

Description = dict[str, Any]
"""What ``run.json`` holds; its keys are listed above."""

Size = tuple[int, int]
"""Width and height in px."""

MAY_DIFFER_ON_RESUMING = frozenset({"started", "libraries", "machine", "dataset.source"})
MAY_DIFFER_BETWEEN_SHARDS = MAY_DIFFER_ON_RESUMING | {"shard", "dataset.rows"}
SHOWN_CHARACTERS = 80
SHOWN_NAMES = 3


@dataclass(frozen=True, slots=True)
class ReplyError:
    """Why there is no reply.

    Attributes:
        kind: A word or two for tables of errors, such as ``timeout`` or ``http 413``.
        message: What the library or the server said.
        permanent: Asking again will not help, so that a resumed run does not.
    """

    kind: str
    message: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """One line of ``replies.jsonl``.

    Attributes:
        id: The row.
        rotation: By how many places the options were rotated; 0 as they stand in the row.
        reply: What the model said, unchanged; None where ``error`` says why, and where a file of
            replies has an empty cell.
        error: Why there is no reply.
        picture_wh: Width and height in px of each whole picture as the model's processor fed it;
            None where unknowable: behind a server, or where the processor cuts pictures.
        input_tokens: Tokens of the question, where known.
        output_tokens: Tokens of the reply, where known.
        finish_reason: ``stop``, ``length`` or what the server said.
        seconds: How long it took; its share of the time for a row of a batch.
    """

    id: str
    rotation: int = 0
    reply: str | None = None
    error: ReplyError | None = None
    picture_wh: tuple[Size, ...] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str | None = None
    seconds: float | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What was asked: the row and the rotation of its options."""
        return self.id, self.rotation

    @property
    def settled(self) -> bool:
        """Whether a resumed run has nothing more to ask."""
        return self.error is None or self.error.permanent

    def to_line(self) -> bytes:
        """Write the line, with its end."""
        # Lone surrogates, which a tokenizer can produce, are no UTF-8; escapes say them all.
        return json.dumps(asdict(self)).encode("ascii") + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line.

        Raises:
            ValueError: It is no reply.
        """
        data = json.loads(line)
        if not isinstance(data, dict):
            raise ValueError("expected a JSON object")
        try:
            if data.get("error") is not None:
                data["error"] = ReplyError(**data["error"])
            if data.get("picture_wh") is not None:
                data["picture_wh"] = tuple((int(w), int(h)) for w, h in data["picture_wh"])
            made = cls(**data)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if not isinstance(made.id, str) or not isinstance(made.rotation, int):
            raise ValueError("expected a text at id and a whole number at rotation")
        if (made.reply is None) == (made.error is None):
            raise ValueError("expected either a reply or an error")
        return made


def taken(folder: Path, otherwise: str) -> FileLock:
    """Keep a folder to this process until the lock is released, or the process ends.

    Args:
        folder: The folder, which is there.
        otherwise: What to do but to wait, if another process has it.

    Raises:
        RunError: Another process has it.
    """
    lock = FileLock(folder / LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise RunError(
            f"{folder}: another process is writing there. Wait for it, or {otherwise}."
        ) from error
    return lock


class RunFolder:
    """A RUN folder that this process alone writes; use it in a ``with`` statement."""

    def __init__(self, path: Path, lock: FileLock, replies: list[Reply], file: BinaryIO) -> None:
        self.path = path
        self._lock = lock
        self._replies = {reply.key: reply for reply in replies}
        self._file = file

    @classmethod
    def create_or_resume(cls, path: Path, description: Mapping[str, Any]) -> Self:
        """Start a run in ``path``, or go on with the one that is there.

        Where nothing has been answered yet, the run may be started anew with other settings. A last
        line that was cut off in the middle is removed.

        Args:
            path: The folder; made if need be.
            description: What is to be asked, see the module.

        Raises:
            RunError: Another process writes the run, the folder holds something else, the run
                there was another one (the message names the field and both values), or a line of
                it is damaged.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"{path}: expected a folder for the run ({error.strerror}). Choose another --out."
            ) from error
        known = {RUN_FILE, REPLIES_FILE, LOCK_FILE, _temporary(path).name}
        if not (path / RUN_FILE).exists():
            strange = sorted(p.name for p in path.iterdir() if p.name not in known)
            if strange or (path / REPLIES_FILE).exists():
                raise RunError(
                    f"{path} is there, is not empty and holds no {RUN_FILE}, so it is no run that "
                    f"could be resumed (found {', '.join(strange[:3]) or REPLIES_FILE}). "
                    "Choose another --out."
                )
        lock = taken(path, "give each process an --out of its own (--shard i/n divides the rows)")
        try:
            there = _read_description(path) if (path / RUN_FILE).exists() else None
            replies, length = _read_replies(path)
            if there is not None and replies:
                _refuse_other(path, there, description)
            else:
                write_whole(path / RUN_FILE, dict(description))
            file = (path / REPLIES_FILE).open("ab", buffering=0)
            file.truncate(length)
        except BaseException:
            lock.release()
            raise
        return cls(path, lock, replies, file)

    def done(self, *, retry_errors: bool = False) -> set[tuple[str, int]]:
        """Return (id, rotation) of everything that need not be asked again.

        Failures that may pass, such as timeouts, are not among them.

        Args:
            retry_errors: Leave out the lasting failures, too.
        """
        replies = self._replies.items()
        return {key for key, r in replies if (r.error is None if retry_errors else r.settled)}

    def replies(self) -> list[Reply]:
        """Return what is there, the last line of each (id, rotation)."""
        return list(self._replies.values())

    def append(self, reply: Reply) -> None:
        """Add a line; it is on the disk when this returns.

        Raises:
            OSError: The disk is full or gone. What was written of the line is cut off again.
        """
        line = reply.to_line()
        end = self._file.seek(0, os.SEEK_END)
        try:
            if self._file.write(line) != len(line):
                raise OSError(f"{self.path / REPLIES_FILE}: a line could be written only in part")
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                self._file.truncate(end)
            raise
        self._replies[reply.key] = reply

    def close(self) -> None:
        """Let others write the run."""
        self._file.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_run(path: Path) -> tuple[Description, list[Reply]]:
    """Read a run, finished or not, also while it is being written.

    Returns:
        The description, and the last reply to each (id, rotation), in the order of the first one.

    Raises:
        RunError: The folder is no run, or a file of it is damaged.
    """
    description = _read_description(path)
    replies, _ = _read_replies(path)
    return description, list({reply.key: reply for reply in replies}.values())


def merge_runs(paths: Sequence[Path]) -> tuple[Description, list[Reply]]:
    """Read the shards of one run as one.

    Args:
        paths: RUN folders made with ``--shard 0/n`` to ``--shard n-1/n``, in any order; or a
            single run.

    Returns:
        A description with ``shard`` "0/1" and the rows of all shards, and all replies.

    Raises:
        RunError: A shard is missing or given twice, they are shards of different runs, or one
            cannot be read.
    """
    if not paths:
        raise RunError("expected at least one RUN folder, got none.")
    runs = [(path, *read_run(path)) for path in paths]
    first_path, first, _ = runs[0]
    shards: dict[str, Path] = {}
    for path, description, _ in runs:
        difference = first_difference(first, description, MAY_DIFFER_BETWEEN_SHARDS)
        if difference is not None:
            field, one, other = difference
            raise RunError(
                f"{path} and {first_path} are no shards of one run: {field} is {_shown(other)} "
                f"there and {_shown(one)} here."
            )
        shard = str(description.get("shard"))
        if shard in shards:
            raise RunError(f"shard {shard} is given twice: {shards[shard]} and {path}.")
        shards[shard] = path
    n = str(first.get("shard")).partition("/")[2]
    every = [f"{i}/{n}" for i in range(int(n) if n.isdecimal() else 0)]
    missing = [shard for shard in every if shard not in shards]
    strange = [shard for shard in shards if shard.partition("/")[2] != n]
    if missing or strange:
        raise RunError(
            f"expected all {n} shards of {first_path}'s run; missing: "
            f"{_listed(missing)}, of another division: {_listed(strange)}."
        )
    rows = [description["dataset"]["rows"] for _, description, _ in runs]
    merged = first | {"shard": "0/1", "dataset": first["dataset"] | {"rows": sum(rows)}}
    return merged, [reply for _, _, replies in runs for reply in replies]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return (", ".join(names[:SHOWN_NAMES]) or "none") + more


def first_difference(
    one: Mapping[str, Any], other: Mapping[str, Any], may_differ: Iterable[str]
) -> tuple[str, Any, Any] | None:
    """Return the first field (``dataset.config``) in which two descriptions differ, and both.

    >>> first_difference({"a": {"b": 1}, "c": 0}, {"a": {"b": 2}, "c": 1}, {"c"})
    ('a.b', 1, 2)
    """
    skipped = set(may_differ)
    flat_one, flat_other = dict(_flat(one, skipped)), dict(_flat(other, skipped))
    for field in flat_one | flat_other:
        a, b = flat_one.get(field), flat_other.get(field)
        if a != b:
            return field, a, b
    return None


def _flat(
    value: Mapping[str, Any], skipped: set[str], prefix: str = ""
) -> Iterable[tuple[str, Any]]:
    for key, part in value.items():
        field = f"{prefix}{key}"
        if field in skipped:
            continue
        if isinstance(part, Mapping):
            yield from _flat(part, skipped, f"{field}.")
        else:
            yield field, list(part) if isinstance(part, tuple) else part


def _refuse_other(path: Path, there: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    difference = first_difference(there, asked, MAY_DIFFER_ON_RESUMING)
    if difference is not None:
        field, old, new = difference
        raise RunError(
            f"{path} holds another run, which cannot be resumed as this one: {field} was "
            f"{_shown(old)} there and is {_shown(new)} now. Choose another --out, or go back to "
            "what the run was started with."
        )


def _shown(value: Any) -> str:  # noqa: ANN401  # any JSON value
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}.."


def _temporary(path: Path) -> Path:
    return path / f"{RUN_FILE}.incomplete"


def write_whole(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON file that is there as a whole or not at all, even if the power fails."""
    temporary = path.with_name(f"{path.name}.incomplete")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read_description(path: Path) -> Description:
    file = path / RUN_FILE
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(
            f"{path}: expected a RUN folder with a {RUN_FILE}, as soubench predict --out makes it."
        ) from error
    except (OSError, ValueError) as error:
        raise RunError(f"{file}: the description of the run cannot be read ({error}).") from error
    if not isinstance(data, dict) or not isinstance(data.get("dataset"), dict):
        raise RunError(f"{file}: expected the description of a run, with a dataset.")
    return data


def _read_replies(path: Path) -> tuple[list[Reply], int]:
    """Return the replies, and the length in bytes of the lines that are whole."""
    file = path / REPLIES_FILE
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise RunError(f"{file}: the replies cannot be read ({error.strerror}).") from error
    # Without its end, a line was being written when the process was killed.
    length = data.rfind(b"\n") + 1
    replies = []
    for number, line in enumerate(data[:length].split(b"\n")[:-1], 1):
        try:
            replies.append(Reply.from_line(line))
        except ValueError as error:
            raise RunError(
                f"{file}, line {number}: expected a reply as JSON, found {line[:60]!r} ({error}). "
                "The file was changed or the disk is damaged; remove the line to ask its row again."
            ) from error
    return replies, length
