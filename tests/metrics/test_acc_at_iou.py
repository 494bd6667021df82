"""What ``acc_at_iou`` reads from replies in every format, and what it makes of boxes."""

import copy
import itertools
from pathlib import Path

import evaluate
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from soubench.metrics.acc_at_iou.acc_at_iou import KNOWN, check_rows, read_boxes, require_sizes
from soubench.metrics.acc_at_iou.acc_at_iou import score as score_rows
from soubench.metrics.acc_at_iou.box_text import MAX_CHARS
from soubench.metrics.acc_at_iou.overlap import best_match, iou_matrix, pair_iou
from tests.light import run_at_once

FOLDER = str(Path(__file__).parents[2] / "metrics" / "acc_at_iou")
SIZE = [1000, 500]
BOX = [120.0, 170.0, 260.0, 227.5]
BOX_2 = [300.0, 50.0, 400.0, 100.0]
UPRIGHT = [[0, 0, 1, 1]]
QUAD = [[0, 0, 1, 0, 1, 1, 0, 1]]


def rows_of(text, name, size=SIZE, input_size=None, reference=UPRIGHT):
    return check_rows(
        [text],
        [reference],
        format=name,
        image_sizes=[size],
        input_sizes=[input_size],
        known=KNOWN,
    )


def read(text, name, **options):
    (row,) = rows_of(text, name, **options)
    return read_boxes(row)


@pytest.fixture(scope="module")
def metric():
    return evaluate.load(FOLDER)


# Side 1000 x 500. BOX is 120 340 260 455 in thousandths, BOX_2 is 300 100 400 200.
READ = {
    "qwen_vl": [
        ("<ref>barge</ref><box>(120,340),(260,455)</box>", [BOX]),
        ("<box>(120,340),(260,455)</box><box>(300,100),(400,200)</box>", [BOX, BOX_2]),
        ("<box>(120, 340), (260, 455)</box> it is.", [BOX]),
        ("<box>(120,340),(260,455)", [BOX]),
        ("<box>(120,340),(260,45", []),
        ("<box>(120,340),(260,455)</box><box>(300,100),(4", [BOX]),
        ("<ref>barge 4</ref><box></box>", []),
        ("<box>(260,455),(120,340)</box>", [BOX]),
        ("(7,7) is the bow. <box>(120,340),(260,455)</box>", [BOX]),
    ],
    "qwen2_vl": [
        ("<|box_start|>(120,340),(260,455)<|box_end|><|im_end|>", [BOX]),
        ("2 barges(120,340),(260,455)(300,100),(400,200)", [BOX, BOX_2]),
        ("barge(120,340),(260,455)(300,100),(4", [BOX]),
        ("barge(120,340),(260,455),(300,100).", []),
        ("barge(120,340)", []),
        ("barge（120，340），（260，455）", [BOX]),
        ("(120,340) and (260,455)", [BOX]),
        ("The barge has 3 masts and 2 decks.", []),
    ],
    "qwen2_5_vl": [
        ('```json\n[{"bbox_2d": [60, 68, 130, 91], "label": "barge"}]\n```', [BOX]),
        ("{'bbox_2d': [60, 68, 130, 91,],}", [BOX]),
        ('{"bbox_2d": [130, 91, 60, 68]}', [BOX]),
        ('{"bbox_2d": [60, 68, 130]}', []),
        ('{"bbox_2d": null, "label": "barge"}', []),
        ('[{"bbox_2d": [60, 68, 130, 91]}, {"bbox_2d": [150, 20, 2', [BOX]),
        ('{"bbox_2d": [60, 68, 600, 91]}', []),
        ('{"bbox_2d": ["60", "68", "130", "91"]}', [BOX]),
    ],
    "qwen3_vl": [
        ('```json\n[\n\t{"bbox_2d": [120, 340, 260, 455], "label": "lane 4"}\n]\n```', [BOX]),
        ("{'bbox_2d': [120, 340, 260, 455], 'label': 'barge',}", [BOX]),
        ('{"bbox_2d": [[120, 340], [260, 455]]}', [BOX]),
        ('{"color": [9, 9, 9, 9], "bbox_2d": [120, 340, 260, 455]}', [BOX]),
        ('{"bboxes": [[120, 340, 260, 455], [300, 100, 400, 200]]}', [BOX, BOX_2]),
        ('{"bbox_2d": [120, 340, 260, 455], "point_2d": [190, 400]}', [BOX]),
        ('{"bbox_2d": [900, 900, 1004, 1001]}', [[900, 450, 1000, 500]]),
        ('{"bbox_2d": [120, 340, 99999, 455]}', []),
        ('{"bbox_2d": [1200, 340, 1260, 455]}', []),
        ("<think>[1, 2, 3, 4]</think>[120, 340, 260, 455]", [BOX]),
        ("<think>It may be [120, 340, 260, 455]", []),
        ("I see [1, 2, 3, 4]. <answer>[120, 340, 260, 455]</answer>", [BOX]),
        ("Of 4 planes on 2 runways, 3 of 4 are parked", []),
        ("I'm sorry, I can't help with that.", []),
        ("", []),
    ],
    "internvl": [
        ("<ref>barge</ref><box>[[120, 340, 260, 455]]</box>", [BOX]),
        ("<box>[[120,340,260,455],[300,100,400,200]]</box>", [BOX, BOX_2]),
        ("It is at [[120, 340, 260, 455]].", [BOX]),
        ("[[0.120, 0.340, 0.260, 0.455]]", [BOX]),
        ("<box>[[120,340,260,455],[300,100", [BOX]),
        ("<box>[[120,340]]</box>", []),
        ("<box>[[120, 340, 260, 455, 7]]</box>", []),
        ("[[1, 1, 0, 0]]", [[0, 0, 1, 0.5]]),
    ],
    "gemini": [
        ('```json\n[{"box_2d": [340, 120, 455, 260], "label": "barge"}]\n```', [BOX]),
        ("[340, 120, 455, 260]", [BOX]),
        ('{"box_2d": {"xmin": 120, "ymin": 340, "xmax": 260, "ymax": 455}}', [BOX]),
        ('{"box_2d": [455, 260, 340, 120]}', [BOX]),
        ('[{"box_2d": [340, 120, 455, 260]}, {"box_2d": [100, 300, 200, 400]}]', [BOX, BOX_2]),
        ('[{"box_2d": [340, 120, 455, 260]}, {"box_2d": [100, 300', [BOX]),
        ('{"box_2d": [340, 120, 455]}', []),
        ("[]", []),
    ],
    "paligemma": [
        ("<loc0000><loc0000><loc1023><loc1023> sea", [[0, 0, 1000, 500]]),
        ("<loc0341><loc0682><loc1023><loc1023> a ; ", [[2000 / 3, 500 / 3, 1000, 500]]),
        ("<loc1023><loc1023><loc0000><loc0000>", [[0, 0, 1000, 500]]),
        ("<loc0000><loc0000><loc1023><loc1023><seg001><seg002> sea", [[0, 0, 1000, 500]]),
        ("<loc0000><loc0000><loc1023><loc1023> a ; <loc0000><loc00", [[0, 0, 1000, 500]]),
        ("<loc0000><loc0000><loc1023> sea", []),
        ("[0, 0, 1023, 1023]", []),
        ("<loc0000><loc0000><loc9999><loc1023>", []),
    ],
    "florence2": [
        ("</s><s>barge<loc_0><loc_1><loc_9><loc_11></s>", [[0.5, 0.75, 9.5, 5.75]]),
        ("a<loc_0><loc_1><loc_9><loc_11>b<loc_9><loc_11>", [[0.5, 0.75, 9.5, 5.75]]),
        ("a<loc_9><loc_11><loc_0><loc_1>", [[0.5, 0.75, 9.5, 5.75]]),
        ("a<loc_0><loc_1><loc_9><loc_11>" * 2, [[0.5, 0.75, 9.5, 5.75]] * 2),
        ("a<loc_0><loc_1><loc_9><loc_11><loc_0><loc_1><lo", [[0.5, 0.75, 9.5, 5.75]]),
        ("a<loc_0><loc_1><loc_9></s>", []),
        ("[0, 1, 9, 11]", []),
        ("sea", []),
    ],
    "kosmos2": [
        # Patch 0 is cell (0, 0), patch 33 is (1, 1); a cell is 31.25 x 15.625.
        ("<patch_index_0000><patch_index_0033>", [[15.625, 7.8125, 46.875, 23.4375]]),
        ("<object><patch_index_0000><patch_index_0001></object>", [[0, 0, 62.5, 15.625]]),
        ("<object><patch_index_0000><patch_index_0000></object>", [[0, 0, 31.25, 15.625]]),
        ("<patch_index_0033><patch_index_0000>", [[15.625, 7.8125, 46.875, 23.4375]]),
        (
            "<patch_index_0000><patch_index_0001></delimiter_of_multi_objects/>"
            "<patch_index_0000><patch_index_0000>",
            [[0, 0, 62.5, 15.625], [0, 0, 31.25, 15.625]],
        ),
        ("<object><patch_index_0000></object>", []),
        ("<object><patch_index_0000><patch_index_9999></object>", []),
        ("a barge at 3, 4, 5, 6", []),
    ],
    "deepseek_vl2": [
        ("<|ref|>sea<|/ref|><|det|>[[0, 0, 999, 999]]<|/det|>", [[0, 0, 1000, 500]]),
        ("<|det|>[[333, 333, 666, 666]]<|/det|>", [[1000 / 3, 500 / 3, 2000 / 3, 1000 / 3]]),
        ("<|det|>[[0,0,999,999],[0,0,0,0]]<|/det|>", [[0, 0, 1000, 500], [0, 0, 0, 0]]),
        ("<|det|>[[120,]]<|/det|>", []),
        ("<|det|>[[120, 340, 260]]<|/det|>", []),
        ("<|det|>[[120, 340, 260, 99999]]<|/det|>", []),
        ("<|ref|>[1, 2, 3, 4]<|/ref|><|det|>[[0, 0, 999, 999]]<|/det|>", [[0, 0, 1000, 500]]),
        ("<|det|>[[0, 0, 999, 999], [5, 5", [[0, 0, 1000, 500]]),
    ],
    "cogvlm": [
        ("A barge [[120,340,260,455]].", [BOX]),
        ("[[120,340,260,455;300,100,400,200]]", [BOX, BOX_2]),
        ("[[120,340,260,455;300,100,4", [BOX]),
        ("[[012,034,026,045]]", [[12, 17, 26, 22.5]]),
        ("[[120,340,260]]", []),
        ("[[260,455,120,340]]", [BOX]),
        ("Yes, 2 barges.", []),
        ("[[120,340,260,455]] and [[300,100,400,200]]", [BOX, BOX_2]),
    ],
    "minicpm_v": [
        ("<box>120 340 260 455</box>", [BOX]),
        ("<ref>barge</ref><box>120 340 260 455</box><box>300 100 400 200</box>", [BOX, BOX_2]),
        ("<box>120 340 260 45", []),
        ("<box>120 340 260</box>", []),
        ("120 340 260 455", [BOX]),
        ("<box>260 455 120 340</box>", [BOX]),
        ("<box>120, 340, 260, 455</box>", [BOX]),
        ("<box>-3 340 260 455</box>", [[0, 170, 260, 227.5]]),
    ],
    "glm_v": [
        ("The barge: <|begin_of_box|>[[120,340,260,455]]<|end_of_box|>", [BOX]),
        ("<|begin_of_box|>[120, 340, 260, 455]<|end_of_box|>", [BOX]),
        ("<|begin_of_box|>(120, 340, 260, 455)<|end_of_box|>", [BOX]),
        ("<|begin_of_box|>{120, 340, 260, 455}<|end_of_box|>", [BOX]),
        ("<think>[[1,2,3,4]]</think><|begin_of_box|>[[120,340,260,455]]", [BOX]),
        ("At [120, 340, 260, 455]. <|begin_of_box|>Yes<|end_of_box|>", [BOX]),
        ("<|begin_of_box|>3 barges<|end_of_box|>", []),
        ("<|begin_of_box|>[[120,340,260,455],[300,100,400,200]]<|end_of_box|>", [BOX, BOX_2]),
    ],
    "geochat": [
        ("<p>barge</p> {<12><34><26><45>|<0>}", [[120, 170, 260, 225]]),
        ("{<12><34><26><45>|<30>}", [[120, 170, 260, 225]]),
        ("{<12><34><26><45>|<0>}<delim>{<30><10><40><20>|<90>}", [[120, 170, 260, 225], BOX_2]),
        ("{<26><45><12><34>|<0>}", [[120, 170, 260, 225]]),
        ("{<12><34><26><45>}", [[120, 170, 260, 225]]),
        ("{<12><34><26>|<0>}", []),
        ("{<12><34><26><45>|<0>}{<30><10", [[120, 170, 260, 225]]),
        ("{<12><34><26><145>|<0>}", []),
    ],
    "unit_xyxy": [
        ("The barge is at [0.120,0.340,0.260,0.455].", [BOX]),
        ('{"bbox_2d": [0.12, 0.34, 0.26, 0.455]}', [BOX]),
        ("[0.26, 0.455, 0.12, 0.34]", [BOX]),
        ("[-0.02, 0.34, 0.26, 0.455]", [[0, 170, 260, 227.5]]),
        ("[.12, .34, .26, .455]", [BOX]),
        ("(0.12, 0.34), (0.26, 0.455)", [BOX]),
        ("[120, 340, 260, 455]", []),
        ("[0.12, 0.34, 1.2, 0.455]", []),
    ],
    "moondream": [
        ('{"objects": [{"x_min": 0.12, "y_min": 0.34, "x_max": 0.26, "y_max": 0.455}]}', [BOX]),
        ('{"y_max": 0.455, "x_max": 0.26, "y_min": 0.34, "x_min": 0.12}', [BOX]),
        ("{'x_min': 0.12, 'y_min': 0.34, 'x_max': 0.26, 'y_max': 0.455}", [BOX]),
        (
            '[{"x_min": 0.12, "y_min": 0.34, "x_max": 0.26, "y_max": 0.455}, {"x_min": 0.3',
            [BOX],
        ),
        ('{"objects": []}', []),
        ('{"x_min": 0.12, "y_min": 0.34}', []),
        ('{"x_min": 120, "y_min": 340, "x_max": 260, "y_max": 455}', []),
        ("x_min=0.12 y_min=0.34 x_max=0.26 y_max=0.455", [BOX]),
    ],
    "pixel_xyxy": [
        ("The box is [120, 170, 260, 227.5] in pixel coordinates.", [BOX]),
        ("Top-left corner: (120, 170); bottom-right corner: (260, 227.5).", [BOX]),
        ("The upper right is (260, 170) and the lower left (120, 227.5)", [BOX]),
        ("In this 1000x500 view of 2 barges, the one of row 4 is [120,170,260,227.5].", [BOX]),
        ('{"top_left": {"x": 120, "y": 170}, "bottom_right": {"x": 260, "y": 227.5}}', [BOX]),
        ("x0=120, y0=170, x1=260, y1=227.5", [BOX]),
        ("x from 120 to 260, y from 170 to 227.5", [BOX]),
        ("left: 120px, top: 170px, right: 260px, bottom: 227.5px", [BOX]),
        ('{"x": 120, "y": 170, "width": 140, "height": 57.5}', [BOX]),
        ("center (190, 198.75), width 140, height 57.5", [BOX]),
        ("[ymin, xmin, ymax, xmax] = [170, 120, 227.5, 260]", [BOX]),
        ("(x1, y1) = (120, 170), (x2, y2) = (260, 227.5)", [BOX]),
        (
            "The top-left ship is [120, 170, 260, 227.5], the bottom-right one [300, 50, 400, 100]",
            [BOX, BOX_2],
        ),
        ("width: 1000, height: 500, box [120, 170, 260, 227.5]", [BOX]),
        ("<x1>120</x1><y1>170</y1><x2>260</x2><y2>227.5</y2>", [BOX]),
        ("Its bounding box is 120, 170, 260, 227.5.", [BOX]),
        (r"\boxed{[120, 170, 260, 227.5]}", [BOX]),
        ("```\n120, 170, 260, 227.5\n```", [BOX]),
        ("Lanes: 4, 2, 3, 1", []),
        ("[1, 2, 9, 2, 9, 8, 1, 8]", [[1, 2, 9, 8]]),
        ("[1, 2, 9, 8, 11, 12, 19, 18]", []),
    ],
    "pixel_xywh": [
        ("[120, 170, 140, 57.5]", [BOX]),
        ("bbox: (120, 170, 140, 57.5)", [BOX]),
        ("x1=120, y1=170, x2=260, y2=227.5", [BOX]),
        ("[120, 170, -140, 57.5]", []),
        ("[950, 170, 900, 57.5]", []),
        ("[120px, 170px, 140px, 57.5px]", [BOX]),
        ("[120, 170, 140]", []),
        ("[0, 0, 1000, 500]", [[0, 0, 1000, 500]]),
    ],
    "percent_xyxy": [
        ("x1: 12%, y1: 34%, x2: 26%, y2: 45.5%", [BOX]),
        ("[12%, 34%, 26%, 45.5%]", [BOX]),
        ("12%, 34%, 26%, 45.5%", [BOX]),
        ("[12, 34, 26, 45.5]", [BOX]),
        ("Left 12%, top 34%, right 26%, bottom 45.5%", [BOX]),
        ("12 % of 340 barges", []),
        ("[12, 34, 260, 45.5]", []),
        ("horizontally 12% to 26%, vertically 34% to 45.5%", [BOX]),
    ],
    "auto": [
        ("[0.12, 0.34, 0.26, 0.455]", [BOX]),
        ("<|box_start|>(120,340),(260,455)<|box_end|>", [BOX]),
        ('{"box_2d": [340, 120, 455, 260]}', [BOX]),
        ("<|det|>[[0, 0, 999, 999]]<|/det|>", [[0, 0, 1000, 500]]),
        ("<loc_0><loc_1><loc_9><loc_11>", [[0.5, 0.75, 9.5, 5.75]]),
        ("<loc0000><loc0000><loc1023><loc1023>", [[0, 0, 1000, 500]]),
        ("{<12><34><26><45>|<0>}", [[120, 170, 260, 225]]),
        ("<|begin_of_box|>[[120,340,260,455]]<|end_of_box|>", [BOX]),
        ('{"x_min": 0.12, "y_min": 0.34, "x_max": 0.26, "y_max": 0.455}', [BOX]),
        ('{"bbox_2d": [120, 340, 260, 455]}', []),
        ("[120, 340, 260, 455]", []),
        ("[0, 0, 1, 1]", []),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param(name, text, expected, id=f"{name}:{text[:40]}")
        for name, cases in READ.items()
        for text, expected in cases
    ],
)
def test_reply_is_read_in_its_format(name, text, expected):
    boxes = read(text, name, input_size=[500, 200])
    assert len(boxes) == len(expected), boxes
    np.testing.assert_allclose(boxes, np.reshape(expected, np.shape(boxes)), atol=1e-9)


def test_same_text_means_two_boxes_as_the_card_says():
    text = '{"bbox_2d": [100, 40, 300, 80]}'
    assert read(text, "qwen3_vl", size=[2000, 1000]) == [[200, 40, 600, 80]]
    # 100 / 1008 * 2000 = 198.41, 40 / 504 * 1000 = 79.37, ...
    (found,) = read(text, "qwen2_5_vl", size=[2000, 1000], input_size=[1008, 504])
    np.testing.assert_allclose(found, [198.41, 79.37, 595.24, 158.73], atol=0.01)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "It is [12, 17, 26, 22.75]: here 12 is x1, 17 is y1, 26 is x2 and 22.75 is y2.",
            id="names after their values",
        ),
        pytest.param("[12, 17, 26, 22.75]; x1, y1 is the corner nearest to 0, 0", id="a name's 1"),
        pytest.param(
            '{"bbox_2d": [12, 17, 26, 22.75], "note": "tugs left: 3, top: 4, right: 1, bottom: 2"}',
            id="names in a label",
        ),
        pytest.param(
            '{"picture": {"width": 1000, "height": 500}, "x": 3, "y": 4,'
            ' "box": [12, 17, 26, 22.75]}',
            id="size of the picture",
        ),
    ],
)
def test_a_box_in_brackets_is_not_overridden_by_names(text):
    assert read(text, "pixel_xyxy") == [[12, 17, 26, 22.75]]


@pytest.mark.parametrize(
    "text",
    [
        "Left of the pier lie 2 tugs, right 3 barges, at the top 4 buoys and at the bottom 5 rafts",
        "On the left 6 tugs of which 2 are red, right 3, top 4, bottom 5.",
        "Left: 3 tugs, right: 5 tugs, top: 1 raft, bottom: 2 rafts",
        "At the top left are 2 tugs, 3 rafts, at the bottom right 4 buoys, 5 piers",
        "The left 30% is sea, the right 20% is land, the top 10% is fog, the bottom 40% is sand",
        "Tugs x1 2 y1 3 x2 4 y2 5",
        "3 rafts 2 wide, 4 tugs 5 high",
    ],
)
def test_counts_beside_words_for_sides_are_no_box(text):
    assert read(text, "pixel_xyxy") == []
    assert read(text, "percent_xyxy") == []


PIXELS = [120, 170, 260, 227.5]


@pytest.mark.parametrize(
    "text",
    [
        "Its top-left corner lies at (120, 170), with a width of 140 and a height of 57.5 pixels.",
        "It is centered at (190, 198.75) with a width of 140 px and a height of 57.5 px.",
        "Center: (190, 198.75). It is 140 pixels wide and 57.5 pixels high.",
        "from `(120, 170)` to `(260, 227.5)`",
        "`(120, 170)` → `(260, 227.5)`",
        "(120, 170) -> (260, 227.5)",
        "(120, 170) – (260, 227.5)",
        "x1, y1, x2, y2: 120, 170, 260, 227.5",
        "y1, x1, y2, x2 = 170, 120, 227.5, 260",
        "x, y, w, h: 120, 170, 140, 57.5",
        "x1,x2 = 120,260; y1,y2 = 170,227.5",
        "(x1, y1) = (120, 170) and (x2, y2) = (260, 227.5)",
        "Top-left (x, y) = (120, 170), bottom-right (x, y) = (260, 227.5)",
        "The tug (bounding box: 120, 170, 260, 227.5) is red.",
        '{"bbox_2d": "120, 170, 260, 227.5", "label": "tug"}',
        '"120, 170, 260, 227.5"',
        "Left edge is 120, top edge is 170, right edge is 260, bottom edge is 227.5",
        "left: 120 top: 170 right: 260 bottom: 227.5",
        "Top-left corner 120, 170 and bottom-right corner 260, 227.5",
        "(120,170),(260,170),(260,227.5),(120,227.5)",
        "[[120, 170], [260, 170], [120, 227.5], [260, 227.5]]",
        "<quad>(190,170),(260,200),(200,227.5),(120,190)</quad>",
        "<|quad_start|>(190,170),(260,200),(200,227.5),(120,190)<|quad_end|>",
        "| x1 | y1 | x2 | y2 |\n|---|---|---|---|\n| 120 | 170 | 260 | 227.5 |",
        "Found:\n\n|tug|**x**|**y**|width|height|\n|:-|-:|-:|-:|-:|\n|nr 4|120|170|140|57.5|\nEnd.",
        "x1 | y1 | x2 | y2\n--|--|--|--\n120 px | 170 px | 260 px | 227.5 px",
    ],
)
def test_ways_to_write_a_box_in_pixels(text):
    assert read(text, "pixel_xyxy") == [PIXELS]


def test_rows_of_a_table_are_boxes():
    text = "|x1|y1|x2|y2|\n|-|-|-|-|\n|1|2|3|4|\n|5|6|7|8|"
    assert read(text, "pixel_xyxy") == [[1, 2, 3, 4], [5, 6, 7, 8]]


@pytest.mark.parametrize(
    "text",
    [
        "<|begin_of_box|><120,340,260,455><|end_of_box|>",
        "Here: <|begin_of_box|><<120, 340, 260, 455>><|end_of_box|>",
        "<|begin_of_box|><120 340 260 455>",
    ],
)
def test_glm_may_use_angle_brackets(text):
    assert read(text, "glm_4_5v") == [BOX]


@pytest.mark.parametrize(
    "text",
    [
        "[12, 17, 26, 22]<|im_end|>\n<|im_start|>user\nAnd the one near [1, 1, 2, 2]?",
        "[12, 17, 26, 22]\nUSER: like [1, 1, 2, 2] ASSISTANT: [3, 3, 4, 4]",
        "It is at [12, 17, 26, 22]. USER: like [1, 1, 2, 2] ASSISTANT: [3, 3, 4, 4]",
        "USER: where? for example [1, 1, 2, 2] ASSISTANT: [12, 17, 26, 22]",
        "<|im_start|>user\nlike [1, 1, 2, 2]<|im_end|>\n<|im_start|>assistant\n[12, 17, 26, 22]",
    ],
)
def test_boxes_of_another_turn_do_not_count(text):
    assert read(text, "pixel_xyxy") == [[12, 17, 26, 22]]


def test_a_patch_beyond_the_last_cell_is_no_corner():
    assert read("<object><patch_index_0000><patch_index_1024></object>", "kosmos2") == []
    # Cell (31, 31) is the last: its center is 31.5 cells of 31.25 x 15.625 away.
    (box,) = read("<object><patch_index_0000><patch_index_1023></object>", "kosmos2")
    assert box == [15.625, 7.8125, 984.375, 492.1875]


@pytest.mark.parametrize(
    ("text", "n_boxes"),
    [
        pytest.param("(1,2),(3,4),(5,6)", 0, id="whole, odd"),
        pytest.param("(1,2),(3,4),(5,6).", 0, id="whole, odd, full stop"),
        pytest.param("<box>(1,2),(3,4),(5,6)</box>", 0, id="closed tag, odd"),
        pytest.param("<box>(1,2),(3,4),(5,6)", 1, id="open tag"),
        pytest.param("(1,2),(3,4),(5,6),", 1, id="ends after a comma"),
        pytest.param("(1,2),(3,4),(5,", 1, id="ends in a bracket"),
    ],
)
def test_an_odd_point_is_forgiven_only_where_the_reply_was_cut_off(text, n_boxes):
    assert read(text, "qwen2_vl") == [[1, 1, 3, 2]] * n_boxes


def test_two_boxes_as_points_stay_two():
    text = "(1,2),(3,4)(7,4),(9,8)"
    assert read(text, "pixel_xyxy") == [[1, 2, 3, 4], [7, 4, 9, 8]]


@pytest.mark.parametrize(
    "text",
    ["[1,2,9,2,9,8,1,8]", "[[1,2],[9,2],[9,8],[1,8]]", "(1,2),(9,2),(9,8),(1,8)"],
)
def test_eight_numbers_are_a_quad_where_the_reference_is_one(text):
    assert read(text, "pixel_xyxy", reference=QUAD) == [[1, 2, 9, 2, 9, 8, 1, 8]]


def test_angle_turns_a_geochat_box_counter_clockwise_where_the_reference_is_a_quad():
    # 20 x 10 about (50, 50) by 90 degrees: the left top corner (40, 45) moves to (45, 60).
    (quad,) = read("{<40><45><60><55>|<90>}", "geochat", size=[100, 100], reference=QUAD)
    np.testing.assert_allclose(quad, [45, 60, 45, 40, 55, 40, 55, 60], atol=1e-9)


WRITE = {
    "qwen_vl": lambda b: "<box>({},{}),({},{})</box>".format(*per(b, 1000)),
    "qwen2_vl": lambda b: "<|box_start|>({},{}),({},{})<|box_end|>".format(*per(b, 1000)),
    "qwen2_5_vl": lambda b: f'{{"bbox_2d": {[round(v / 2) for v in b]}}}',
    "qwen3_vl": lambda b: f'{{"bbox_2d": {per(b, 1000)}}}',
    "internvl": lambda b: f"<box>[{per(b, 1000)}]</box>",
    "gemini": lambda b: f'[{{"box_2d": {swap(per(b, 1000))}}}]',
    "paligemma": lambda b: "".join(f"<loc{v:04d}>" for v in swap(per(b, 1023))),
    "florence2": lambda b: "".join(f"<loc_{min(v, 999)}>" for v in per(b, 1000, np.floor)),
    "deepseek_vl2": lambda b: f"<|det|>[{per(b, 999)}]<|/det|>",
    "cogvlm": lambda b: "[[{:03d},{:03d},{:03d},{:03d}]]".format(*per(b, 1000)),
    "minicpm_v": lambda b: "<box>{} {} {} {}</box>".format(*per(b, 1000)),
    "glm_v": lambda b: f"<|begin_of_box|>[{per(b, 1000)}]<|end_of_box|>",
    "geochat": lambda b: "{{<{}><{}><{}><{}>|<0>}}".format(*per(b, 100)),
    "unit_xyxy": lambda b: str([v / 1000 for v in per(b, 1000)]),
    "percent_yxyx": lambda b: str(swap(per(b, 100))),
    "pixel_xyxy": lambda b: str([round(v) for v in b]),
    "pixel_xywh": lambda b: str([b[0], b[1], b[2] - b[0], b[3] - b[1]]),
    "pixel_cxcywh": lambda b: str([(b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]]),
}


def per(box, bins, rounded=np.round):
    return [int(rounded(v / s * bins)) for v, s in zip(box, [800, 600] * 2, strict=True)]


def swap(box):
    return [box[1], box[0], box[3], box[2]]


def upright_boxes(width=800, height=600):
    def build(x1, y1, w, h):
        return [x1, y1, min(x1 + w, width), min(y1 + h, height)]

    return st.builds(
        build,
        st.integers(0, width - 1),
        st.integers(0, height - 1),
        st.integers(1, width),
        st.integers(1, height),
    )


@settings(max_examples=40, deadline=None)
@given(upright_boxes())
def test_box_written_in_a_format_comes_back_within_its_rounding(box):
    for name, write in WRITE.items():
        (found,) = read(write(box), name, size=[800, 600], input_size=[400, 300])
        step = 8.0 if name in ("geochat", "percent_yxyx") else 1.0
        assert np.allclose(found, box, atol=step / 2 + 0.51), name


@given(st.text() | st.text(alphabet="[](){}<>0123456789,;.:xy|\"' bloc_-"))
def test_any_text_gives_valid_boxes(text):
    for name in KNOWN:
        for x1, y1, x2, y2 in read(text, name, input_size=[10, 10]):
            assert 0 <= x1 <= x2 <= SIZE[0]
            assert 0 <= y1 <= y2 <= SIZE[1]


@pytest.mark.parametrize("junk", ["[", "(1,2),", "x ", "1 ", "<box>", "<loc_1>", "x1, y1, "])
def test_a_megabyte_of_junk_is_read_to_the_limit(junk):
    text = junk * (1_000_000 // len(junk))
    assert len(read(text, "pixel_xyxy")) <= MAX_CHARS // len(junk)


def iou_by_hand(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    inter = max(width, 0) * max(height, 0)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter
    return inter / union if union else 0.0


@given(upright_boxes(), upright_boxes())
def test_iou_is_bounded_symmetric_and_agrees_with_plain_python_and_shapely(a, b):
    iou = float(pair_iou(a, b))
    assert 0 <= iou <= 1
    assert iou == float(pair_iou(b, a))
    assert pair_iou(a, a) == 1
    assert iou == pytest.approx(iou_by_hand(a, b), abs=1e-12)
    p, q = shapely.box(*a), shapely.box(*b)
    assert iou == pytest.approx(p.intersection(q).area / p.union(q).area, abs=1e-9)


def test_iou_of_a_diamond_in_its_square_is_a_half():
    diamond = [5, 0, 10, 5, 5, 10, 0, 5]
    assert iou_matrix([diamond], [[0, 0, 10, 10]]).tolist() == [[0.5]]
    crossed = [5, 0, 5, 10, 10, 5, 0, 5]
    assert iou_matrix([crossed], [diamond]).item() == pytest.approx(1)
    assert iou_matrix([[1, 1, 1, 1]], [diamond]).item() == 0


def best_by_permutation(iou, hit):
    """Try every one-to-one matching; the best sum, then the most hits."""
    if iou.shape[0] > iou.shape[1]:
        iou, hit = iou.T, hit.T
    picks = itertools.permutations(range(iou.shape[1]), iou.shape[0])
    found = []
    for pick in picks:
        pairs = list(enumerate(pick))
        found.append((round(sum(iou[p] for p in pairs), 8), sum(bool(hit[p]) for p in pairs)))
    return max(found)


@settings(deadline=None)
@given(
    st.lists(upright_boxes(6, 6), min_size=1, max_size=4),
    st.lists(upright_boxes(6, 6), min_size=2, max_size=4),
    st.sampled_from([0.0, 0.25, 0.5, 0.75]),
)
def test_matching_equals_the_best_of_all_permutations(predicted, references, threshold):
    iou = iou_matrix(predicted, references)
    total, n_hits = best_match(iou, iou > threshold)
    assert (total, n_hits) == pytest.approx(best_by_permutation(iou, iou > threshold), abs=1e-7)


lists_of_boxes = st.lists(upright_boxes(8, 8), min_size=1, max_size=4)


def scored(rows, **options):
    predictions, references = zip(*rows, strict=True) if rows else ((), ())
    checked = check_rows(list(predictions), list(references), known=KNOWN)
    require_sizes(checked)
    return score_rows(checked, **options)


@settings(deadline=None)
@given(st.lists(st.tuples(lists_of_boxes, lists_of_boxes), min_size=1, max_size=4), st.randoms())
def test_order_of_rows_references_and_corners_changes_nothing(rows, random):
    thresholds = [0.25, 0.5, 0.75]
    before = scored(rows, thresholds=thresholds)
    turned = []
    for predicted, references in random.sample(rows, len(rows)):
        rest = predicted[1:] if len(references) == 1 else predicted
        first = predicted[:1] if len(references) == 1 else []
        boxes = first + random.sample(rest, len(rest))
        turned.append(
            ([[*b[2:], *b[:2]] for b in boxes], random.sample(references, len(references)))
        )
    after = scored(turned, thresholds=thresholds)
    for key in ("acc@0.25", "acc@0.5", "acc@0.75", "mean_iou", "extra_boxes"):
        assert after[key] == pytest.approx(before[key], abs=1e-12)


@settings(deadline=None)
@given(st.lists(st.tuples(lists_of_boxes, lists_of_boxes), max_size=4))
def test_higher_thresholds_and_strictness_never_help(rows):
    thresholds = [0.0, 0.25, 0.5, 0.75, 1.0]
    strict = scored(rows, thresholds=thresholds)
    loose = scored(rows, thresholds=thresholds, strict=False)
    for result in (strict, loose):
        values = [result[f"acc@{t:g}"] for t in thresholds]
        assert values == sorted(values, reverse=True)
        assert all(0 <= value <= 1 for value in (*values, result["mean_iou"]))
    assert all(strict[f"acc@{t:g}"] <= loose[f"acc@{t:g}"] for t in thresholds)


def test_several_references_by_hand():
    # Matched: (0,0,10,10) with itself, IoU 1; (20,0,30,10) with (20,0,30,5), IoU 50/100 = 0.5;
    # the third box is left. Hits over max(3, 2): 1/3 above 0.5, 2/3 from 0.5; IoU (1 + 0.5) / 3.
    row = (
        [[20, 0, 30, 10], [0, 0, 10, 10], [50, 50, 60, 60]],
        [[0, 0, 10, 10], [20, 0, 30, 5]],
    )
    strict = scored([row])
    assert strict["acc@0.5"] == pytest.approx(1 / 3)
    assert strict["mean_iou"] == pytest.approx(0.5)
    assert strict["extra_boxes"] == 1
    assert scored([row], strict=False)["acc@0.5"] == pytest.approx(2 / 3)


def test_first_box_counts_for_one_reference_whether_listed_or_not():
    boxes = [[50, 50, 60, 60], [0, 0, 10, 10]]
    for reference in ([0, 0, 10, 10], [[0, 0, 10, 10]]):
        result = scored([(boxes, reference)])
        assert (result["acc@0.5"], result["ious"], result["extra_boxes"]) == (0, [0.0], 1)


def test_boxes_without_area_are_parsed_and_worth_nothing():
    result = scored([([5, 5, 5, 5], [5, 5, 5, 5])], strict=False, thresholds=[0.5])
    assert (result["acc@0.5"], result["unparsed_rate"], result["ious"]) == (0, 0, [0.0])


def test_unparsed_is_wrong_even_at_threshold_zero():
    result = scored([("", [0, 0, 1, 1])], thresholds=[0.0], strict=False)
    assert (result["acc@0"], result["unparsed_rate"], result["boxes"]) == (0, 1, [[]])


PLAIN = [0, 0, 10, 10]
FORMS = {
    "text": ("[0.0, 0.0, 0.5, 0.5]", [PLAIN, PLAIN]),
    "box": ([0, 0, 10, 10], PLAIN),
    "tuple": ((0.0, 0.0, 10.0, 10.0), tuple(PLAIN)),
    "array": (np.array([0, 0, 10, 10]), np.array([PLAIN])),
    "boxes": ([[0, 0, 10, 10], [5, 5, 6, 6]], PLAIN),
    "ragged": ([[0, 0, 10, 10], [0, 0, 9, 0, 9, 9, 0, 9]], [PLAIN, [0, 0, 9, 0, 9, 9, 0, 9]]),
    "quad": ([0, 0, 10, 0, 10, 10, 0, 10], [0, 0, 10, 0, 10, 10, 0, 10]),
    "nothing": ([], PLAIN),
    "empty text": ("", PLAIN),
    "nan": ([float("nan")] * 4, PLAIN),
}


@pytest.mark.parametrize("order", list(itertools.permutations(["text", "box", "ragged"])))
def test_every_form_and_every_way_in_agree(metric, order):
    names = [*order, *(name for name in FORMS if name not in order)]
    predictions = [FORMS[name][0] for name in names]
    references = [FORMS[name][1] for name in names]
    sizes = [[20, 20]] * len(names)
    before = copy.deepcopy((predictions, references, sizes))

    whole = metric.compute(predictions=predictions, references=references, image_sizes=sizes)
    for prediction, reference in zip(predictions, references, strict=True):
        metric.add(prediction=prediction, reference=reference, image_size=[20, 20])
    one_by_one = metric.compute()
    metric.add_batch(predictions=predictions[:3], references=references[:3], image_sizes=sizes[:3])
    metric.add(prediction=predictions[3], reference=references[3])
    mixed = metric.compute(
        predictions=predictions[4:], references=references[4:], image_sizes=sizes[4:]
    )
    metric.add_batch(predictions=predictions, references=references)
    late = metric.compute(image_sizes=sizes)

    assert whole == one_by_one == late
    assert mixed["n"] == whole["n"] == len(names)
    np.testing.assert_equal((predictions, references, sizes), before)
    by_name = dict(zip(names, whole["ious"], strict=True))
    assert by_name == {
        **dict.fromkeys(("box", "tuple", "array", "boxes", "quad", "ragged"), 1.0),
        **dict.fromkeys(("nothing", "empty text", "nan"), 0.0),
        "text": 0.5,  # one box for two references
    }


def test_columns_may_be_arrays(metric):
    boxes = np.array([[0, 0, 10, 10], [5, 5, 9, 9]])
    assert metric.compute(predictions=boxes, references=boxes)["acc@0.5"] == 1.0


edges = st.sampled_from([-2e6, -3, 0, 1, 2.5, 4, 7, 1e7, 1.1e7, 2e7, np.nan, np.inf])
corners = st.integers(0, 6)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.tuples(*[edges | corners] * 4), st.tuples(*[corners] * 4)), min_size=1),
    st.booleans(),
)
def test_arrays_of_boxes_score_as_the_same_boxes_in_lists(metric, rows, strict):
    predictions, references = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    before = predictions.copy(), references.copy()
    options = {"thresholds": [0, 0.3, 1], "strict": strict}
    by_array = metric.compute(predictions=predictions, references=references, **options)
    by_list = metric.compute(
        predictions=predictions.tolist(), references=references.tolist(), **options
    )
    assert by_array == by_list
    np.testing.assert_equal((predictions, references), before)


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        pytest.param(np.zeros((2, 4)), np.array([[0, 0, 1, 1], [0, 0, 1, np.nan]]), "row 1: ref"),
        pytest.param(np.zeros((2, 4)), np.zeros((3, 4)), "row 2 is the first"),
        pytest.param(np.zeros((2, 4), dtype=bool), np.zeros((2, 4)), "row 0: pred"),
        pytest.param(np.zeros((2, 3)), np.zeros((2, 4)), "row 0: pred"),
    ],
)
def test_wrong_arrays_are_named_by_row(metric, predictions, references, message):
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions=predictions, references=references)


def test_no_rows_at_all_is_an_error(metric):
    with pytest.raises(ValueError, match="there are no rows; call compute"):
        metric.compute()


def test_formats_may_differ_by_row(metric):
    result = metric.compute(
        predictions=["[100, 100, 500, 500]"] * 2 + [[100, 100, 500, 500]],
        references=[[10, 20, 50, 100], [20, 10, 100, 50], [10, 20, 50, 100]],
        format=["qwen3_vl", "pixel_xyxy", "permille_xyxy"],
        image_sizes=[[100, 200], None, [100, 200]],
        thresholds=0.99,
    )
    assert result["ious"] == [1.0, 0.0, 1.0]
    assert result["acc@0.99"] == pytest.approx(2 / 3)


def test_no_rows(metric):
    assert metric.compute(predictions=[], references=[]) == {
        "acc@0.5": 0.0,
        "mean_iou": 0.0,
        "unparsed_rate": 0.0,
        "extra_boxes": 0,
        "n": 0,
        "ious": [],
        "boxes": [],
    }


ONE = {"predictions": ["x"], "references": [[1, 2, 3, 4]]}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param({"predictions": [None]}, "row 0: predictions: .*got None", id="None reply"),
        pytest.param({"predictions": [7]}, "row 0: predictions: .*got 7", id="number for a reply"),
        pytest.param({"predictions": [[1, 2, 3]]}, "row 0: predictions: .*of 8", id="3 numbers"),
        pytest.param({"predictions": [[[1, 2, 3, 4], 5]]}, "row 0: .*got 5", id="ragged list"),
        pytest.param({"predictions": "x"}, "predictions: expected a list", id="bare text"),
        pytest.param({"references": [[1, 2, 3]]}, "row 0: references", id="short reference"),
        pytest.param({"references": [[]]}, "row 0: .*at least one box", id="no true box"),
        pytest.param({"references": [None]}, "row 0: references: .*None", id="None reference"),
        pytest.param({"references": ["[1, 2, 3, 4]"]}, "row 0: references", id="text reference"),
        pytest.param({"references": [[1, 2, 3, np.nan]]}, "row 0: .*finite", id="NaN reference"),
        pytest.param({"references": [[1, 2, 3, np.inf]]}, "row 0: .*finite", id="infinite"),
        pytest.param({"references": []}, "row 0 is the first that lacks one", id="lengths"),
        pytest.param({"references": None}, "references: expected a list", id="no references"),
        pytest.param({"format": "qwen"}, "one of auto, qwen_vl, .*got 'qwen'", id="unknown format"),
        pytest.param({"format": ["qwen"]}, "row 0: format", id="unknown format of a row"),
        pytest.param({"format": 3}, "format: expected", id="format is a number"),
        pytest.param({"format": "qwen3_vl"}, "row 0: image_sizes: .*needs", id="no picture size"),
        pytest.param(
            {"format": "qwen2_5_vl", "image_sizes": [[9, 9]]},
            "row 0: input_sizes: .*needs",
            id="no input size",
        ),
        pytest.param({"image_sizes": [9, 9]}, "expected one entry for each of 1 rows", id="flat"),
        pytest.param({"image_sizes": [[9, 0]]}, "row 0: image_sizes: .*width", id="size 0"),
        pytest.param({"thresholds": []}, "thresholds: expected", id="no threshold"),
        pytest.param({"thresholds": [50]}, "thresholds: expected", id="threshold in percent"),
        pytest.param(
            {"format": "kosmos2", "predictions": [[1, 2, 3, 4]], "image_sizes": [[9, 9]]},
            "row 0: predictions: expected a reply text",
            id="numbers for tokens",
        ),
    ],
)
def test_wrong_input_is_named_and_leaves_the_metric_usable(metric, call, message):
    with pytest.raises(ValueError, match=message):
        metric.compute(**{**ONE, **call})
    assert metric.compute(predictions=[PLAIN], references=[PLAIN])["n"] == 1


REPLIES = ["[100, 100, 500, 500]", "[0, 0, 500, 500]", [0, 0, 500, 500], "[1, 2"]
TRUTHS = [[10, 20, 50, 100], [0, 0, 50, 100], [0, 0, 50, 100], [0, 0, 1, 1]]
SIZES = [[100, 200]] * 4
LATE = {"format": "qwen3_vl", "image_sizes": SIZES}


@pytest.mark.parametrize("n_added", range(5))
@pytest.mark.parametrize("keeps_in_memory", [False, True])
def test_rows_added_bare_take_format_and_sizes_of_compute(n_added, keeps_in_memory):
    metric = evaluate.load(FOLDER, keep_in_memory=keeps_in_memory)
    first, rest = slice(None, n_added), slice(n_added, None)
    whole = metric.compute(predictions=REPLIES, references=TRUTHS, **LATE)
    assert whole["ious"] == [1, 1, 1, 0]

    metric.add_batch(predictions=REPLIES[first], references=TRUTHS[first])
    assert len(metric) == n_added
    assert metric.compute(predictions=REPLIES[rest], references=TRUTHS[rest], **LATE) == whole

    for reply, truth, size in zip(REPLIES[first], TRUTHS[first], SIZES[first], strict=True):
        metric.add(prediction=reply, reference=truth, image_size=size)
    late = {**LATE, "image_sizes": SIZES[rest]}  # one for each row given with them
    assert metric.compute(predictions=REPLIES[rest], references=TRUTHS[rest], **late) == whole


def test_a_row_keeps_the_format_that_it_came_with(metric):
    metric.add(prediction="[10, 20, 50, 100]", reference=TRUTHS[0], format="pixel_xyxy")
    metric.add(prediction="[100, 100, 500, 500]", reference=TRUTHS[0])
    result = metric.compute(
        predictions=REPLIES[:1], references=TRUTHS[:1], format="qwen3_vl", image_sizes=SIZES[:3]
    )
    assert result["ious"] == [1, 1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param({"format": "qwen3_vl"}, "row 0: image_sizes", id="size missing"),
        pytest.param({**LATE, "image_sizes": SIZES[:3]}, "each of 2 rows", id="number of sizes"),
        pytest.param({"format": "qwen"}, "format: expected", id="unknown format"),
        pytest.param({"thresholds": 7}, "thresholds", id="thresholds"),
        pytest.param({"strict": "False"}, "strict: expected True or False", id="text for strict"),
        pytest.param({"strict": None}, "strict: expected True or False", id="None for strict"),
        pytest.param(
            {"predictions": ["x", None], "references": [PLAIN] * 2}, "row 3: pred", id="bad row"
        ),
    ],
)
def test_rows_added_before_outlive_an_error(metric, call, message):
    metric.add_batch(predictions=REPLIES[:2], references=TRUTHS[:2])
    with pytest.raises(ValueError, match=message):
        metric.compute(**call)
    assert len(metric) == 2
    late = {**LATE, "image_sizes": SIZES[:2]}
    assert metric.compute(**late)["ious"] == [1, 1]
    assert len(metric) == 0


def test_thresholds_that_look_alike_have_keys_of_their_own(metric):
    # IoU 0.50000005 lies between the two.
    result = metric.compute(
        predictions=[[0, 0, 1, 0.50000005]],
        references=[[0, 0, 1, 1]],
        thresholds=[0.5, 0.5000001, 0.5, 1, 0.0, -0.0],
    )
    keys = [key for key in result if key.startswith("acc@")]
    assert keys == ["acc@0.5", "acc@0.5000001", "acc@1", "acc@0"]
    assert (result["acc@0.5"], result["acc@0.5000001"]) == (1.0, 0.0)


def test_two_processes_at_once_agree_and_run_offline_from_elsewhere(tmp_path):
    program = (
        f"m = evaluate.load({FOLDER!r})\n"
        "for i in range(50): m.add(prediction=[0, 0, 10, 10 + i], reference=[0, 0, 10, 10])\n"
        "print(m.compute()['mean_iou'])"
    )
    expected = sum(10 / (10 + i) for i in range(50)) / 50
    for printed in run_at_once(program, tmp_path):
        assert float(printed) == pytest.approx(expected)
