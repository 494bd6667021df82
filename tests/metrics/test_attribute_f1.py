"""What ``attribute_f1`` makes of the attributes that replies name."""

from pathlib import Path

import evaluate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soubench.metrics.attribute_f1.attribute_f1 import score
from soubench.metrics.attribute_f1.frequency import agreement, mean_agreement

FOLDER = str(Path(__file__).parents[2] / "metrics" / "attribute_f1")
KINDS = st.lists(st.sampled_from(["circle", "square", "ellipse", None]), max_size=6)


def shapes(*colors):
    return ", ".join(f"(Circle, color={color})" for color in colors)


CASES = [
    # min([2,1,0], [1,1,1]) = 2 right of 3 and 3: 2/3 each
    pytest.param(["a", "b", "c"], ["a", "a", "b"], (2 / 3, 2 / 3, 2 / 3), id="two of three"),
    # 1 right of 4 described, 1 true: P 1/4, R 1, F1 2 * 1/4 / (5/4) = 2/5
    pytest.param(["a"] * 4, ["a"], (0.25, 1.0, 0.4), id="repeated"),
    pytest.param([], ["a"], (0.0, 0.0, 0.0), id="nothing described"),
    pytest.param(["a"], [], (0.0, 0.0, 0.0), id="nothing true"),
    pytest.param([], [], (0.0, 0.0, 0.0), id="nothing at all"),
    # None is NA: 1 right of 1 described, 2 true; F1 2 / 3
    pytest.param(["a", None], ["a", "b"], (1.0, 0.5, 2 / 3), id="unread is not counted"),
]


@pytest.mark.parametrize(("predicted", "reference", "expected"), CASES)
def test_hand_computed(predicted, reference, expected):
    assert agreement(predicted, reference) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("predicted", "reference", "expected"),
    [
        pytest.param([], ["a"], (1.0, 0.0, 0.0), id="nothing described"),
        pytest.param(["a"], [], (0.0, 1.0, 0.0), id="nothing true"),
        pytest.param([], [], (1.0, 1.0, 1.0), id="nothing at all"),
    ],
)
def test_zero_division_fills_empty_divisors(predicted, reference, expected):
    assert agreement(predicted, reference, 1.0) == expected


def slow_agreement(predicted, reference):
    """Cross out equal values one by one."""
    left = [value for value in reference if value is not None]
    described = [value for value in predicted if value is not None]
    n_true, n_right = len(left), 0
    for value in described:
        if value in left:
            left.remove(value)
            n_right += 1
    p = n_right / len(described) if described else 0.0
    r = n_right / n_true if n_true else 0.0
    return p, r, 2 * p * r / (p + r) if p + r else 0.0


@given(KINDS, KINDS, st.randoms(use_true_random=False))
def test_equals_crossing_out_in_any_order(predicted, reference, rng):
    result = agreement(predicted, reference)
    assert result == pytest.approx(slow_agreement(predicted, reference))
    assert all(0 <= value <= 1 for value in result)
    back = agreement(reference, predicted)
    assert (back.precision, back.recall, back.f1) == (result.recall, result.precision, result.f1)
    rng.shuffle(predicted)
    assert agreement(predicted, reference) == result


def test_f1_is_averaged_over_pictures_not_made_of_the_averages():
    # P 1/2, R 1, F1 2/3 and 1, 1, 1: mean F1 5/6, of the mean P 3/4 and R 1 it would be 6/7
    mean = mean_agreement([agreement(["a", "b"], ["a"]), agreement(["a"], ["a"])])
    assert mean == pytest.approx((0.75, 1.0, 5 / 6))


def test_swapped_colors_are_not_noticed():
    result = score(
        ["(Circle, color=Red), (Square, color=Blue)"], ["(Circle, color=Blue), (Square, color=Red)"]
    )
    assert result["f1"]["color"] == result["f1"]["shape"] == 1.0


def test_pictures_are_averaged_whatever_the_number_of_their_shapes():
    # colors: 1 of 3 described and true, then 1 of 1: (1/3 + 1) / 2
    result = score(
        [shapes("Red", "Red", "Red"), shapes("Red")],
        [shapes("Red", "Blue", "Green"), shapes("Red")],
    )
    assert result["precision"]["color"] == pytest.approx(2 / 3)
    # kinds are all right; three attributes that nobody names are 0: (1/3 + 1) / 5 and 2 / 5
    assert result["f1_per_sample"] == pytest.approx([4 / 15, 2 / 5])
    assert result["f1_macro"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("prediction", "reference", "unparsed"),
    [
        pytest.param("no shape", shapes("Red"), 1, id="words"),
        pytest.param("", shapes("Red"), 1, id="empty reply"),
        pytest.param(f"<think>{shapes('Red')}", shapes("Red"), 1, id="unclosed thought"),
        pytest.param("", "", 0, id="both empty"),
        pytest.param("no shape", "", 1, id="words for nothing"),
        pytest.param(shapes("Red"), "", 0, id="described but not there"),
    ],
)
def test_replies_without_shapes_score_zero_and_are_counted(prediction, reference, unparsed):
    result = score([prediction], [reference])
    assert (result["f1_macro"], result["unparsed"]) == (0.0, unparsed)
    assert result["unparsed_rate"] == unparsed
    assert result["unparsed_per_sample"] == [bool(unparsed)]


def test_a_shape_that_is_called_it_is_counted_once():
    reply = "A red circle is located in the top left quadrant. It is located at (4, 5)."
    # one kind, one color, one quadrant of each side; two attributes that nobody names are 0
    assert score([reply], [reply])["f1_macro"] == pytest.approx(3 / 5)
    assert score([reply], [shapes("Red")])["precision"]["shape"] == 1.0


def test_through_evaluate_by_every_way_of_adding():
    predictions, references = [shapes("Red", "Blue"), "?"], [shapes("Red"), shapes("Blue")]
    kept = (list(predictions), list(references))
    metric = evaluate.load(FOLDER)
    at_once = metric.compute(predictions=predictions, references=references)
    for prediction, reference in zip(predictions, references, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert metric.compute() == at_once
    metric.add_batch(predictions=predictions, references=references)
    assert metric.compute() == at_once == score(predictions, references)
    assert (predictions, references) == kept
    ones = metric.compute(predictions=[""], references=[""], zero_division=1, format="tuple")
    assert ones["f1_macro"] == 1.0
    nothing = metric.compute(predictions=[], references=[])
    assert (nothing["f1_macro"], nothing["unparsed_rate"], nothing["n_samples"]) == (0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"predictions": [None], "references": [""]}, "row 0: predictions", id="None"),
        pytest.param({"predictions": {0: ""}, "references": [""]}, "expected a list", id="dict"),
        pytest.param({"predictions": [""], "references": ["x"]}, "row 0: references", id="words"),
        pytest.param(
            {"predictions": [""], "references": [""], "zero_division": float("nan")},
            "zero_division: expected a number of 0 to 1, got nan",
            id="zero_division",
        ),
        pytest.param(
            {"predictions": [""], "references": [""], "format": None},
            "format: expected",
            id="format",
        ),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate.load(FOLDER).compute(**arguments)
