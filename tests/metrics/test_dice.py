"""Every form of a mask that ``dice`` and ``mask_iou`` read, and the Dice coefficient of them."""

import copy
import json
import pathlib
import random

import evaluate
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from PIL import Image
from pycocotools import mask as coco

from soubench.metrics.dice.dice import read_pairs, score
from soubench.metrics.dice.masks import NotAMask, overlap, read_mask
from tests.light import run_at_once

# pycocotools' ``decode``, an oracle here, knows NumPy 1 only.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

FOLDER = str(pathlib.Path(__file__).parents[2] / "metrics" / "dice")
SQUARE = np.zeros((6, 8), dtype=np.uint8)
SQUARE[1:4, 2:6] = 1  # 12 pixels
SHIFTED = np.zeros((6, 8), dtype=np.uint8)
SHIFTED[2:5, 3:7] = 1  # 12 pixels, 2 x 3 = 6 shared with SQUARE
OUTLINE = [2, 1, 6, 1, 6, 4, 2, 4]  # SQUARE as a polygon


def rle(array):
    encoded = coco.encode(np.asfortranarray(array, dtype=np.uint8))
    return {"size": list(array.shape), "counts": encoded["counts"].decode("ascii")}


def runs_of(array):
    """Run lengths by the definition: column by column, background first."""
    pixels = np.asarray(array, dtype=bool).flatten(order="F")
    runs, value = [], False
    while pixels.size:
        other = np.flatnonzero(pixels != value)
        length = int(other[0]) if other.size else pixels.size
        runs.append(length)
        pixels, value = pixels[length:], not value
    return runs


def png(array, path, mode):
    picture = Image.fromarray(array.astype(np.uint8) * (255 if mode == "1" else 7))
    if mode == "P":
        picture.putpalette([200, 0, 0] * 256)
    elif mode == "I;16":
        picture = Image.fromarray(array.astype(np.uint16) * 900)
    elif mode == "1":
        picture = picture.convert("1")
    assert picture.mode == mode
    picture.save(path)
    return path


FORMS = {
    "rle_text": lambda array, path: rle(array),
    "rle_bytes": lambda array, path: coco.encode(np.asfortranarray(array)),
    "rle_list": lambda array, path: {"size": array.shape, "counts": runs_of(array)},
    "rle_array": lambda array, path: {
        "size": np.array(array.shape),
        "counts": np.array(runs_of(array)),
    },
    "rle_json": lambda array, path: json.dumps(rle(array)),
    "rle_list_json": lambda array, path: json.dumps(
        {"size": array.shape, "counts": runs_of(array)}
    ),
    "fenced_json": lambda array, path: f"```json\n{json.dumps(rle(array))}\n```",
    "bool_array": lambda array, path: array.astype(bool),
    "array_0_1": lambda array, path: array,
    "array_0_255": lambda array, path: array * 255,
    "float_array": lambda array, path: array.astype(np.float32),
    "nested_list": lambda array, path: array.tolist(),
    "nested_list_json": lambda array, path: json.dumps(array.tolist()),
    "pil": lambda array, path: Image.fromarray(array),
    "png_text": lambda array, path: str(png(array, path, "L")),
    "png_path": lambda array, path: png(array, path, "L"),
    "png_bilevel": lambda array, path: png(array, path, "1"),
    "png_palette": lambda array, path: png(array, path, "P"),
    "png_16_bit": lambda array, path: png(array, path, "I;16"),
    "polygons": lambda array, path: {"size": [6, 8], "polygons": [OUTLINE]},
    "polygons_json": lambda array, path: json.dumps({"size": [6, 8], "polygons": [OUTLINE]}),
    "polygon_array": lambda array, path: {"size": [6, 8], "polygons": [np.array(OUTLINE)]},
}
PIXEL_FORMS = [name for name in FORMS if "polygon" not in name]

masks = npst.arrays(
    np.uint8, npst.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(0, 1)
)


@st.composite
def mask_pairs(draw):
    first = draw(masks)
    return first, draw(npst.arrays(np.uint8, first.shape, elements=st.integers(0, 1)))


def dice_of(prediction, reference):
    """The definition, on pixels."""
    total = int(prediction.sum()) + int(reference.sum())
    return 2 * int((prediction & reference).sum()) / total if total else 1.0


def scored(predictions, references):
    return score(read_pairs(predictions, references))


@pytest.fixture(scope="module")
def metric():
    return evaluate.load(FOLDER)


@pytest.fixture(scope="module")
def png_path(tmp_path_factory):
    return tmp_path_factory.mktemp("masks") / "mask.png"


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_through_compute_add_and_add_batch(metric, form, tmp_path):
    prediction = FORMS[form](SQUARE, tmp_path / "p.png")
    by_compute = metric.compute(predictions=[prediction], references=[SHIFTED])
    assert by_compute["dice"] == 0.5  # 2 * 6 / (12 + 12)
    assert by_compute["unparsed"] == []
    metric.add(prediction=SHIFTED, reference=prediction)
    assert metric.compute() == by_compute
    metric.add_batch(predictions=[prediction], references=[SHIFTED])
    assert metric.compute() == by_compute


@settings(max_examples=60)
@given(array=masks)
def test_forms_of_one_mask_are_read_as_equal(array, png_path):
    read = {read_mask(FORMS[form](array, png_path)) for form in PIXEL_FORMS}
    assert len(read) == 1
    (mask,) = read
    assert mask.n_px == array.sum()
    assert np.array_equal(coco.decode({"size": mask.size_hw, "counts": mask.counts}), array)


@given(
    sides=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    data=st.data(),
)
def test_polygon_with_whole_corners_fills_the_rectangle(sides, data):
    height, width = sides
    y0, y1 = sorted(data.draw(st.tuples(st.integers(0, height), st.integers(0, height))))
    x0, x1 = sorted(data.draw(st.tuples(st.integers(0, width), st.integers(0, width))))
    array = np.zeros(sides, dtype=np.uint8)
    array[y0:y1, x0:x1] = 1
    ring = [x0, y0, x1, y0, x1, y1, x0, y1]
    assert read_mask({"size": sides, "polygons": [ring]}) == read_mask(array)
    assert read_mask({"polygons": [ring, ring]}, sides) == read_mask(array)


@given(
    rings=st.lists(
        st.lists(
            st.tuples(st.floats(-15, 30, width=32), st.floats(-12, 24, width=32)),
            min_size=3,
            max_size=6,
        ),
        max_size=3,
    )
)
def test_polygons_outside_the_picture_give_whole_masks(rings):
    flat = [[side for point in ring for side in point] for ring in rings]
    mask = read_mask({"size": [12, 15], "polygons": flat})
    kept = read_mask({"size": [12, 15], "counts": mask.counts})
    assert kept == mask


@given(runs=st.lists(st.integers(0, 4), min_size=1, max_size=30).filter(any), text=st.booleans())
def test_runs_of_length_zero_are_joined(runs, text):
    """pycocotools keeps them, and its ``merge`` then stops too early."""
    pixels = np.repeat(np.arange(len(runs)) % 2, runs).astype(np.uint8)
    array = pixels.reshape(1, -1)
    value = {"size": [1, pixels.size], "counts": runs}
    if text:
        value = coco.frPyObjects(value, 1, pixels.size)
    mask = read_mask(value)
    assert mask == read_mask(array)
    assert overlap(mask, mask).intersection == pixels.sum()


def test_pycocotools_still_stops_at_runs_of_length_zero():
    """If this fails, joining them is no longer needed."""
    both = [
        coco.frPyObjects({"size": [3, 3], "counts": counts}, 3, 3)
        for counts in ([3, 0, 0, 2, 4], [3, 0, 0, 6])
    ]
    assert coco.area(coco.merge(both, intersect=True)) == 0  # 2 pixels are shared


@given(runs=st.lists(st.integers(1, 2**26), min_size=1, max_size=12), starts_empty=st.booleans())
def test_long_runs_are_read(runs, starts_empty):
    runs = [0, *runs] if starts_empty else runs
    width = sum(runs)
    mask = read_mask(coco.frPyObjects({"size": [1, width], "counts": runs}, 1, width))
    assert mask.n_px == sum(runs[1::2])
    assert mask == read_mask({"size": [1, width], "counts": runs})


NO_MASKS = [
    pytest.param("", "neither JSON", id="empty_reply"),
    pytest.param("I cannot see a ship.", "neither JSON", id="prose"),
    pytest.param("{", "cannot be read", id="cut_json"),
    pytest.param("[" * 50_000, "cannot be read", id="deep_json"),
    pytest.param("[1, 2", "cannot be read", id="cut_list"),
    pytest.param("missing.png", "no file", id="missing_file"),
    pytest.param(pathlib.Path("missing"), "no file", id="missing_path"),
    pytest.param("a\0b.png", "file", id="nul_in_path"),
    pytest.param("x" * 5_000 + ".png", "file", id="endless_path"),
    pytest.param({}, "'counts' or 'polygons'", id="no_keys"),
    pytest.param({"size": [6, 8], "mask": 1}, "'counts' or 'polygons'", id="other_keys"),
    pytest.param({"size": [6], "counts": [48]}, "'size'", id="one_side"),
    pytest.param({"size": "68", "counts": [48]}, "'size'", id="size_as_text"),
    pytest.param({"size": [6.0, 8.0], "counts": [48]}, "'size'", id="size_as_float"),
    pytest.param({"size": [-6, -8], "counts": [48]}, "'size'", id="negative_size"),
    pytest.param({"size": [0, 8], "counts": [0]}, "'size'", id="zero_size"),
    pytest.param({"size": [2**20, 2**20], "counts": [2**40]}, "'size'", id="over_32_bits"),
    pytest.param({"size": [6, 8], "counts": [40, 7]}, "add up to 6 x 8 = 48, got 47", id="short"),
    pytest.param({"size": [6, 8], "counts": [40, 9]}, "add up", id="too_long"),
    pytest.param({"size": [6, 8], "counts": [50, -2]}, "add up", id="negative_run"),
    pytest.param({"size": [6, 8], "counts": [2**62, 2**62, 2**62, 2**62, 48]}, "add up", id="wrap"),
    pytest.param({"size": [6, 8], "counts": [10**30]}, "whole numbers", id="huge_run"),
    pytest.param({"size": [6, 8], "counts": [48.0]}, "whole numbers", id="float_run"),
    pytest.param({"size": [6, 8], "counts": [float("nan")]}, "whole numbers", id="nan_run"),
    pytest.param({"size": [6, 8], "counts": [[48]]}, "whole numbers", id="nested_runs"),
    pytest.param({"size": [6, 8], "counts": []}, "whole numbers", id="no_runs"),
    pytest.param({"size": [6, 8], "counts": None}, "whole numbers", id="null_runs"),
    pytest.param({"size": [6, 8], "counts": ""}, "compressed form", id="empty_counts"),
    pytest.param({"size": [6, 8], "counts": b"\xff"}, "compressed form", id="high_byte"),
    pytest.param({"size": [6, 8], "counts": "é1"}, "compressed form", id="not_ascii"),
    pytest.param({"size": [6, 8], "counts": "`"}, "compressed form", id="cut_number"),
    pytest.param({"size": [6, 8], "counts": "o" * 9 + "0"}, "characters", id="long_number"),
    pytest.param({"size": [6, 8], "counts": "05"}, "add up", id="text_too_short"),
    pytest.param({"size": [6, 8], "polygons": [[1, 1, 4, 4]]}, "3 points", id="two_points"),
    pytest.param({"size": [6, 8], "polygons": [[1, 1, 4, 4, 2, 3, 5]]}, "3 points", id="odd"),
    pytest.param({"size": [6, 8], "polygons": [1, 1, 4, 4, 2, 3]}, "flat list", id="bare_ring"),
    pytest.param({"size": [6, 8], "polygons": None}, "flat lists", id="null_polygons"),
    pytest.param({"size": [6, 8], "polygons": [list("112233")]}, "flat list", id="text_points"),
    pytest.param({"size": [6, 8], "polygons": [[0, 0, 5, 0, 10**9, 5]]}, "outside", id="far_away"),
    pytest.param(
        {"size": [6, 8], "polygons": [[0, 0, 5, 0, float("nan"), 5]]}, "outside", id="nan_point"
    ),
    pytest.param([], "2 dimensions", id="empty_list"),
    pytest.param([0, 1, 1], "2 dimensions", id="flat_list"),
    pytest.param([[0, 1], [1]], "no array", id="ragged"),
    pytest.param([["0", "1"]], "2 dimensions", id="texts"),
    pytest.param([[None, 1]], "2 dimensions", id="none_inside"),
    pytest.param(np.zeros((0, 8)), "2 dimensions", id="no_pixels"),
    pytest.param(np.zeros((6, 8, 3)), "2 dimensions", id="colors"),
    pytest.param(np.full((6, 8), np.nan), "NaN", id="nan_pixels"),
    pytest.param(np.full((6, 8), np.inf), "NaN, infinity", id="infinite_pixels"),
    pytest.param(np.full((6, 8), 0.3), "threshold", id="probabilities"),
    pytest.param(np.full((6, 8), -1), "below 0", id="negative_pixels"),
]


@pytest.mark.parametrize(("value", "reason"), NO_MASKS)
def test_prediction_that_is_no_mask_counts_as_wrong_and_reference_is_an_error(
    metric, value, reason
):
    result = metric.compute(predictions=[SQUARE, value], references=[SQUARE, SQUARE])
    assert result["dice"] == 0.5  # (1 + 0) / 2
    assert result["dice_pooled"] == 2 * 12 / (12 + 24)
    assert result["unparsed_rate"] == 0.5
    assert [entry["row"] for entry in result["unparsed"]] == [1]
    assert reason in result["unparsed"][0]["reason"]
    with pytest.raises(ValueError, match=r"^row 1: references: ") as raised:
        metric.compute(predictions=[SQUARE, SQUARE], references=[SQUARE, value])
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    "value",
    [None, float("nan"), np.float64("nan"), 3, True, b"x", object(), {1, 2}],
    ids=["none", "nan", "numpy_nan", "int", "bool", "bytes", "object", "set"],
)
def test_entry_of_another_type_is_an_error_that_names_the_row(metric, value):
    with pytest.raises(ValueError, match=r"^row 1: predictions: expected a mask .* got "):
        metric.compute(predictions=[SQUARE, value], references=[SQUARE, SQUARE])
    with pytest.raises(ValueError, match=r"^row 0: references: expected a mask "):
        metric.add(prediction=SQUARE, reference=value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param(
            {"predictions": [SQUARE] * 3, "references": [SQUARE]}, "row 1 is the first", id="short"
        ),
        pytest.param(
            {"predictions": [SQUARE], "references": None}, "references: expected", id="no"
        ),
        pytest.param({"predictions": "a.png", "references": "a.png"}, "expected a list", id="text"),
        pytest.param({"predictions": {}, "references": {}}, "expected a list", id="bare_mask"),
        pytest.param({"predictions": 1, "references": 1}, "expected a list", id="number"),
    ],
)
def test_columns_that_are_no_lists_of_one_length_are_errors(metric, columns, message):
    with pytest.raises(ValueError, match=message):
        metric.compute(**columns)


@pytest.mark.parametrize("broken", [b"", b"no picture", "cut"], ids=["empty", "text", "cut"])
def test_broken_png_is_no_mask(broken, tmp_path):
    path = png(np.kron(SQUARE, np.ones((20, 20), dtype=np.uint8)), tmp_path / "m.png", "L")
    path.write_bytes(path.read_bytes()[:60] if broken == "cut" else broken)
    with pytest.raises(NotAMask, match="cannot be read as a PNG"):
        read_mask(path)


def test_picture_with_colors_is_no_mask(tmp_path):
    Image.new("RGB", (8, 6)).save(tmp_path / "m.png")
    with pytest.raises(NotAMask, match="mode RGB"):
        read_mask(tmp_path / "m.png")


def test_jpeg_is_no_mask(tmp_path):
    Image.fromarray(SQUARE).save(tmp_path / "m.jpg")
    (tmp_path / "m.jpg").rename(tmp_path / "m.png")
    with pytest.raises(NotAMask, match="cannot be read as a PNG"):
        read_mask(tmp_path / "m.png")


@pytest.mark.parametrize("form", ["rle_text", "rle_list", "nested_list", "png_text", "polygons"])
def test_prediction_of_another_size_is_unparsed(form, tmp_path):
    other = np.zeros((7, 8), dtype=np.uint8)
    prediction = FORMS[form](SQUARE, tmp_path / "m.png")
    result = scored([prediction], [other])
    assert "6 high and 8 wide, expected 7 high" in result["unparsed"][0]["reason"]
    assert result["dice"] == 0.0


def test_prediction_takes_the_size_of_its_reference():
    result = scored(
        [{"polygons": [OUTLINE]}, {"counts": runs_of(SQUARE)}, '{"polygons": []}'], [SQUARE] * 3
    )
    assert result["dices"] == [1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="row 0: references: expected 'size'"):
        read_pairs([SQUARE], [{"polygons": [OUTLINE]}])


@given(counts=st.one_of(st.text(max_size=20), st.binary(max_size=20), st.lists(st.integers())))
def test_no_counts_break_the_reader(counts):
    try:
        mask = read_mask({"size": [5, 7], "counts": counts})
    except NotAMask:
        return
    assert coco.decode({"size": [5, 7], "counts": mask.counts}).sum() == mask.n_px


@given(reply=st.text(alphabet='[]{}":, 0123sizecountpolyg.`\n\ud800é', max_size=40))
def test_no_reply_breaks_the_metric(reply):
    result = scored([reply], [SQUARE])
    assert 0.0 <= result["dice"] <= 1.0


@given(pair=mask_pairs())
def test_dice_equals_brute_force_on_pixels(pair):
    prediction, reference = pair
    result = scored([rle(prediction)], [rle(reference)])
    assert result["dice"] == result["dice_pooled"] == dice_of(prediction, reference)


@given(pair=mask_pairs())
def test_dice_is_symmetric_and_one_only_for_equal_masks(pair):
    forth = scored([pair[0]], [pair[1]])
    back = scored([pair[1]], [pair[0]])
    assert forth["dices"] == back["dices"]
    assert forth["n_only_prediction_empty"] == back["n_only_reference_empty"]
    assert 0.0 <= forth["dice"] <= 1.0
    assert (forth["dice"] == 1.0) == np.array_equal(*pair)


@given(pair=mask_pairs(), factor=st.integers(2, 4))
def test_scaling_and_turning_both_masks_changes_nothing(pair, factor):
    block = np.ones((factor, factor), dtype=np.uint8)
    expected = scored([pair[0]], [pair[1]])
    assert scored([np.kron(pair[0], block)], [np.kron(pair[1], block)]) == expected
    assert scored([pair[0].T], [pair[1].T]) == expected


@given(pair=mask_pairs())
def test_complements_share_what_neither_mask_holds(pair):
    counts = overlap(read_mask(pair[0]), read_mask(pair[1]))
    opposite = overlap(read_mask(1 - pair[0]), read_mask(1 - pair[1]))
    assert opposite.intersection == pair[0].size - counts.union


@given(pairs=st.lists(mask_pairs(), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_order_of_rows_changes_no_number(pairs, seed):
    shuffled = random.Random(seed).sample(pairs, len(pairs))
    first, second = (scored(*zip(*rows, strict=True)) for rows in (pairs, shuffled))
    assert sorted(first.pop("dices")) == sorted(second.pop("dices"))
    assert first == second


def test_four_conventions_on_four_pictures():
    """Half right, both empty, only predicted, missed: the numbers of the card."""
    empty = [[0, 0], [0, 0]]
    result = scored(
        [[[1, 1], [0, 0]], empty, [[1, 0], [0, 0]], empty],
        [[[1, 0], [0, 0]], empty, empty, [[1, 0], [0, 0]]],
    )
    # (2/3 + 1 + 0 + 0) / 4; MONAI 1.6.1 DiceMetric(ignore_empty=False) gives 0.4167,
    # its default, which leaves rows two and three out, 0.3333.
    assert result["dice"] == pytest.approx(0.4166667)
    assert (result["dices"][0] + result["dices"][3]) / 2 == pytest.approx(0.3333333)
    # 2 * 1 / (3 + 2); torchmetrics 1.9.0 DiceScore(aggregation_level="global") gives 0.4000.
    assert result["dice_pooled"] == pytest.approx(0.4)
    assert [result[key] for key in result if key.startswith("n_")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("predictions", "dice", "pooled"),
    [
        pytest.param([], 0.0, 0.0, id="no_rows"),
        pytest.param([np.zeros((2, 2))], 1.0, 1.0, id="both_empty"),
        pytest.param([""], 0.0, 0.0, id="unparsed_on_empty"),
        pytest.param([np.zeros((2, 2)), ""], 0.5, 0.0, id="one_of_two_unparsed"),
    ],
)
def test_references_without_a_pixel(metric, predictions, dice, pooled):
    references = [np.zeros((2, 2))] * len(predictions)
    result = metric.compute(predictions=predictions, references=references)
    assert (result["dice"], result["dice_pooled"]) == (dice, pooled)
    assert result["n_both_empty"] == len(predictions) - len(result["unparsed"])


def test_inputs_stay_as_they_are(metric):
    values = [rle(SQUARE), SQUARE.copy(), {"size": [6, 8], "polygons": [list(OUTLINE)]}]
    before = copy.deepcopy(values)
    metric.compute(predictions=values, references=values)
    assert values[0] == before[0]
    assert np.array_equal(values[1], before[1])
    assert values[2] == before[2]


def test_any_way_of_adding_gives_the_same(metric):
    predictions, references = [SQUARE, SHIFTED, "no"], [rle(SHIFTED), SHIFTED, SQUARE]
    expected = metric.compute(predictions=predictions, references=references)
    for prediction, reference in zip(predictions, references, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert metric.compute() == expected
    metric.add_batch(predictions=predictions[:2], references=references[:2])
    metric.add(prediction=predictions[2], reference=references[2])
    assert metric.compute() == expected
    metric.add_batch(predictions=predictions[:1], references=references[:1])
    assert metric.compute(predictions=predictions[1:], references=references[1:]) == expected


def test_row_numbers_run_on_over_batches_and_a_failed_batch_adds_nothing(metric):
    metric.add_batch(predictions=[SQUARE, ""], references=[SQUARE, SQUARE])
    with pytest.raises(ValueError, match=r"^row 3: references: "):
        metric.add_batch(predictions=[SQUARE, SQUARE], references=[SQUARE, ""])
    metric.add(prediction="", reference=SQUARE)
    result = metric.compute()
    assert result["n"] == 3
    assert [entry["row"] for entry in result["unparsed"]] == [1, 2]


def test_a_thought_before_the_mask_is_cut_off(metric):
    answer = json.dumps({"size": [1, 4], "counts": [0, 2, 2]})
    result = metric.compute(
        predictions=[
            f'<think>Maybe {{"polygons": []}}?</think>\n{answer}',
            f"◁think▷left half◁/think▷```json\n{answer}\n```",
            f"the left half</think>{answer}",
            f"<think>{answer}",
        ],
        references=[[[1, 1, 0, 0]]] * 4,
    )
    assert result["dices"] == [1.0, 1.0, 1.0, 0.0]
    assert [entry["row"] for entry in result["unparsed"]] == [3]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"size": [1, 4], "counts": [True, True, 2]}, id="runs"),
        pytest.param({"size": [1, 4], "counts": [np.True_, 1, 2]}, id="NumPy runs"),
        pytest.param('{"size": [1, 4], "counts": [true, 1, 2]}', id="runs in JSON"),
        pytest.param({"size": [True, 4], "counts": [1, 1, 2]}, id="size"),
        pytest.param({"size": [1, 4], "polygons": [[True, 0, 2, 0, 2, 1]]}, id="polygon"),
    ],
)
def test_true_is_no_number(value):
    with pytest.raises(NotAMask, match="expected"):
        read_mask(value)


def test_in_memory_gives_the_same(metric):
    in_memory = evaluate.load(FOLDER, keep_in_memory=True)
    columns = {"predictions": [rle(SQUARE)], "references": [SHIFTED]}
    assert in_memory.compute(**columns) == metric.compute(**columns)


def test_larger_mask_than_one_run_of_text_survives_storage(metric):
    noise = np.random.default_rng(0).integers(0, 2, (300, 301), dtype=np.uint8)
    result = metric.compute(predictions=[rle(noise)] * 3, references=[1 - noise, noise, noise])
    assert result["dices"] == [0.0, 1.0, 1.0]


def test_two_processes_compute_at_once(tmp_path):
    program = (
        f"masks = [{rle(SQUARE)!r}] * 40\n"
        f"result = evaluate.load({FOLDER!r}).compute(predictions=masks, references=masks)\n"
        "print(result['n'], result['dice'])"
    )
    assert [text.split() for text in run_at_once(program, tmp_path)] == [["40", "1.0"]] * 2
