"""What ``matched_rmse`` reads, matches and averages."""

import itertools
import math
from pathlib import Path

import evaluate
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soubench.metrics.matched_rmse.matched_rmse import score
from soubench.metrics.matched_rmse.point_text import read_points

FOLDER = str(Path(__file__).parents[2] / "metrics" / "matched_rmse")
THREE = [(10.0, 20.0), (30.0, 40.0), (5.0, 6.0)]
POINTS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=5)

READINGS = [
    pytest.param(
        "There are 3 leaves, centred at coordinates (10, 20), (30, 40), (5, 6).",
        (3, THREE),
        id="sentence",
    ),
    pytest.param("(leaves=3, centers=[(10, 20), (30, 40), (5, 6)])", (3, THREE), id="tuple"),
    pytest.param('{"leaves": 3, "centers": [[10, 20], [30, 40], [5, 6]]}', (3, THREE), id="JSON"),
    pytest.param("Leaf 1: (10, 20)\nLeaf 2: (30, 40)\nLeaf 3: (5, 6)", (3, THREE), id="list"),
    pytest.param("There is 1 leaf, centred at coordinates (1, 2).", (1, [(1, 2)]), id="one leaf"),
    pytest.param(
        "There are **2 green leaves**: (1.5, 2) and (x=3, y=4)", (2, [(1.5, 2), (3, 4)]), id="words"
    ),
    pytest.param("There are 4 leaves.", (4, []), id="count only"),
    pytest.param("(1, 2), (3, 4)", (2, [(1, 2), (3, 4)]), id="points only"),
    pytest.param("There are 7 leaves: (1, 2), (3,", (7, [(1, 2)]), id="cut off: the stated count"),
    pytest.param("There are 0 leaves.", (0, []), id="zero"),
    pytest.param("There are no leaves.", (0, []), id="no leaves"),
    pytest.param("Image 1 shows 5 leaves.", (5, []), id="the number before the leaves"),
    pytest.param("（leaves＝1，centers=[（1，2）]）", (1, [(1, 2)]), id="full width"),
    pytest.param("I count 2,500 leaves.", (2500, []), id="thousands"),
    pytest.param("leaves: 1,200.", (1200, []), id="thousands after the word"),
    pytest.param("12,34 leaves", None, id="no thousands"),
    pytest.param("-5 leaves", None, id="negative"),
    pytest.param("- 5 leaves", (5, []), id="bullet"),
    pytest.param("Not 6 leaves but 7 leaves.", (7, []), id="denied"),
    pytest.param("There aren't 6 leaves; I see 7 leaves.", (7, []), id="denied in short"),
    pytest.param("8 small, heart-shaped, dry leaves", (8, []), id="listed words"),
    pytest.param("", None, id="empty"),
    pytest.param("I cannot count them.", None, id="refusal"),
    pytest.param("[1, 2, 3, 4]", None, id="a box is no point"),
    pytest.param(f"{'9' * 30} leaves", None, id="absurd count"),
]


@pytest.mark.parametrize(("reply", "expected"), READINGS)
def test_reply_gives_these_points(reply, expected):
    assert read_points(reply) == expected


@pytest.mark.parametrize(
    "piece", ["(", "(1, ", "1 a ", "1 a, ", "1,000,", "no a a ", "leaves", "( ", "9"]
)
def test_a_megabyte_of_junk_is_read_in_linear_time(piece):
    """Quadratic work on it would take hours."""
    assert read_points(piece * (1_000_000 // len(piece))) is None


def brute_force(predicted, reference):
    short, long = sorted((predicted, reference), key=len)
    best = min(
        sum(
            math.sqrt(((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) / 2)
            for a, b in zip(short, chosen, strict=True)
        )
        for chosen in itertools.permutations(long, len(short))
    )
    return best / len(short)


@settings(deadline=None)
@given(POINTS, POINTS, st.randoms(use_true_random=False))
def test_matching_is_the_least_of_all_in_any_order(predicted, reference, rng):
    result = score([predicted], [reference])
    if predicted and reference:
        assert result["center_rmse"] == pytest.approx(brute_force(predicted, reference))
    else:
        assert result["center_rmse"] is None
    assert result["count_rmse"] == abs(len(predicted) - len(reference))
    assert score([reference], [predicted])["center_rmse"] == pytest.approx(result["center_rmse"])
    rng.shuffle(predicted)
    assert score([predicted], [reference])["center_rmse"] == pytest.approx(result["center_rmse"])
    same = score([reference], [reference])
    assert (same["count_rmse"], same["center_rmse"] or 0.0) == (0.0, 0.0)


def test_hand_computed():
    # Counts off by -1 and +2: sqrt((1 + 4) / 2). First picture: (5, 12) and (0, 0):
    # (sqrt(169 / 2) + 0) / 2; second 0: the mean of both pictures is sqrt(169 / 2) / 4.
    result = score(
        [[(15, 32), (50, 50)], [(1, 1), (9, 9), (8, 8)]],
        [[(50, 50), (10, 20), (99, 99)], [(1, 1)]],
    )
    assert result["count_rmse"] == pytest.approx(math.sqrt(2.5))
    assert result["center_rmse"] == pytest.approx(math.sqrt(169 / 2) / 4)
    assert result["center_distance"] == pytest.approx(13 / 4)
    assert result["per_sample"] == [pytest.approx(math.sqrt(169 / 2) / 2), 0.0]
    assert result["count_errors"] == [-1, 2]
    assert (result["n_pairs"], result["n_rmse_samples"], result["n_samples"]) == (3, 2, 2)


def test_unparsed_replies_count_nothing_and_are_reported():
    result = score(["No idea.", "<think>(1, 2)"], [[(1, 2), (3, 4)], [(1, 2)]])
    # off by -2 and -1: sqrt((4 + 1) / 2)
    assert result["count_rmse"] == pytest.approx(math.sqrt(2.5))
    assert (result["center_rmse"], result["unparsed"], result["unparsed_rate"]) == (None, 2, 1.0)
    mixed = score(["No idea.", "There are 0 leaves."], [[(1, 2)], [(1, 2)]])
    assert mixed["unparsed_per_sample"] == [True, False]


def as_sentence(points):
    listed = ", ".join(f"({x}, {y})" for x, y in points)
    return f"There are {len(points)} leaves, centred at coordinates {listed}."


def as_tuple(points):
    return f"(leaves={len(points)}, centers=[{', '.join(f'({x}, {y})' for x, y in points)}])"


@pytest.mark.parametrize("write_prediction", [list, as_sentence, as_tuple, np.array])
@pytest.mark.parametrize("write_reference", [list, as_sentence, as_tuple])
def test_points_and_texts_score_the_same_by_every_way_of_adding(write_prediction, write_reference):
    predictions = [write_prediction([(1, 2), (30, 40)]), write_prediction([(5, 5)])]
    references = [write_reference([(33, 44)]), write_reference([(5, 5), (7, 7)])]
    metric = evaluate.load(FOLDER)
    at_once = metric.compute(predictions=predictions, references=references)
    # the second point is nearer: off by (3, 4)
    assert at_once["per_sample"] == [pytest.approx(5 / math.sqrt(2)), 0.0]
    for prediction, reference in zip(predictions, references, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert metric.compute() == at_once
    for i in range(2):
        metric.add_batch(predictions=predictions[i : i + 1], references=references[i : i + 1])
    assert metric.compute() == at_once


def test_pictures_without_points_may_come_first():
    result = evaluate.load(FOLDER).compute(predictions=[[], [(1, 2)]], references=[[(1, 2)], []])
    assert (result["count_rmse"], result["center_rmse"], result["unparsed"]) == (1.0, None, 0)


def test_no_rows_give_the_documented_values():
    result = evaluate.load(FOLDER).compute(predictions=[], references=[])
    assert (result["count_rmse"], result["center_rmse"], result["unparsed_rate"]) == (None, None, 0)


@pytest.mark.parametrize("keep_in_memory", [False, True])
@pytest.mark.parametrize("row", [[(1, 2)], "(1, 2)"])
@pytest.mark.parametrize("empty", [{0}, {1}, {2}, {0, 1, 2}])
def test_empty_batches_settle_nothing_wherever_they_come(row, empty, keep_in_memory):
    metric = evaluate.load(FOLDER, keep_in_memory=keep_in_memory)
    for _ in range(2):
        for i in range(3):
            if i in empty:
                metric.add_batch(predictions=[], references=[])
            else:
                metric.add_batch(predictions=[row], references=[[(1, 2)]])
        assert metric.compute()["n_samples"] == 3 - len(empty)
    metric.add_batch(predictions=[], references=[])
    metric.add(prediction=row, reference=row)
    assert metric.compute(predictions=[], references=[])["n_samples"] == 1


def test_inputs_are_not_changed():
    predictions, references = [[(1, 2)], []], np.array([[[1, 2]], [[3, 4]]])
    evaluate.load(FOLDER).compute(predictions=predictions, references=references)
    assert predictions == [[(1, 2)], []]
    assert references.tolist() == [[[1, 2]], [[3, 4]]]


ONE = [(1, 2)]


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        pytest.param([None], [ONE], "row 0: predictions: expected a list of points", id="None"),
        pytest.param([ONE, "a"], [ONE, ONE], "row 1: predictions: .* as in the rows", id="mixed"),
        pytest.param(["a", ONE], [ONE, ONE], "row 1: predictions: expected a text", id="mixed too"),
        pytest.param([[1, 2]], [ONE], "row 0: predictions: point 0: .* got 1", id="bare point"),
        pytest.param([[(1, 2, 3)]], [ONE], "two finite numbers", id="three numbers"),
        pytest.param([[*ONE, (1,)]], [ONE], "point 1: .*got \\(1,\\)", id="ragged"),
        pytest.param([[(1, math.nan)]], [ONE], "two finite numbers", id="NaN"),
        pytest.param([[("1", "2")]], [ONE], "two finite numbers", id="texts for numbers"),
        pytest.param([{"x": 1}], [ONE], "expected a list of points", id="dict"),
        pytest.param([ONE], ["?"], "row 0: references: expected a count", id="reference text"),
        pytest.param([ONE], [ONE, ONE], "row 1 is the first", id="length"),
        pytest.param("(1, 2)", [ONE], "expected a list with one entry", id="bare text"),
    ],
)
def test_bad_input_is_named(predictions, references, message):
    with pytest.raises(ValueError, match=message):
        evaluate.load(FOLDER).compute(predictions=predictions, references=references)


def test_a_column_does_not_change_its_kind_between_calls():
    metric = evaluate.load(FOLDER)
    metric.add(prediction="(1, 2)", reference=ONE)
    with pytest.raises(ValueError, match="row 1: predictions: expected a text, as in the rows"):
        metric.add(prediction=ONE, reference=ONE)
    metric.add(prediction="(1, 2)", reference=ONE)
    assert metric.compute()["center_rmse"] == 0.0
    assert metric.compute(predictions=[ONE], references=["(1, 2)"])["count_rmse"] == 0.0
