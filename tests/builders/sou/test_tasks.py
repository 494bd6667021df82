"""Targets: answers by hand, and what is ambiguous is not asked."""

from collections import Counter
from dataclasses import replace
from math import ceil, floor

import pytest
from scenes import CATEGORIES, SUBSET, make_object, make_quad, make_scene, random_scene

from soubench.builders.keyed import KeyedRandom
from soubench.builders.scene import SceneObject
from soubench.builders.sou.picture import SouPicture, prepare
from soubench.builders.sou.subsets import SUBSETS, Task
from soubench.builders.sou.tasks import ASK, MODES, STROKE_PX, Target


def picture_of(objects: list[SceneObject], size: tuple[int, int] = (960, 540)) -> SouPicture:
    picture = prepare(make_scene(objects, size=size), SUBSET)
    assert isinstance(picture, SouPicture)
    return picture


def target_of(task: Task, picture: SouPicture, mode: str = "paper", seed: int = 0) -> Target | str:
    return ASK[mode][task](picture, KeyedRandom(seed))


STREET = [
    make_object("car", 100, 100, 20, 10),
    make_object("car", 200, 100, 20, 10),
    make_object("bus", 300, 300, 30, 20),
    make_object("people", 50, 400, 5, 12),
    make_object("car", 500, 100, 200, 100),
    make_object("van", 20, 20, 10, 10, ignore=True),
]
"""Four small objects that count: two cars, a bus, a person. The large car and the van do not."""


def test_counts_take_small_objects_that_count():
    picture = picture_of(STREET)
    assert target_of(Task.CE, picture).answer == "3"
    assert target_of(Task.OC, picture).answer == "4"
    for seed in range(20):
        target = target_of(Task.SCC, picture, seed=seed)
        assert target.answer == {"car": "2", "bus": "1", "people": "1"}[target.category]


def test_area_of_1024_is_small_and_1025_is_not():
    picture = picture_of([make_object("car", 0, 0, 32, 32), make_object("car", 99, 0, 41, 25)])
    assert target_of(Task.OC, picture).answer == "1"


@pytest.mark.parametrize("seed", range(30))
def test_outermost_object_by_hand(seed):
    target = target_of(Task.POI, picture_of(STREET), seed=seed)
    by_hand = {"leftmost": "people", "rightmost": "bus", "topmost": "car", "bottommost": "people"}
    assert target.answer == by_hand[target.direction]


def test_a_tie_between_categories_is_not_asked():
    tied = [make_object("car", 10, 10, 8, 8), make_object("bus", 10.4, 500, 8, 8)]
    for seed in range(40):
        target = target_of(Task.POI, picture_of(tied), seed=seed)
        # Left and right edges are less than a pixel apart; top and bottom differ clearly.
        assert target.direction in ("topmost", "bottommost")


def test_edge_and_center_must_agree_on_the_outermost():
    # The bus sticks out further to the left, but the car's center is further left.
    unclear = [make_object("bus", 10, 100, 80, 12), make_object("car", 12, 200, 8, 8)]
    directions = {target_of(Task.POI, picture_of(unclear), seed=s).direction for s in range(40)}
    assert "leftmost" not in directions
    assert "rightmost" in directions


def test_tied_in_every_direction_is_reported():
    crossed = [make_object("car", 10, 10, 20, 20), make_object("bus", 10, 10, 20, 20)]
    assert target_of(Task.POI, picture_of(crossed)) == "poi_every_direction_tied_between_categories"


def test_a_point_in_boxes_of_two_categories_is_not_asked():
    rider = [
        make_object("motor", 100, 100, 20, 20),
        make_object("people", 105, 95, 10, 20),
        make_object("car", 300, 300, 20, 20),
    ]
    for seed in range(20):
        target = target_of(Task.CR, picture_of(rider), seed=seed)
        assert (target.answer, target.point_xy) == ("car", (310, 310))
    assert target_of(Task.CR, picture_of(rider[:2])) == "cr_every_point_in_boxes_of_two_categories"


def test_a_large_object_makes_a_point_ambiguous_too():
    hidden = [make_object("people", 100, 100, 10, 10), make_object("bus", 50, 50, 200, 100)]
    assert target_of(Task.CR, picture_of(hidden)) == "cr_every_point_in_boxes_of_two_categories"


def test_points_and_regions_keep_clear_of_what_does_not_count():
    """It is marked as not counting, but a reader sees it all the same."""
    near = [
        make_object("people", 100, 100, 10, 10),
        make_object("others", 98, 98, 14, 14, ignore=True),
        make_object("car", 300, 300, 20, 20),
    ]
    for seed in range(20):
        assert target_of(Task.CR, picture_of(near), seed=seed).answer == "car"
        assert (
            picture_of(near).categories[
                target_of(Task.OL, picture_of(near), "balanced", seed).objects[0]
            ]
            == "car"
        )
    assert target_of(Task.CE, picture_of(near)).answer == "2"


def test_the_order_of_the_records_changes_nothing():
    scene = random_scene(3)
    shuffled = replace(scene, objects=scene.objects[::-1])
    one, other = prepare(scene, SUBSET), prepare(shuffled, SUBSET)
    for mode in MODES:
        for task in Task:
            assert target_of(task, one, mode) == target_of(task, other, mode)


def test_a_point_shared_by_one_category_is_asked():
    row = [make_object("car", 100, 100, 20, 20), make_object("car", 105, 100, 20, 20)]
    assert target_of(Task.CR, picture_of(row)).answer == "car"


def test_point_is_the_floor_of_the_box_center():
    picture = picture_of([make_object("car", 10.5, 20.25, 5, 4)])
    assert target_of(Task.CR, picture).point_xy == (floor(13.0), floor(22.25))


def test_location_grows_the_box_to_whole_pixels():
    target = target_of(Task.OL, picture_of([make_object("car", 10.2, 20.7, 5.1, 4.4)]))
    assert target.answer == "[10,20,16,26]"
    assert target.mark == (10, 20, 16, 26)


def test_objects_that_coincide_are_not_located():
    twice = [make_object("car", 100, 100, 20, 20), make_object("van", 101, 100, 20, 20)]
    assert target_of(Task.OL, picture_of(twice)) == "ol_every_object_coincides_with_another"
    other = [*twice, make_object("bus", 300, 300, 20, 20)]
    assert {target_of(Task.OL, picture_of(other), seed=s).objects for s in range(20)} == {(2,)}


def test_quads_are_located_by_eight_numbers_rounded():
    picture = picture_of([make_quad("car", 100, 100, 20, 10, 30)])
    target = target_of(Task.OL, picture)
    expected = [floor(v + 0.5) for v in picture.quads_xy8[0]]
    assert target.answer == "[" + ",".join(map(str, expected)) + "]"
    assert len(target.mark) == 8


def test_quads_coincide_by_their_own_overlap_not_their_hulls():
    # Two crossed sticks: equal hulls, hardly any shared area.
    cross = [make_quad("car", 100, 100, 30, 3, 45), make_quad("van", 100, 100, 30, 3, -45)]
    assert isinstance(target_of(Task.OL, picture_of(cross)), Target)


@pytest.mark.parametrize("seed", range(60))
def test_region_holds_exactly_one_small_object(seed):
    picture = prepare(random_scene(seed), SUBSET)
    target = target_of(Task.OL, picture, "balanced", seed)
    if isinstance(target, str):
        assert target == "ol_no_object_alone_in_its_region"
        return
    left, top, right, bottom = target.mark
    assert (left, top) >= (0, 0)
    assert right <= picture.width
    assert bottom <= picture.height
    x1, y1, x2, y2 = target.box
    assert left <= x1 < x2 <= right
    assert top <= y1 < y2 <= bottom
    longer = max(x2 - x1, y2 - y1)
    assert round(3 * longer) <= right - left <= round(6 * longer)
    assert right - left == bottom - top
    touched = [
        i
        for i, (a, b, c, d) in enumerate(picture.boxes_xyxy.tolist())
        if a < right + STROKE_PX
        and c > left - STROKE_PX
        and b < bottom + STROKE_PX
        and d > top - STROKE_PX
    ]
    assert touched == list(target.objects)


@pytest.mark.parametrize("oriented", [False, True], ids=["boxes", "quads"])
@pytest.mark.parametrize("mode", MODES)
def test_every_target_follows_from_the_objects(mode, oriented):
    """A slow second derivation of all six answers on random scenes."""
    for seed in range(80):
        scene = random_scene(seed, oriented=oriented)
        picture = prepare(scene, SUBSET)
        small = sorted(
            (o for o in scene.objects if o.area_px <= 1024), key=lambda o: (o.box_xyxy, o.category)
        )
        counts = Counter(o.category for o in small)
        for task in Task:
            target = target_of(task, picture, mode, seed)
            if isinstance(target, str):
                continue
            first = small[target.objects[0]]
            if task is Task.CE:
                assert target.answer == str(len(counts))
            elif task is Task.OC:
                assert target.answer == str(len(small))
            elif task is Task.SCC:
                assert target.answer == str(counts[target.category])
            elif task is Task.CR:
                x, y = target.point_xy
                here = {
                    o.category
                    for o in scene.objects
                    if o.box_xyxy.x1 <= x + 0.5 <= o.box_xyxy.x2
                    and o.box_xyxy.y1 <= y + 0.5 <= o.box_xyxy.y2
                }
                assert here | {first.category} == {target.answer}
            elif task is Task.POI:
                side, sign = {
                    "leftmost": (0, 1),
                    "topmost": (1, 1),
                    "rightmost": (2, -1),
                    "bottommost": (3, -1),
                }[target.direction]
                outermost = min(small, key=lambda o: sign * o.box_xyxy[side])
                assert outermost.category == target.answer == first.category
            elif not oriented:
                x1, y1, x2, y2 = first.box_xyxy
                assert target.box == (floor(x1), floor(y1), ceil(x2), ceil(y2))


def test_shrinking_makes_the_largest_object_small_and_keeps_proportions():
    big = make_scene(
        [make_object("car", 100, 200, 80, 50), make_object("van", 10, 10, 20, 30, ignore=True)],
        size=(961, 721),
    )
    picture = prepare(big, SUBSETS["underwater"])
    # s = sqrt(1024 / 4000) = 0.50596; 961 s = 486.2, 721 s = 364.8
    assert (picture.width, picture.height, picture.shrunk) == (486, 364, True)
    assert picture.areas_px[0] <= 1024
    assert picture.boxes_xyxy[0].tolist() == pytest.approx(
        [100 * 486 / 961, 200 * 364 / 721, 180 * 486 / 961, 250 * 364 / 721]
    )


def test_shrinking_leaves_nothing_outside_the_picture():
    """width * (w / width) may be a hair more than w, and its ceiling a whole pixel."""
    for width in range(300, 700):
        right = [
            make_object("car", width - 60, 10, 60, 60),
            make_object("bus", 10, width - 40, 40, 40),
        ]
        picture = prepare(make_scene(right, size=(width, width)), SUBSETS["underwater"])
        if isinstance(picture, SouPicture):
            assert picture.int_boxes.max() <= picture.width
            assert picture.boxes_xyxy.max() <= picture.width


def test_a_region_that_the_picture_cannot_hold_is_not_asked():
    tight = picture_of([make_object("car", 20, 12, 25, 25)], size=(64, 50))
    assert target_of(Task.OL, tight, "balanced") == "ol_no_object_alone_in_its_region"


def test_balanced_location_asks_no_object_that_coincides_with_a_large_one():
    hidden = [make_object("car", 103, 103, 30, 30), make_object("bus", 100, 100, 36, 36)]
    assert isinstance(target_of(Task.OL, picture_of(hidden), "balanced"), str)


@pytest.mark.parametrize(
    ("objects", "size", "subset", "reason"),
    [
        pytest.param([], (960, 540), "a-visdrone", "no_small_object", id="no object at all"),
        pytest.param(
            [make_object("car", 0, 0, 99, 99)],
            (960, 540),
            "a-visdrone",
            "no_small_object",
            id="big",
        ),
        pytest.param(
            [make_object("car", 0, 0, 9, 9)],
            (3001, 2000),
            "driving",
            "picture_over_max_pixels",
            id="over 6 megapixels",
        ),
        pytest.param(
            [make_object("car", 0, 0, 9, 9)],
            (960, 232),
            "underwater",
            "picture_side_too_short",
            id="shorter side under 233",
        ),
        pytest.param(
            [make_object("car", 0, 0, 640, 640), make_object("car", 700, 0, 9, 9)],
            (9600, 9600),
            "underwater",
            "object_vanishes_when_shrunk",
            id="under a pixel after shrinking",
        ),
    ],
)
def test_pictures_that_cannot_take_part_are_named_by_reason(objects, size, subset, reason):
    assert prepare(make_scene(objects, size=size), SUBSETS[subset]) == reason


def test_balanced_recognition_asks_rare_categories_as_often_as_common_ones():
    crowd = [make_object("car", 30 * i, 100, 20, 10) for i in range(20)]
    picture = picture_of([*crowd, make_object("bus", 300, 300, 20, 20)])
    answers = Counter(target_of(Task.CR, picture, "balanced", s).answer for s in range(400))
    assert 140 < answers["bus"] < 260
    assert set(CATEGORIES) >= set(answers)
