"""The means of ``mask_iou``, its classes and label maps; forms of masks are in test_dice.py."""

import copy
import json
import pathlib
import random

import evaluate
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from PIL import Image
from pycocotools import mask as coco

from soubench.metrics.mask_iou.mask_iou import read_rows, score

METRICS = pathlib.Path(__file__).parents[2] / "metrics"
FOLDER = str(METRICS / "mask_iou")
EMPTY = np.zeros((2, 3), dtype=np.uint8)
FULL = np.ones((2, 3), dtype=np.uint8)
LEFT = np.array([[1, 0, 0], [1, 0, 0]], dtype=np.uint8)
TOP = np.array([[1, 1, 1], [0, 0, 0]], dtype=np.uint8)
# Two predicted and two reference label maps, values 0 to 3.
MAPS = (
    [np.array([[0, 1, 1], [2, 2, 1]]), np.array([[0, 0, 1], [2, 3, 3]])],
    [np.array([[0, 1, 1], [2, 2, 2]]), np.array([[0, 1, 1], [2, 2, 0]])],
)
N_CLASSES = 4


@st.composite
def label_maps(draw):
    """Some pictures: predicted and reference label maps of one size each, values 0 to 3."""
    pairs = []
    for _ in range(draw(st.integers(1, 4))):
        shape = draw(npst.array_shapes(min_dims=2, max_dims=2, max_side=6))
        maps = npst.arrays(np.int64, shape, elements=st.integers(0, N_CLASSES - 1))
        pairs.append((draw(maps), draw(maps)))
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def scored(predictions, references, classes=None):
    return score(read_rows(predictions, references, classes))


def rle(array):
    encoded = coco.encode(np.asfortranarray(array, dtype=np.uint8))
    return {"size": list(array.shape), "counts": encoded["counts"].decode("ascii")}


def confusion(predictions, references):
    """Count pixels by (reference, prediction), the usual way on pixels."""
    joined = sum(
        np.bincount((N_CLASSES * reference + prediction).ravel(), minlength=N_CLASSES**2)
        for prediction, reference in zip(predictions, references, strict=True)
    )
    return joined.reshape(N_CLASSES, N_CLASSES)


def ious_of(matrix):
    """Eq. 10's fraction TP / (TP + FP + FN) per class, nan for an absent one."""
    hits = np.diag(matrix).astype(float)
    union = matrix.sum(axis=0) + matrix.sum(axis=1) - hits
    return np.divide(hits, union, out=np.full(N_CLASSES, np.nan), where=union > 0)


@pytest.fixture(scope="module")
def metric():
    return evaluate.load(FOLDER)


def test_helper_is_the_one_of_dice():
    link = METRICS / "mask_iou" / "masks.py"
    assert link.read_bytes() == (METRICS / "dice" / "masks.py").read_bytes()


@pytest.mark.parametrize(
    ("predictions", "references", "miou", "mean_iou"),
    [
        # Shared 1 of 2 + 3 - 1 = 4 pixels.
        pytest.param([LEFT], [TOP], 1 / 4, 1 / 4, id="one_picture"),
        # Pooled (1 + 6) / (4 + 6); mean (1/4 + 1) / 2.
        pytest.param([LEFT, FULL], [TOP, FULL], 7 / 10, 5 / 8, id="large_object_decides_pool"),
        # Pooled 1 / (4 + 0 + 6 + 6); mean (1/4 + 1 + 0 + 0) / 4.
        pytest.param(
            [LEFT, EMPTY, FULL, EMPTY],
            [TOP, EMPTY, EMPTY, FULL],
            1 / 16,
            5 / 16,
            id="empty_masks",
        ),
        pytest.param([LEFT, "no"], [TOP, FULL], 1 / 10, 1 / 8, id="unparsed_misses_all"),
        pytest.param([LEFT, "no"], [TOP, EMPTY], 1 / 4, 1 / 8, id="unparsed_on_empty_is_wrong"),
        pytest.param([EMPTY], [EMPTY], 1.0, 1.0, id="nothing_to_find_nothing_found"),
        pytest.param([EMPTY, ""], [EMPTY, EMPTY], 0.0, 0.5, id="nothing_to_find_one_unparsed"),
        pytest.param([], [], 0.0, 0.0, id="no_rows"),
    ],
)
def test_one_mask_per_row(metric, predictions, references, miou, mean_iou):
    result = metric.compute(predictions=predictions, references=references)
    assert result["miou"] == result["cumulative_iou"] == pytest.approx(miou)
    assert result["mean_iou"] == pytest.approx(mean_iou)
    assert set(result["iou_per_class"]) == ({"foreground"} if predictions else set())
    assert result["n"] == result["n_masks"] == len(predictions)


def test_four_conventions_on_four_pictures():
    """Half right, both empty, only predicted, missed: the numbers of the card."""
    empty = [[0, 0], [0, 0]]
    result = scored(
        [[[1, 1], [0, 0]], empty, [[1, 0], [0, 0]], empty],
        [[[1, 0], [0, 0]], empty, empty, [[1, 0], [0, 0]]],
    )
    # (1/2 + 1 + 0 + 0) / 4; MONAI 1.6.1 MeanIoU(ignore_empty=False) gives 0.375 too,
    # torchmetrics 1.9.0 segmentation.MeanIoU(1) leaves row two out: 0.1667.
    assert result["mean_iou"] == 0.375
    assert (result["mean_iou"] * 4 - 1) / 3 == pytest.approx(0.1666667)
    # 1 / (2 + 0 + 1 + 1); torchmetrics 1.9.0 BinaryJaccardIndex() gives 0.25 too.
    assert result["cumulative_iou"] == 0.25
    assert result["n_both_empty"] == 1
    assert result["n_only_prediction_empty"] == 1
    assert result["n_only_reference_empty"] == 1


def test_label_maps_agree_with_torchmetrics():
    result = scored(*MAPS, [[0, 1, 2, 3, 4]] * 2)
    # Measured once: torchmetrics 1.9.0 MulticlassJaccardIndex(5, average="none") gives
    # 0.5, 0.6, 0.6, 0.0 and 0.0 for the absent class 4, average="macro" 0.425.
    assert result["iou_per_class"] == {0: 0.5, 1: 0.6, 2: 0.6, 3: 0.0, 4: None}
    assert result["miou"] == pytest.approx(0.425)
    # ((1 + 2/3 + 2/3)/3 + (1/3 + 1/2 + 1/2 + 0)/4) / 2
    assert result["mean_iou"] == pytest.approx(0.5555556)
    assert result["cumulative_iou"] == 8 / 16
    # Class 4 in both pictures, class 3 in the first; class 3 of the second is only predicted.
    assert (result["n_both_empty"], result["n_only_reference_empty"]) == (3, 1)


def stack(labels):
    return np.stack([labels == value for value in range(N_CLASSES)])


CLASS_FORMS = {
    "label_map": lambda labels, path: labels,
    "label_map_uint8": lambda labels, path: labels.astype(np.uint8),
    "label_pil": lambda labels, path: Image.fromarray(labels.astype(np.uint8)),
    "label_png": lambda labels, path: _saved(labels, path),
    "label_png_text": lambda labels, path: str(_saved(labels, path)),
    "stack": lambda labels, path: stack(labels),
    "list_of_arrays": lambda labels, path: list(stack(labels)),
    "list_of_lists": lambda labels, path: stack(labels).tolist(),
    "tuple_of_rle": lambda labels, path: tuple(rle(mask) for mask in stack(labels)),
    "json_of_rle": lambda labels, path: json.dumps([rle(mask) for mask in stack(labels)]),
    "list_of_json": lambda labels, path: [json.dumps(rle(mask)) for mask in stack(labels)],
}


def _saved(labels, path):
    Image.fromarray(labels.astype(np.uint8)).save(path)
    return path


@pytest.mark.parametrize("form", CLASS_FORMS)
def test_every_form_of_a_row_with_classes(metric, form, tmp_path):
    expected = scored(*MAPS, [list(range(N_CLASSES))] * 2)
    columns = {
        name: [
            CLASS_FORMS[form](labels, tmp_path / f"{name}{index}.png")
            for index, labels in enumerate(maps)
        ]
        for name, maps in zip(("predictions", "references"), MAPS, strict=True)
    }
    assert metric.compute(**columns, classes=[list(range(N_CLASSES))] * 2) == expected
    for prediction, reference in zip(*columns.values(), strict=True):
        metric.add(prediction=prediction, reference=reference, classes=range(N_CLASSES))
    assert metric.compute() == expected
    metric.add_batch(**columns, classes=np.tile(np.arange(N_CLASSES), (2, 1)))
    assert metric.compute() == expected


@given(maps=label_maps())
def test_miou_equals_the_confusion_matrix(maps):
    result = scored(*maps, [list(range(N_CLASSES))] * len(maps[0]))
    matrix = confusion(*maps)
    expected = ious_of(matrix)
    found = [result["iou_per_class"][value] for value in range(N_CLASSES)]
    assert np.array(found, dtype=float) == pytest.approx(expected, nan_ok=True)
    assert result["miou"] == pytest.approx(np.nanmean(expected))
    # Every pixel has a class, so each wrong one is in two unions.
    n_wrong = matrix.sum() - np.trace(matrix)
    assert result["cumulative_iou"] == pytest.approx(
        np.trace(matrix) / (np.trace(matrix) + 2 * n_wrong)
    )
    per_picture = [
        np.nanmean(ious_of(confusion([prediction], [reference])))
        for prediction, reference in zip(*maps, strict=True)
    ]
    assert result["ious"] == pytest.approx(per_picture)
    assert result["mean_iou"] == pytest.approx(np.mean(per_picture))


@given(maps=label_maps())
def test_bounds_and_symmetry(maps):
    classes = [[1, 2, 3]] * len(maps[0])
    forth, back = scored(*maps, classes), scored(*reversed(maps), classes)
    for key in ("miou", "mean_iou", "cumulative_iou"):
        assert 0.0 <= forth[key] <= 1.0
        assert forth[key] == back[key]
    assert forth["n_only_prediction_empty"] == back["n_only_reference_empty"]
    perfect = scored(maps[0], maps[0], classes)
    assert perfect["miou"] == perfect["mean_iou"] == perfect["cumulative_iou"] == 1.0


@given(maps=label_maps(), seed=st.integers(0, 99))
def test_order_of_rows_and_of_classes_changes_no_number(maps, seed):
    rng = random.Random(seed)
    rows = list(zip(*maps, strict=True))
    classes = rng.sample(range(N_CLASSES), N_CLASSES)
    first = scored(*maps, [list(range(N_CLASSES))] * len(rows))
    second = scored(*zip(*rng.sample(rows, len(rows)), strict=True), [classes] * len(rows))
    assert sorted(first.pop("ious")) == sorted(second.pop("ious"))
    assert first == second


@given(maps=label_maps())
def test_iou_is_dice_over_two_minus_dice(maps):
    """The two coefficients of one pair tell the same, which checks each by the other's script."""
    from soubench.metrics.dice.dice import read_pairs
    from soubench.metrics.dice.dice import score as dice_score

    masks = [[labels == 1 for labels in column] for column in maps]
    ious = scored(*masks)["ious"]
    dices = dice_score(read_pairs(*masks))["dices"]
    assert ious == pytest.approx([dice / (2 - dice) for dice in dices])


def test_a_thought_before_the_masks_is_cut_off(metric):
    masks = [{"size": [1, 4], "counts": [0, 2, 2]}, {"size": [1, 4], "counts": [3, 1]}]
    result = metric.compute(
        predictions=[f"<think>[1, 2]</think>{json.dumps(masks)}", "<think>" + json.dumps(masks)],
        references=[masks, masks],
        classes=[["ship", "pier"]] * 2,
    )
    assert result["ious"] == [1.0, 0.0]
    assert result["unparsed_rate"] == 0.5


def test_rows_may_name_one_class_each(metric):
    result = metric.compute(
        predictions=[LEFT, FULL, FULL],
        references=[TOP, FULL, EMPTY],
        classes=["ship", "plane", "ship"],
    )
    # ship (1 + 0) / (4 + 6), plane 6/6; pictures (1/4 + 1 + 0) / 3; all 7 / 16.
    assert result["iou_per_class"] == {"ship": 0.1, "plane": 1.0}
    assert result["miou"] == pytest.approx(0.55)
    assert result["mean_iou"] == pytest.approx(5 / 12)
    assert result["cumulative_iou"] == 7 / 16


def test_rows_may_differ_in_classes_and_numbers_are_not_names(metric):
    result = metric.compute(
        predictions=[[LEFT], [FULL, TOP], FULL],
        references=[[LEFT], [FULL, LEFT], FULL],
        classes=[["1"], ["ship", np.int64(1)], 1],
    )
    # Class 1: (1 + 6) / (4 + 6).
    assert result["iou_per_class"] == {"1": 1.0, "ship": 1.0, 1: 0.7}
    assert result["n_masks"] == 4


def test_absent_classes_are_left_out_of_a_picture_and_pictures_without_any_count_one():
    result = scored(
        [[LEFT, EMPTY], [EMPTY, EMPTY]], [[TOP, EMPTY], [EMPTY, EMPTY]], [["a", "b"]] * 2
    )
    assert result["ious"] == [0.25, 1.0]
    assert result["iou_per_class"] == {"a": 0.25, "b": None}
    assert result["miou"] == 0.25
    assert result["n_both_empty"] == 3


def test_values_that_a_row_does_not_list_are_background():
    prediction, reference = np.array([[1, 255, 7]]), np.array([[1, 1, 255]])
    result = scored([prediction], [reference], [[1]])
    assert result["iou_per_class"] == {1: 0.5}


@pytest.mark.parametrize(
    ("value", "classes", "reason"),
    [
        pytest.param([LEFT], ["a", "b"], "one mask per class, 2, got 1", id="too_few"),
        pytest.param([LEFT] * 3, ["a", "b"], "one mask per class, 2, got 3", id="too_many"),
        pytest.param([LEFT, "x"], ["a", "b"], "neither JSON", id="one_broken"),
        pytest.param([LEFT, LEFT.T], ["a", "b"], "3 high and 2 wide", id="two_sizes"),
        pytest.param(LEFT, ["a", "b"], "class numbers, not names", id="label_map_of_names"),
        pytest.param(rle(LEFT), ["a"], "expected a list of 1 masks", id="bare_mask"),
        pytest.param(LEFT - 0.5, [0, 1], "fractions", id="label_map_of_fractions"),
        pytest.param("", ["a", "b"], "neither JSON", id="empty_reply"),
        pytest.param("{}", [0, 1], "expected a list of 2 masks", id="json_of_no_list"),
    ],
)
def test_row_that_does_not_fit_its_classes(metric, value, classes, reason):
    good = [LEFT] * len(classes)
    result = metric.compute(predictions=[value], references=[good], classes=[classes])
    assert reason in result["unparsed"][0]["reason"]
    assert result["miou"] == result["mean_iou"] == result["cumulative_iou"] == 0.0
    with pytest.raises(ValueError, match=r"^row 0: references: ") as raised:
        metric.compute(predictions=[good], references=[value], classes=[classes])
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    "classes",
    [[], ["a", "a"], "", -1, 1.5, True, float("nan"), None, [None], [["a"]], ["a", 1.0], {"a": 1}],
    ids=repr,
)
def test_classes_that_are_none_are_errors_that_name_the_row(metric, classes):
    with pytest.raises(ValueError, match=r"^row 1: classes: expected a name or a number"):
        metric.compute(
            predictions=[LEFT, [LEFT]], references=[LEFT, [LEFT]], classes=["a", classes]
        )


@pytest.mark.parametrize(
    "columns",
    [
        {"predictions": [LEFT], "references": [LEFT], "classes": ["a", "b"]},
        {"predictions": [LEFT], "references": [LEFT], "classes": "a"},
        {"predictions": [LEFT]},
        {"references": [LEFT]},
        {"classes": ["a"]},
    ],
    ids=["longer", "text", "no_references", "no_predictions", "only_classes"],
)
def test_columns_that_do_not_fit_are_errors(metric, columns):
    with pytest.raises(ValueError, match="expected"):
        metric.compute(**columns)


def test_wrong_type_within_a_list_names_the_row(metric):
    with pytest.raises(ValueError, match=r"^row 0: predictions: expected a mask .* got None"):
        metric.compute(predictions=[[LEFT, None]], references=[[LEFT, TOP]], classes=[["a", "b"]])


def test_inputs_stay_as_they_are(metric):
    predictions, references = [[rle(LEFT), TOP.copy()]], [[LEFT.copy(), rle(TOP)]]
    classes = [["a", "b"]]
    before = copy.deepcopy((predictions, references, classes))
    metric.compute(predictions=predictions, references=references, classes=classes)
    assert predictions[0][0] == before[0][0][0]
    assert np.array_equal(predictions[0][1], before[0][0][1])
    assert np.array_equal(references[0][0], before[1][0][0])
    assert classes == before[2]


def test_both_metrics_work_in_one_combination():
    both = evaluate.combine([evaluate.load(str(METRICS / "dice")), evaluate.load(FOLDER)])
    result = both.compute(predictions=[LEFT], references=[TOP])
    assert result["dice"] == pytest.approx(2 / 5)
    assert result["miou"] == pytest.approx(1 / 4)
