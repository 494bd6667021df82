"""Targets of plant-leaves are read back exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soubench.builders.errors import FormatError
from soubench.builders.plants.targets import FORMATS, Center, in_order_of_reading, parse

centers = st.lists(st.builds(Center, st.integers(-99, 9999), st.integers(-99, 9999)), max_size=25)


@pytest.mark.parametrize("output_format", FORMATS)
@given(centers=centers)
def test_parse_inverts_both_formats(output_format, centers):
    assert parse(FORMATS[output_format](centers), output_format) == centers


@given(centers=centers)
def test_order_is_top_to_bottom_then_left_to_right(centers):
    ordered = in_order_of_reading(centers)
    assert sorted(ordered) == sorted(centers)
    assert [(c.y, c.x) for c in ordered] == sorted((c.y, c.x) for c in centers)


def test_the_template_is_the_same_for_one_leaf_and_names_no_place_for_none():
    one = [Center(3, 4)]
    assert FORMATS["sentence"](one) == "There are 1 leaves, centred at coordinates (3, 4)."
    assert FORMATS["tuple"](one) == "(leaves=1, centers=[(3, 4)])"
    assert FORMATS["sentence"]([]) == "There are 0 leaves."
    assert FORMATS["tuple"]([]) == "(leaves=0, centers=[])"


@pytest.mark.parametrize(
    ("text", "output_format"),
    [
        pytest.param("", "sentence", id="empty"),
        pytest.param("(leaves=1, centers=[(3, 4)])", "sentence", id="other format"),
        pytest.param("There are 2 leaves, centred at coordinates (3, 4).", "sentence", id="count"),
        pytest.param("(leaves=1, centers=[(3,4)])", "tuple", id="blank missing"),
        pytest.param("(leaves=1, centers=[(03, 4)])", "tuple", id="leading zero"),
        pytest.param("(leaves=1, centers=[(3, 4)]).", "tuple", id="more text"),
    ],
)
def test_anything_else_is_refused(text, output_format):
    with pytest.raises(FormatError, match="expected a target"):
        parse(text, output_format)
