"""Read replies that were not made by ``soubench predict``: a file of (id, reply).

JSON, JSONL, CSV (comma, semicolon or tab) or XLSX, as other tools and people write them: among them
what VLMEvalKit and lmms-eval write after ``soubench export --to``.
"""

import csv
import json
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

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
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".xlsx")
TABLES = (".csv", ".tsv", ".xlsx")
"""Files that cannot tell an empty reply from none."""
DELIMITERS = (",", ";", "\t")
SAMPLE = "doc_id"
"""What tells a line of lmms-eval's samples: the place of the row among those that it loaded."""
SAMPLE_REPLIES = ("resps", "filtered_resps")
"""Where a sample has its reply: as the model gave it, and as filters left it."""


class Uncomputed(NamedTuple):
    """A cell of a workbook with a formula whose value was not saved with it.

    Attributes:
        cell: Where it is, such as ``B3``.
        formula: What stands there.
    """

    cell: str
    formula: str


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

    An empty cell of a table or a ``null`` is no reply; ``""`` in JSON is one of a model that said
    nothing. Numbers, lists and objects count as the text that they are written as.

    Args:
        path: JSONL, JSON (a list), CSV, TSV or XLSX, told by the name; of a workbook the first
            sheet, with the names of the columns in its first row.
        id_column: Column of the row ids; by default the first of ``ID_COLUMNS`` that is there.
        reply_column: Column of the replies; by default the only one of ``REPLY_COLUMNS``.

    Returns:
        The replies in the order of the file; ``reply`` is None where there is none.

    Raises:
        FormatError: The file cannot be read, has no such columns, a row has no id, or two rows
            have the same. The message names the row.
    """
    places: dict[str, str] = {}
    replies = []
    columns: tuple[str, str] | None = None
    is_table = path.suffix.lower() in TABLES
    for record in _records(path):
        if columns is None:
            columns = _columns(path, record, id_column, reply_column)
        _check_cells(path, record, columns)
        row_id = _text(record.values[columns[0]]).strip()
        if not row_id:
            raise FormatError(f"{path}, {record.place}: expected an id at {columns[0]!r}.")
        if row_id in places:
            raise FormatError(
                f"{path}, {record.place}: the id {row_id!r} was already at {places[row_id]}. "
                "Keep one reply per id."
            )
        places[row_id] = record.place
        value = record.values[columns[1]]
        text = _text(value)
        is_missing = value is None or (is_table and not text.strip())
        replies.append(Reply(row_id, reply=None if is_missing else text))
    if not replies:
        raise FormatError(f"{path}: expected at least one row with an id and a reply, found none.")
    return replies


def _check_cells(path: Path, record: Record, columns: tuple[str, str]) -> None:
    """Check that a row has something at its id and its reply, be it empty."""
    for column in columns:
        if column not in record.values:
            raise FormatError(
                f"{path}, {record.place}: expected {' and '.join(map(repr, columns))} as in the "
                f"rows before, found {', '.join(record.values) or 'nothing'}. Where there is no "
                "reply, leave the row out, or its cell empty (in JSON: null)."
            )
        value = record.values[column]
        if isinstance(value, Uncomputed):
            raise FormatError(
                f"{path}, cell {value.cell}: expected a value, found the formula "
                f"{value.formula[:60]!r}, whose value was not saved. Open the workbook in a "
                "spreadsheet program and save it, or save the sheet as CSV UTF-8."
            )


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
        elif kind == ".json":
            yield from _json(path)
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
                    f"{line.strip()[:60]!r} ({error}).{_list_hint(line)}"
                ) from error
            if not isinstance(values, dict):
                raise FormatError(
                    f"{path}, {place}: expected a JSON object, found {line.strip()[:60]!r}."
                    f"{_list_hint(line)}"
                )
            yield Record(place, _sample(path, place, values) if SAMPLE in values else values)


def _json(path: Path) -> Iterator[Record]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        raise FormatError(f"{path}: expected JSON, but {error}.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FormatError(f"{path}: expected a JSON list of objects, each with an id and a reply.")
    for number, row in enumerate(rows, 1):
        yield Record(f"row {number}", row)


def _sample(path: Path, place: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return id and reply of a sample of lmms-eval; what is no sample stays as it is."""
    there = [values[name] for name in SAMPLE_REPLIES if name in values]
    if not there:
        return values
    judged = (value for value in values.values() if isinstance(value, Mapping))
    row_id = next((value["id"] for value in judged if "id" in value), None)
    if row_id is None:
        raise FormatError(
            f"{path}, {place}: this sample of lmms-eval does not say which row it is about. Run "
            "the task that soubench export --to lmms-eval wrote: its samples do."
        )
    for reply in there:
        # Lists of one, in lists of one before its version 0.7, unless the model was asked twice.
        while isinstance(reply, list) and len(reply) == 1:
            reply = reply[0]
        if isinstance(reply, str):
            return {"id": row_id, "reply": reply}
    raise FormatError(
        f"{path}, {place}: expected one reply per row, found {str(there[0])[:60]}. Run the task "
        "with repeats: 1."
    )


def _list_hint(line: str) -> str:
    is_list = line.lstrip().startswith("[")
    return " One list of all rows goes into a file that ends in .json." if is_list else ""


def _csv(path: Path) -> Iterator[Record]:
    # Replies may be long: a thought of 200 kB is more than the module's default allows.
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        # Some spreadsheets read, and some people write, a line in front that names the delimiter.
        named = re.fullmatch(r'"?sep=(.)"?\s*', first)
        skipped = 1 if named else 0
        if not named:
            file.seek(0)
        delimiter = named[1] if named else max(DELIMITERS, key=first.count)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            head = [name.strip() for name in next(reader, [])]
            _check_head(path, head)
            start = reader.line_num + 1 + skipped
            for cells in reader:
                place = f"line {start}"
                start = reader.line_num + 1 + skipped
                if not any(cells):
                    continue
                if len(cells) != len(head):
                    raise FormatError(
                        f"{path}, {place}: expected {len(head)} cells ({', '.join(head)}), "
                        f"found {len(cells)}. Quote what holds {delimiter!r} or a line break."
                    )
                yield Record(place, dict(zip(head, cells, strict=True)))
        except csv.Error as error:
            raise FormatError(
                f"{path}, line {reader.line_num + skipped}: no valid CSV ({error})."
            ) from error


def _xlsx(path: Path) -> Iterator[Record]:
    try:
        import openpyxl  # type: ignore[import-untyped]  # ships no types
    except ImportError as error:
        raise FormatError(
            f'{path}: reading workbooks needs pip install "soubench[xlsx]"; or save the sheet as '
            "CSV UTF-8."
        ) from error
    from openpyxl.utils.exceptions import InvalidFileException  # type: ignore[import-untyped]  # as above

    # What the reader of ZIP files, that of XML, and openpyxl raise for a damaged workbook; an XML
    # file that is none is a SyntaxError.
    damages = (
        BadZipFile, zlib.error, EOFError, SyntaxError, LookupError, ValueError, TypeError,
        InvalidFileException,
    )  # fmt: skip

    def rows(**options: bool) -> Iterator[Sequence[Any]]:
        try:
            with closing(openpyxl.load_workbook(path, read_only=True, **options)) as book:
                sheet = book.worksheets[0]
                # Some programs write a size that is too small, and rows past it would be left out.
                sheet.reset_dimensions()
                yield from sheet.iter_rows()
        except damages as error:
            raise FormatError(
                f"{path}: expected an Excel workbook, but it cannot be read ({error})."
            ) from error

    # Values and formulas can only be had one at a time.
    both = zip(rows(data_only=True), rows(data_only=False), strict=True)
    head: list[str] = []
    for number, (cells, formulas) in enumerate(both, 1):
        if number == 1:
            head = [_text(cell.value).strip() for cell in cells]
            while head and not head[-1]:
                head.pop()
            _check_head(path, head)
            continue
        values = [
            Uncomputed(f.coordinate, str(f.value))
            if c.value is None and f.data_type == "f"
            else c.value
            for c, f in zip(cells, formulas, strict=True)
        ]
        if any(value is not None for value in values):
            # Rows may be shorter than the head where their last cells are empty.
            full = [*values, *[None] * len(head)]
            yield Record(f"row {number}", dict(zip(head, full, strict=False)))
    if not head:
        _check_head(path, head)


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
