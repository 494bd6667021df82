"""The door: raw records against the picture they belong to."""

from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from soubench.builders.scene import Mask, ReadReport, Scene
from soubench.builders.sources._door import (
    RawObject,
    RawPicture,
    Source,
    _place_polygon,
    _RejectedError,
    make_scene,
)
from tests.data import draw_picture

NAN, INF = float("nan"), float("inf")


def _box(*box_xywh: float, category: str = "ship", ignore: str = "", name: str = "1") -> RawObject:
    return RawObject(category, box_xywh, None, ignore, name)


def _polygon(*corners: float, mask: Mask | None = None) -> RawObject:
    return RawObject("ship", None, corners, "", "1", mask)


def _scene(
    folder: Path,
    *objects: RawObject,
    size_wh: tuple[int, int] = (64, 48),
    label_wh: tuple[float, float] | None = None,
    orientation: int = 1,
) -> tuple[Scene, ReadReport]:
    path = draw_picture(folder / "a.jpg", size_wh, orientation=orientation)
    report = ReadReport()
    scene = make_scene(RawPicture(path, "a", "g", label_wh, objects), Source("coco", "val"), report)
    assert scene is not None
    return scene, report


def test_box_inside_stays_exact(tmp_path: Path) -> None:
    scene, report = _scene(tmp_path, _box(1.25, 2.5, 10.125, 4))
    (found,) = scene.objects
    assert found.box_xyxy == (1.25, 2.5, 11.375, 6.5)
    assert found.area_px == 10.125 * 4
    assert (report.pictures, report.objects) == (1, 1)
    assert not report.dropped + report.repaired + report.ignored


def test_area_is_the_files_width_times_height_where_floats_would_add_a_little(
    tmp_path: Path,
) -> None:
    assert (0.3 + 32) - 0.3 != 32
    scene, _ = _scene(tmp_path, _box(0.3, 0.3, 32, 32))
    assert scene.objects[0].area_px == 1024


@pytest.mark.parametrize(
    ("box_xywh", "expected", "area"),
    [
        pytest.param((-5, 1, 10, 10), (0, 1, 5, 11), 50, id="left"),
        pytest.param((1, -5, 10, 10), (1, 0, 11, 5), 50, id="top"),
        pytest.param((60, 1, 10, 10), (60, 1, 64, 11), 40, id="right"),
        pytest.param((1, 40, 10, 10), (1, 40, 11, 48), 80, id="bottom"),
        pytest.param((-9, -9, 1e300, 1e300), (0, 0, 64, 48), 64 * 48, id="huge"),
    ],
)
def test_box_past_the_edge_is_clipped_and_counted(
    tmp_path: Path, box_xywh, expected, area: float
) -> None:
    scene, report = _scene(tmp_path, _box(*box_xywh))
    assert scene.objects[0].box_xyxy == expected
    assert scene.objects[0].area_px == area
    assert report.repaired == {"clipped": 1}


def test_box_past_the_edge_by_rounding_is_not_called_clipped(tmp_path: Path) -> None:
    scene, report = _scene(tmp_path, _box(0.1, 0.1, 63.9 + 1e-9, 47.9 + 1e-9))
    assert scene.objects[0].box_xyxy[2:] == (64, 48)
    assert not report.repaired


@pytest.mark.parametrize(
    ("box_xywh", "reason"),
    [
        pytest.param((1, 1, NAN, 5), "not_finite", id="nan"),
        pytest.param((1, 1, INF, 5), "not_finite", id="infinite"),
        pytest.param((-INF, 1, INF, 5), "not_finite", id="both-infinite"),
        pytest.param((1e308, 1, 1e308, 5), "not_finite", id="sum-overflows"),
        pytest.param((1, 1, 0, 5), "degenerate", id="zero-width"),
        pytest.param((1, 1, 5, 0), "degenerate", id="zero-height"),
        pytest.param((9, 9, -5, 5), "degenerate", id="negative-width"),
        pytest.param((1, 1, 0.5, 5), "degenerate", id="under-one-px"),
        pytest.param((63.5, 1, 9, 9), "degenerate", id="under-one-px-once-clipped"),
        pytest.param((64, 1, 9, 9), "outside_picture", id="right-of-it"),
        pytest.param((-9, 1, 9, 9), "outside_picture", id="left-of-it"),
        pytest.param((1, 48, 9, 9), "outside_picture", id="below-it"),
    ],
)
def test_unusable_box_is_dropped_and_counted(tmp_path: Path, box_xywh, reason: str) -> None:
    scene, report = _scene(tmp_path, _box(*box_xywh))
    assert scene.objects == ()
    assert report.dropped == {reason: 1}
    assert report.examples[reason] == ["a: record 1"]


def test_one_px_box_is_kept(tmp_path: Path) -> None:
    scene, _ = _scene(tmp_path, _box(10.1, 10.1, 1, 1))
    assert scene.objects[0].area_px == 1


def test_exact_duplicate_is_dropped_and_near_duplicate_is_not(tmp_path: Path) -> None:
    scene, report = _scene(
        tmp_path,
        _box(1, 1, 9, 9),
        _box(1, 1, 9, 9, name="2"),
        _box(1, 1, 9, 10),
        _box(1, 1, 9, 9, category="car"),
    )
    assert len(scene.objects) == 3
    assert report.dropped == {"duplicate_object": 1}


@pytest.mark.parametrize("reasons", [("", "crowd"), ("crowd", "")])
def test_duplicate_that_does_not_count_decides(tmp_path: Path, reasons: tuple[str, str]) -> None:
    scene, report = _scene(tmp_path, *(_box(1, 1, 9, 9, ignore=reason) for reason in reasons))
    assert [found.ignore for found in scene.objects] == [True]
    assert report.ignored == {"crowd": 1}


@pytest.mark.parametrize(
    ("orientation", "label_wh", "reason", "expected"),
    [
        pytest.param(1, (64, 48), None, (10, 4, 30, 16), id="same-size"),
        pytest.param(1, None, None, (10, 4, 30, 16), id="no-size"),
        pytest.param(1, (48, 64), "size_transposed", (10, 4, 30, 16), id="transposed-not-turned"),
        pytest.param(1, (128, 96), "size_mismatch", (10, 4, 30, 16), id="other-size"),
        pytest.param(6, (64, 48), "exif_turned", (32, 10, 44, 30), id="made-on-unturned-picture"),
        pytest.param(8, (64, 48), "exif_turned", (4, 34, 16, 54), id="turned-the-other-way"),
        pytest.param(6, (48, 64), None, (10, 4, 30, 16), id="made-on-upright-picture"),
        pytest.param(6, None, None, (10, 4, 30, 16), id="no-size-means-upright"),
        pytest.param(3, (64, 48), None, (10, 4, 30, 16), id="half-turn-says-nothing"),
    ],
)
def test_one_exif_rule_for_size_and_boxes(
    tmp_path: Path, orientation: int, label_wh, reason: str | None, expected
) -> None:
    # Orientation 6: (x, y) -> (48 - y, x). Orientation 8: (x, y) -> (y, 64 - x).
    scene, report = _scene(
        tmp_path, _box(10, 4, 20, 12), label_wh=label_wh, orientation=orientation
    )
    assert scene.objects[0].box_xyxy == expected
    assert report.repaired == ({reason: 1} if reason else {})
    assert (scene.width, scene.height) == ((48, 64) if orientation in (6, 8) else (64, 48))


def test_quads_and_polygon_masks_turn_with_the_picture_and_run_lengths_are_left_out(
    tmp_path: Path,
) -> None:
    corners = (10.0, 4.0, 30.0, 4.0, 30.0, 16.0, 10.0, 16.0)
    turned = (44.0, 10.0, 44.0, 30.0, 32.0, 30.0, 32.0, 10.0)
    scene, report = _scene(
        tmp_path,
        _polygon(*corners, mask=Mask((0, 0), polygons=(corners,))),
        RawObject("car", (10, 4, 20, 12), None, "", "2", Mask((48, 64), rle_counts=(0, 3072))),
        label_wh=(64, 48),
        orientation=6,
    )
    assert scene.objects[0].quad_xy8 == turned
    assert scene.objects[0].mask == Mask((64, 48), polygons=(turned,))
    assert scene.objects[1].mask is None
    assert report.repaired == {"exif_turned": 1, "mask_size_mismatch": 1}


@settings(max_examples=300)
@given(
    st.lists(
        st.floats(-40, 100, allow_nan=False).map(lambda v: round(v, 2)), min_size=8, max_size=8
    )
)
def test_quad_area_is_shapelys(corners: list[float]) -> None:
    polygon = shapely.Polygon(np.array(corners).reshape(4, 2))
    expected = shapely.make_valid(polygon).intersection(shapely.box(0, 0, 64, 48)).area
    try:
        placed = _place_polygon(tuple(corners), 64, 48)
    except _RejectedError as rejected:
        reason = str(rejected)
        xs, ys = np.clip(corners[0::2], 0, 64), np.clip(corners[1::2], 0, 48)
        thin = min(np.ptp(xs), np.ptp(ys)) < 1
        assert reason in ("degenerate", "outside_picture")
        assert thin or expected < 1
        return
    assert placed.area_px == pytest.approx(expected, abs=1e-6)
    assert placed.crossing is (not polygon.is_valid)
    assert placed.quad_xy8 is not None
    xs, ys = placed.quad_xy8[0::2], placed.quad_xy8[1::2]
    assert placed.box_xyxy == (min(xs), min(ys), max(xs), max(ys))
    assert min(xs) >= 0
    assert max(xs) <= 64


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        pytest.param((1, 1, 9, NAN, 9, 9, 1, 9), "not_finite", id="nan"),
        pytest.param((1, 1, 9, 9, 20, 20, 5, 5), "degenerate", id="on-one-line"),
        pytest.param((5, 5, 5, 5, 5, 5, 5, 5), "degenerate", id="one-point"),
        pytest.param((70, 1, 90, 1, 90, 9, 70, 9), "outside_picture", id="beside-it"),
        pytest.param((-10, 5, 5, -10, 4, -11, -11, 4), "outside_picture", id="past-the-corner"),
        pytest.param((1, 1, 1e300, 1, 9, 9, 1, 9), "malformed_record", id="beyond-any-picture"),
    ],
)
def test_unusable_quad_is_dropped_and_counted(tmp_path: Path, corners, reason: str) -> None:
    scene, report = _scene(tmp_path, _polygon(*corners))
    assert scene.objects == ()
    assert report.dropped == {reason: 1}


def test_quad_past_the_edge_keeps_clamped_corners_and_the_area_inside(tmp_path: Path) -> None:
    scene, report = _scene(tmp_path, _polygon(-10, 10, 10, -10, 30, 10, 10, 30))
    (found,) = scene.objects
    assert found.quad_xy8 == (0, 10, 10, 0, 30, 10, 10, 30)
    assert found.box_xyxy == (0, 0, 30, 30)
    # A square of 800 px² on its tip; two tips of 10 × 10 px triangles stick out, 100 px² each.
    assert found.area_px == pytest.approx(600)
    assert report.repaired == {"clipped": 1}


def test_crossing_quad_is_kept_with_a_notice(tmp_path: Path) -> None:
    scene, report = _scene(tmp_path, _polygon(0, 0, 20, 20, 20, 0, 0, 20))
    assert scene.objects[0].area_px == pytest.approx(200)
    assert report.repaired == {"quad_self_crossing": 1}


def test_unreadable_picture_is_counted_by_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(b"")
    report = ReadReport()
    picture = RawPicture(path, "a", "a", None, ())
    assert make_scene(picture, Source("coco", "val"), report) is None
    assert report.dropped == {"picture_empty": 1}
    assert report.pictures == 0
