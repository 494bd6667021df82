"""Both JSON parsers read the same, and a refusal says where."""

import json
import math
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soubench.builders.errors import FormatError
from soubench.builders.sources._values import read_json, to_numbers


class Item(TypedDict, total=False):
    id: Any
    name: Any


class Document(TypedDict, total=False):
    items: list[Item]


KEEP = frozenset({"items", "id", "name"})
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


def _same(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(["id", "name", "other"]), _VALUE), max_size=3))
def test_document_is_what_the_standard_library_reads(tmp_path: Path, items: list[dict]) -> None:
    path = tmp_path / "x.json"
    text = json.dumps({"items": items, "more": items})
    path.write_text(text, encoding="utf-8")
    document = read_json(path, Document, KEEP)
    assert isinstance(document, dict)
    expected = json.loads(text)["items"]
    assert list(document) == ["items"]
    for found, item in zip(document["items"], expected, strict=True):
        wanted = {key: value for key, value in item.items() if key != "other"}
        assert found.keys() == wanted.keys()
        assert all(_same(found[key], wanted[key]) for key in wanted)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"items": [{"id": NaN}]}', id="nan"),
        pytest.param('{"items": [{"id": 1e999}]}', id="beyond-all-floats"),
        pytest.param('{"items": [{"id": "\\ud800"}]}', id="half-a-character"),
        pytest.param('{"items": [5, {"id": 1}]}', id="other-shape"),
        pytest.param('{"items": {"id": 1}}', id="no-list"),
        pytest.param('[{"id": 1}]', id="bare-list"),
    ],
)
def test_what_the_fast_parser_refuses_is_read_by_the_other(tmp_path: Path, text: str) -> None:
    with pytest.raises(msgspec.MsgspecError):
        msgspec.json.decode(text, type=Document)
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    assert repr(read_json(path, Document, KEEP)) == repr(json.loads(text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b'{"items": [{"id": 1}, {"i', "byte 23 of 25", id="cut-off"),
        pytest.param(b'{"items": []} x', "byte 14 of 15", id="more-behind-it"),
        pytest.param(b'{"more": "\xff", "items": []}', "0xff at offset 10", id="skipped-not-utf-8"),
    ],
)
def test_refusal_says_the_byte(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_json(path, Document, KEEP)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, 2.5], (1.0, 2.5)),
        ([], ()),
        (["3", 4], (3.0, 4.0)),
        ([10**400, 1], (math.inf, 1.0)),
        ([True, 1], None),
        ([1, None], None),
        ("12", None),
    ],
)
def test_lists_of_numbers(value: object, expected: tuple[float, ...] | None) -> None:
    found = to_numbers(value)
    assert found == expected
    assert found is None or {type(number) for number in found} <= {float}
