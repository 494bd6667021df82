"""Read label files and the loosely typed values in them."""

import gc
import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from soubench.builders.errors import FormatError

_FLOAT = frozenset({float})
_REAL = frozenset({float, int})
_TRUE = frozenset({"1", "true"})
_FALSE = frozenset({"", "0", "false"})
_WHOLE = re.compile(r"-?\d{1,18}")

Key = int | str
"""An id of a picture, category or record, as files spell it."""


def read_text(path: Path) -> str:
    """Read a UTF-8 file, with or without a byte order mark.

    Raises:
        FormatError: If the file cannot be read or is not UTF-8.
    """
    return _decode(_read_bytes(path), path)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: the label file cannot be read: {error}") from error


def _decode(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path}: expected UTF-8 text, found byte 0x{error.object[error.start]:02x} at offset "
            f"{error.start}. Save the file as UTF-8."
        ) from error


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file, whichever line ends it has; raises as `read_text`."""
    return read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the search for reference cycles while a large document without any is made.

    It would walk through all that was made so far again and again, for half of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_json(path: Path, shape: type, keep: Collection[str]) -> object:
    """Read a JSON file; NaN and Infinity are accepted.

    Args:
        path: The file.
        shape: A TypedDict that says which keys the usual document has and how they are nested.
        keep: Keys of objects to keep at every depth of any other document. What is in neither is
            thrown away while parsing, which bounds the memory that large files need.

    Raises:
        FormatError: If the file is not UTF-8 or not JSON, or cut off, with the byte offset.
    """
    content = _read_bytes(path)
    if not content.isascii():
        _decode(content, path)  # msgspec does not look into text that it skips.
    try:
        with collector_paused():
            return msgspec.json.decode(content.removeprefix(BOM_UTF8), type=shape)
    except (msgspec.MsgspecError, RecursionError):
        pass  # The slower parser accepts more, and says where the fault is.
    text = _decode(content, path)
    wanted = frozenset(keep)

    def slim(record: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in record.items() if key in wanted}

    try:
        with collector_paused():
            document: object = json.loads(text, object_hook=slim)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8")) + path.stat().st_size
        offset -= len(text.encode("utf-8"))
        fault = error.msg.removesuffix(" at")
        raise FormatError(
            f"{path}: not a whole JSON document: {fault} at byte {offset} of "
            f"{path.stat().st_size}. Download or write the file again."
        ) from error
    except (RecursionError, ValueError) as error:
        raise FormatError(f"{path}: JSON that no label file needs: {error}") from error
    return document


def to_number(value: object) -> float | None:
    """Return a JSON number, or a string that says a finite one; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if isinstance(value, str) and "_" not in value:
        try:
            number = float(value)
        except ValueError:
            return None
        return number if math.isfinite(number) else None
    return None


def to_numbers(value: object) -> tuple[float, ...] | None:
    """Return a list of numbers; None where it is no list or one of them is no number."""
    if not isinstance(value, list):
        return None
    kinds = set(map(type, value))
    if kinds <= _FLOAT:
        return tuple(value)
    if kinds <= _REAL:
        try:
            return tuple(map(float, value))
        except OverflowError:
            pass  # One of them is beyond all floats; `to_number` says which.
    numbers: list[float] = []
    for item in value:
        number = to_number(item)
        if number is None:
            return None
        numbers.append(number)
    return tuple(numbers)


def to_floats(fields: Sequence[str]) -> tuple[float, ...] | None:
    """Return the numbers of a text row, finite or not; None where a field says no number."""
    if any("_" in field for field in fields):
        return None
    try:
        return tuple(map(float, fields))
    except ValueError:
        return None


def to_flag(value: object) -> bool | None:
    """Read true/false, 0/1 or either as text; missing is false; None for anything else."""
    if value is None or value is False or value is True:
        return bool(value)
    if type(value) in _REAL and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        text = value.strip().casefold()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
    return None


def to_key(value: object) -> Key | None:
    """Return an id as int or text; None where the value cannot be one."""
    if type(value) is int:
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        return value.strip() or None
    return None


def same_key(key: Key, known: Collection[Key]) -> Key | None:
    """Return the known id that is meant: the same, or the same number spelled as text."""
    if key in known:
        return key
    other: Key | None = None
    if isinstance(key, int):
        other = str(key)
    elif _WHOLE.fullmatch(key):
        other = int(key)
    return other if other is not None and other in known else None


def to_name(value: object) -> str | None:
    """Return a name with single blanks; None where it is empty or cannot be written as UTF-8."""
    if not isinstance(value, str):
        return None
    name = " ".join(value.split())
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return None
    return name or None


def name_key(name: str) -> str:
    """Return what two spellings of a category have in common: no case, blanks, ``_`` or ``-``."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def shorten(value: object) -> str:
    """Show a value in a message, cut to a readable length."""
    try:
        text = ascii(value)
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:40]}…{text[-15:]}"
