"""Read replies that were not made by ``soubench predict``: a file of (id, reply).

JSONL, CSV (comma, semicolon or tab) or XLSX, as other tools and people write them.
"""

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from soubench.builders.errors import FormatError
from soubench.inference.run_folder import Reply

ID_COLUMNS = ("id", "question_id", "questionid", "qid", "row_id", "sample_id", "uid", "index")
REPLY_COLUMNS = (
    "reply",
    "prediction",
    "predictions",
    "response",
    "output",
    "model_output",
    "model_answer",
    "model_response",
    "generated_text",
    "completion",
    "pred",
)
"""Names that are understood, whatever their case. ``answer`` is not among them: in many files that
is the right answer."""
SUFFIXES = (".jsonl", ".csv", ".tsv", ".xlsx")
DELIMITERS = (",", ";", "\t")


class Record(NamedTuple):
    """One row of a file.

    Attributes:
        place: ``line 3`` or ``row 3``, as an editor or a spreadsheet counts.
        values: Column -> what stands there.
    """

    place: str
    values: Mapping[str, Any]


def read_predictions(
    path: Path, *, id_column: str | None = None, reply_column: str | None = None
) -> list[Reply]:
    """Read one reply per row of a file.

    An empty cell or ``null`` is an empty reply. Numbers, lists and objects count as the text that
    they are written as.

    Args:
        path: JSONL, CSV, TSV or XLSX, told by the name; of a workbook the first sheet, with the
            names of the columns in its first row.
        id_column: Column of the row ids; by default the first of ``ID_COLUMNS`` that is there.
        reply_column: Column of the replies; by default the only one of ``REPLY_COLUMNS``.

    Returns:
        The replies in the order of the file.

    Raises:
        FormatError: The file cannot be read, has no such columns, a row has no id, or two rows
            have the same. The message names the row.
    """
    places: dict[str, str] = {}
    replies = []
    columns: tuple[str, str] | None = None
    for record in _records(path):
        if columns is None or not set(columns) <= record.values.keys():
            columns = _columns(path, record, id_column, reply_column)
        row_id = _text(record.values[columns[0]]).strip()
        if not row_id:
            raise FormatError(f"{path}, {record.place}: expected an id at {columns[0]!r}.")
        if row_id in places:
            raise FormatError(
                f"{path}, {record.place}: the id {row_id!r} was already at {places[row_id]}. "
                "Keep one reply per id."
            )
        places[row_id] = record.place
        replies.append(Reply(row_id, reply=_text(record.values[columns[1]])))
    if not replies:
        raise FormatError(f"{path}: expected at least one row with an id and a reply, found none.")
    return replies


def _records(path: Path) -> Iterator[Record]:
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise FormatError(
            f"{path}: expected a file that ends in {', '.join(SUFFIXES)}, one row per reply."
        )
    if not path.is_file():
        raise FormatError(f"{path}: there is no such file.")
    try:
        if kind == ".jsonl":
            yield from _jsonl(path)
        elif kind == ".xlsx":
            yield from _xlsx(path)
        else:
            yield from _csv(path)
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path}: expected UTF-8, found the byte 0x{error.object[error.start]:02x} at "
            f"{error.start}. Save the file as UTF-8 (in a spreadsheet: CSV UTF-8)."
        ) from error
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from error


def _jsonl(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            place = f"line {number}"
            try:
                values = json.loads(line)
            except ValueError as error:
                raise FormatError(
                    f"{path}, {place}: expected a JSON object with an id and a reply, found "
                    f"{line.strip()[:60]!r} ({error})."
                ) from error
            if not isinstance(values, dict):
                raise FormatError(
                    f"{path}, {place}: expected a JSON object, found {line.strip()[:60]!r}."
                )
            yield Record(place, values)


def _csv(path: Path) -> Iterator[Record]:
    # Replies may be long: a thought of 200 kB is more than the module's default allows.
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        delimiter = max(DELIMITERS, key=first.count)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            head = [name.strip() for name in next(reader, [])]
            _check_head(path, head)
            start = reader.line_num + 1
            for cells in reader:
                place = f"line {start}"
                start = reader.line_num + 1
                if not any(cells):
                    continue
                if len(cells) != len(head):
                    raise FormatError(
                        f"{path}, {place}: expected {len(head)} cells ({', '.join(head)}), "
                        f"found {len(cells)}. Quote what holds {delimiter!r} or a line break."
                    )
                yield Record(place, dict(zip(head, cells, strict=True)))
        except csv.Error as error:
            raise FormatError(f"{path}, line {reader.line_num}: no valid CSV ({error}).") from error


def _xlsx(path: Path) -> Iterator[Record]:
    try:
        import openpyxl  # type: ignore[import-untyped]  # ships no types
    except ImportError as error:
        raise FormatError(
            f'{path}: reading workbooks needs pip install "soubench[xlsx]"; or save the sheet as '
            "CSV UTF-8."
        ) from error
    from zipfile import BadZipFile

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, openpyxl.utils.exceptions.InvalidFileException) as e:
        raise FormatError(
            f"{path}: expected an Excel workbook, but it cannot be read ({e})."
        ) from e
    try:
        lines = book.worksheets[0].iter_rows(values_only=True)
        head = [_text(cell).strip() for cell in next(lines, ())]
        while head and not head[-1]:
            head.pop()
        _check_head(path, head)
        for number, cells in enumerate(lines, 2):
            if any(cell is not None for cell in cells):
                # Rows may be shorter than the head where their last cells are empty.
                full = [*cells, *[None] * len(head)]
                yield Record(f"row {number}", dict(zip(head, full, strict=False)))
    finally:
        book.close()


def _check_head(path: Path, head: Sequence[str]) -> None:
    twice = next((name for name in head if name and head.count(name) > 1), None)
    if twice is not None:
        raise FormatError(f"{path}: two columns are named {twice!r}. Rename or remove one.")
    if not any(head):
        raise FormatError(f"{path}: expected the names of the columns in the first row.")


def _columns(
    path: Path, record: Record, id_column: str | None, reply_column: str | None
) -> tuple[str, str]:
    """Choose the two columns that count."""
    names = [name for name in record.values if name]
    by_form = {name.strip().lower().replace(" ", "_"): name for name in names}
    where = f"{path}, {record.place}"
    listed = ", ".join(names[:12]) or "none"
    for given in (id_column, reply_column):
        if given is not None and given not in names:
            raise FormatError(f"{where}: there is no column {given!r}; found {listed}.")
    ids = [id_column] if id_column else [by_form[n] for n in ID_COLUMNS if n in by_form]
    known = [by_form[n] for n in REPLY_COLUMNS if n in by_form]
    replies = [reply_column] if reply_column else known
    if not ids:
        raise FormatError(
            f"{where}: expected a column with the row ids ({', '.join(ID_COLUMNS)}), found "
            f"{listed}. Name it with --id-column."
        )
    if len(replies) != 1:
        found = f"several ({', '.join(replies)})" if replies else listed
        raise FormatError(
            f"{where}: expected one column with the replies ({', '.join(REPLY_COLUMNS[:5])}, ..), "
            f"found {found}. Name it with --reply-column."
        )
    return ids[0], replies[0]


def _text(value: Any) -> str:  # noqa: ANN401  # a cell
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        # Spreadsheets keep whole numbers as fractions.
        return str(int(value))
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
