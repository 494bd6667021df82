"""What is a leaf's box and what is not, against a slow search over all pairs of pixels."""

from itertools import combinations
from math import cos, hypot, pi, radians, sin, sqrt

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from soubench.builders.plants.boxes import box_fault, convex_hull

pixels = st.sets(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=3, max_size=14)
LEAF = [(0, 6), (6, 0), (26, 20), (20, 26), (13, 13)]
"""A strip turned by 45 degrees: its smallest rectangle has these corners."""
TURNED = (0, 6, 20, 26, 26, 20, 6, 0)
HALF_PX = 0.5


def smallest_rectangle(points):
    """The slow way: one side of the smallest rectangle lies along a line through two pixels."""
    best = None
    for (x1, y1), (x2, y2) in combinations(sorted(points), 2):
        length = hypot(x2 - x1, y2 - y1)
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        along = [x * ux + y * uy for x, y in points]
        across = [y * ux - x * uy for x, y in points]
        (a, b), (c, d) = (min(along), max(along)), (min(across), max(across))
        area = (b - a) * (d - c)
        if best is None or area < best[0]:
            corners = [(a, c), (a, d), (b, d), (b, c)]
            best = area, [(s * ux - t * uy, s * uy + t * ux) for s, t in corners]
    return best


def flat(quad):
    (x1, y1), (x2, y2), (x3, y3), (x4, y4) = quad
    return (x3 - x1) * (y4 - y2) == (x4 - x2) * (y3 - y1)


def fault(quad, points):
    found = box_fault(quad, convex_hull(points))
    return found and found.reason


@given(points=pixels, roundings=st.lists(st.sampled_from((-HALF_PX, HALF_PX)), min_size=8))
def test_a_smallest_rectangle_passes_however_its_corners_are_rounded(points, roundings):
    area, corners = smallest_rectangle(points)
    assume(area > 0)
    exact = [value for corner in corners for value in corner]
    worst = [value + move for value, move in zip(exact, roundings, strict=False)]
    whole = [round(value) for value in exact]
    for quad in (exact, worst, whole):
        assume(not flat(list(zip(quad[0::2], quad[1::2], strict=True))))
        assert fault(tuple(quad), points) is None


@given(
    points=pixels, move=st.tuples(st.integers(-9, 9), st.integers(-9, 9)), scale=st.integers(1, 9)
)
@example(points={(0, 0), (9, 1), (8, 9)}, move=(1, 2), scale=1)
def test_a_box_shifted_by_more_than_2_px_is_found(points, move, scale):
    assume(hypot(*move) > 2)
    points = {(x * scale, y * scale) for x, y in points}
    area, corners = smallest_rectangle(points)
    assume(area > 0)
    quad = [(round(x) + move[0], round(y) + move[1]) for x, y in corners]
    assume(not flat(quad))
    assert fault(tuple(value for corner in quad for value in corner), points)


WRONG = [
    pytest.param((0, 0, 0, 99, 99, 99, 99, 0), "box_too_large", id="whole picture"),
    pytest.param((-60, -54, 20, 26, 26, 20, -54, -60), "box_too_large", id="one end far off"),
    pytest.param((0, 0, 0, 26, 26, 26, 26, 0), "box_too_large", id="upright hull of a turned leaf"),
    pytest.param((1, 6, 21, 26, 27, 20, 7, 0), None, id="rounding may shift a turned box by 1"),
    pytest.param((1, 7, 21, 27, 27, 21, 7, 1), "box_off_its_leaf", id="shifted along"),
    pytest.param((1, 5, 21, 25, 27, 19, 7, -1), "box_off_its_leaf", id="shifted across"),
    pytest.param((2, 6, 22, 26, 28, 20, 8, 0), "box_off_its_leaf", id="shifted by 2 in x"),
    pytest.param((0, 9, 20, 29, 26, 23, 6, 3), "box_off_its_leaf", id="shifted by 3 in y"),
    pytest.param((3, 9, 17, 23, 23, 17, 9, 3), "box_off_its_leaf", id="too small"),
    pytest.param((-2, 6, 20, 28, 28, 20, 6, -2), "box_too_large", id="2 px too wide all round"),
    pytest.param((-300, 6, 20, 26, 26, 20, 6, 0), "box_not_rectangle", id="one corner off"),
    pytest.param((0, 6, 26, 20, 20, 26, 6, 0), "box_not_rectangle", id="corners crossed"),
    pytest.param((0, 6, 6, 0, 26, 20, 20, 26), None, id="clockwise"),
    pytest.param(TURNED, None, id="right"),
]


@pytest.mark.parametrize(("quad", "reason"), WRONG)
def test_wrong_boxes_of_a_turned_leaf(quad, reason):
    assert fault(quad, LEAF) == reason


@pytest.mark.parametrize("moved", range(8))
@pytest.mark.parametrize("by", [-1, 1])
def test_an_upright_box_fits_to_the_pixel(moved, by):
    points = [(x, y) for x in range(4, 14) for y in range(6, 11)]
    quad = [4, 6, 4, 10, 13, 10, 13, 6]
    assert fault(tuple(quad), points) is None
    side = {0: (0, 2), 1: (1, 7), 2: (0, 2), 3: (3, 5), 4: (4, 6), 5: (3, 5), 6: (4, 6), 7: (1, 7)}
    for i in side[moved]:
        quad[i] += by
    assert fault(tuple(quad), points)


@given(points=pixels, angle=st.integers(3, 87))
def test_a_tight_rectangle_at_another_angle_passes_only_if_it_is_about_as_small(points, angle):
    points = {(x * 10, y * 10) for x, y in points}
    area, _ = smallest_rectangle(points)
    ux, uy = cos(radians(angle)), sin(radians(angle))
    along = [x * ux + y * uy for x, y in points]
    across = [y * ux - x * uy for x, y in points]
    (a, b), (c, d) = (min(along), max(along)), (min(across), max(across))
    corners = [(a, c), (a, d), (b, d), (b, c)]
    quad = tuple(v for s, t in corners for v in (s * ux - t * uy, s * uy + t * ux))
    # Twice half the perimeter times √½, and three half circles of radius 1 round the corners.
    excess = (b - a) * (d - c) - area - 2 * sqrt(0.5) * (b - a + d - c) - 1.5 * pi
    assume(abs(excess) > 0.1)
    assert fault(quad, points) == ("box_too_large" if excess > 0 else None)
