"""Files of replies: every kind gives the same, and what is wrong is named with its row."""

import csv
import json
import re
import sys
import zipfile

import openpyxl
import pytest

from soubench.builders.errors import FormatError
from soubench.inference.predictions import read_predictions

ROWS = [
    ("a/1", "A"),
    ("a/2", 'It is "B", not C;\nsurely, B.'),
    ("a/3", None),
    ("a/4", "船 — 它是 D"),
]


def jsonl(path, rows, names=("id", "reply")):
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def table(path, rows, names=("id", "reply"), delimiter=",", encoding="utf-8"):
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([names, *rows])
    return path


def workbook(path, rows, names=("id", "reply")):
    book = openpyxl.Workbook()
    for row in [names, *rows]:
        book.active.append(list(row))
    book.save(path)
    return path


def read(path, **options):
    return [(reply.id, reply.reply) for reply in read_predictions(path, **options)]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda f: jsonl(f / "a.jsonl", ROWS), id="jsonl"),
        pytest.param(lambda f: table(f / "a.csv", ROWS), id="csv"),
        pytest.param(lambda f: table(f / "a.csv", ROWS, delimiter=";"), id="csv with semicolons"),
        pytest.param(lambda f: table(f / "a.csv", ROWS, encoding="utf-8-sig"), id="csv with BOM"),
        pytest.param(lambda f: table(f / "a.tsv", ROWS, delimiter="\t"), id="tsv"),
        pytest.param(lambda f: workbook(f / "a.xlsx", ROWS), id="xlsx"),
        pytest.param(lambda f: workbook(f / "A.XLSX", ROWS), id="upper case suffix"),
        pytest.param(lambda f: jsonl(f / "a.jsonl", ROWS, ("Index", "Response")), id="other names"),
        pytest.param(
            lambda f: table(f / "a.csv", ROWS, ("question_id", "model answer")), id="spaced names"
        ),
    ],
)
def test_every_kind_of_file_gives_the_same_replies(tmp_path, write):
    assert read(write(tmp_path)) == ROWS


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"'])
def test_a_first_line_may_name_the_delimiter(tmp_path, first):
    path = table(tmp_path / "a.csv", ROWS, delimiter=";")
    path.write_text(f"{first}\r\n{path.read_text('utf-8')}", encoding="utf-8")
    assert read(path) == ROWS


def edit_sheet(path, edit):
    """Change the XML of a workbook's only sheet."""
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    name = "xl/worksheets/sheet1.xml"
    edited = edit(parts[name])
    assert edited != parts[name]
    with zipfile.ZipFile(path, "w") as book:
        for part, data in (parts | {name: edited}).items():
            book.writestr(part, data)
    return path


def test_a_workbook_that_says_a_wrong_size_loses_no_row(tmp_path):
    def smaller(sheet):
        return re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1:A2"', sheet)

    assert read(edit_sheet(workbook(tmp_path / "a.xlsx", ROWS), smaller)) == ROWS


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda sheet: sheet[: len(sheet) // 2], id="cut"),
        pytest.param(lambda sheet: b"no sheet", id="no XML"),
        pytest.param(lambda sheet: sheet.replace(b'r="B3"', b'r="?"'), id="odd cell"),
        pytest.param(
            lambda sheet: re.sub(
                rb'(?s)<c r="B3".*?</c>', b'<c r="B3" t="s"><v>9999</v></c>', sheet
            ),
            id="no such text",
        ),
    ],
)
def test_a_damaged_sheet_is_said_in_one_line(tmp_path, damage):
    path = edit_sheet(workbook(tmp_path / "a.xlsx", ROWS), damage)
    with pytest.raises(FormatError, match=r"a\.xlsx: expected an Excel workbook, but it cannot"):
        read(path)


def test_a_formula_without_its_value_is_named_with_its_cell(tmp_path):
    rows = [("1", "A", "=1+1"), ("2", '=UPPER("b")', "=1+1")]
    path = workbook(tmp_path / "a.xlsx", rows, ("id", "reply", "of no interest"))
    with pytest.raises(FormatError, match=r"""a\.xlsx, cell B3: .*'=UPPER\("b"\)'.*not saved"""):
        read(path)

    # With the value that a spreadsheet program saves beside it, it is as good as any other cell.
    def computed(sheet):
        return re.sub(
            rb'<c r="B3"[^>]*><f>[^<]*</f><v ?/?>(</v>)?',
            b'<c r="B3" t="str"><f>UPPER("b")</f><v>B</v>',
            sheet,
        )

    assert read(edit_sheet(path, computed)) == [("1", "A"), ("2", "B")]


def test_values_that_are_no_texts(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [(1, 3), (2, None), (3, [1, 2]), (4, {"A": 1}), (5, True)])
    assert read(path) == [
        ("1", "3"),
        ("2", None),
        ("3", "[1, 2]"),
        ("4", '{"A": 1}'),
        ("5", "true"),
    ]
    # JSON tells a model that said nothing from a row without a reply
    assert read(jsonl(tmp_path / "a.jsonl", [(1, ""), (2, None)])) == [("1", ""), ("2", None)]
    # a workbook keeps 3 as 3 and 3.0 alike; its last cell may be missing
    path = workbook(tmp_path / "a.xlsx", [(1, 3.0), (2, None), (None, None), (3, "C")])
    assert read(path) == [("1", "3"), ("2", None), ("3", "C")]


def test_columns_by_name_and_right_answers_beside(tmp_path):
    names = ("id", "key", "answer", "prediction", "output")
    path = table(tmp_path / "a.csv", [("1", "x", "A", "B", "C")], names)
    with pytest.raises(FormatError, match=r"line 2.*several \(prediction, output\).*--reply-col"):
        read(path)
    assert read(path, reply_column="output") == [("1", "C")]
    assert read(path, id_column="key", reply_column="answer") == [("x", "A")]
    with pytest.raises(FormatError, match="no column 'nope'; found id, key, answer"):
        read(path, id_column="nope")


def test_a_reply_longer_than_the_csv_modules_default(tmp_path):
    reply = "hm " * 100_000
    assert read(table(tmp_path / "a.csv", [("1", reply)])) == [("1", reply)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("a.jsonl", '{"id": "1", "reply": "A"}\n{"id": ', "line 2", id="cut line"),
        pytest.param("a.jsonl", '["1", "A"]', "line 1.*JSON object", id="list"),
        pytest.param(
            "a.jsonl", '[\n{"id": "1", "reply": "A"}]', r"line 1.*ends in \.json\.", id="one list"
        ),
        pytest.param(
            "a.jsonl",
            '{"id": "1", "reply": "A"}\n{"id": "2"}',
            "line 2: expected 'id' and 'reply' as in the rows before, found id",
            id="a line without a reply",
        ),
        pytest.param("a.jsonl", '{"id": "1"}', "line 1.*with the replies", id="no reply"),
        pytest.param("a.jsonl", '{"reply": "A"}', "line 1.*row ids.*--id-column", id="no id"),
        pytest.param("a.jsonl", '{"id": " ", "reply": "A"}', "line 1.*an id", id="blank id"),
        pytest.param(
            "a.jsonl",
            '{"id": 7, "reply": "A"}\n\n{"id": "7", "reply": "B"}',
            "line 3.*'7' was already at line 1",
            id="same id twice",
        ),
        pytest.param("a.jsonl", "", "at least one row", id="empty"),
        pytest.param("a.csv", "", "names of the columns", id="empty csv"),
        pytest.param(
            "a.csv", "sep=;\nid;reply\n1;A;B\n", "line 3.*expected 2 cells", id="after sep="
        ),
        pytest.param("a.csv", "id,reply\n1,A,B\n", "line 2.*expected 2 cells", id="more cells"),
        pytest.param(
            "a.csv", 'id,reply\n1,"A\nB"\n2\n', "line 4.*expected 2 cells", id="after a line break"
        ),
        pytest.param("a.csv", "id,reply,reply\n1,A,B\n", "two columns.*'reply'", id="same column"),
        pytest.param("a.csv", 'id,reply\n1,"A\n', "no valid CSV", id="open quote"),
        pytest.param("a.xlsx", "no workbook", "Excel workbook", id="no workbook"),
        pytest.param("a.txt", "A", r"ends in \.jsonl", id="other kind"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=f"(?s){name}.*{message}"):
        read(path)


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    path = workbook(tmp_path / "a.xlsx", ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FormatError, match=r"soubench\[xlsx\]"):
        read(path)


def test_missing_file_and_other_encoding(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        read(tmp_path / "a.csv")
    path = tmp_path / "b.csv"
    path.write_bytes("id,reply\n1,é\n".encode("latin-1"))
    with pytest.raises(FormatError, match=r"0xe9.*UTF-8"):
        read(path)
