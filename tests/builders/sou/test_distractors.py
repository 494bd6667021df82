"""Wrong options: their ranges in paper mode, and that balanced ones tell nothing."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import CATEGORIES, SUBSET, random_scene
from shapely.geometry import Polygon, box

from soubench.builders.keyed import KeyedRandom
from soubench.builders.scene import normalized
from soubench.builders.sou.distractors import alike, can_be_alike, draw_distractors
from soubench.builders.sou.picture import prepare
from soubench.builders.sou.questions import Candidate, Key, ask, candidate
from soubench.builders.sou.statistics import Statistics, place, shape_of, thinned_count
from soubench.builders.sou.subsets import Task
from soubench.builders.sou.tasks import MODES, Target

KEY = Key("1.0.0", 0)


def statistics(**changes: object) -> Statistics:
    given = {
        "small_area_px": 1024,
        "categories": CATEGORIES,
        "object_counts": (3, 40),
        "category_counts": (1, 25),
        "answers": {},
        "shape_bins": (),
    }
    return Statistics(**(given | changes))  # type: ignore[arg-type]


def numbers(option: str) -> tuple[int, ...]:
    return tuple(int(v) for v in option.strip("[]").split(","))


def draw(task: Task, answer: str, seed: int, **changes: object) -> list[int]:
    picture = prepare(random_scene(0), SUBSET)
    drawn = draw_distractors(
        task, Target(answer, (0,)), picture, statistics(**changes), "paper", KeyedRandom(seed)
    )
    assert isinstance(drawn, list)
    return [int(o) for o in drawn]


@given(seed=st.integers(0, 10_000), answer=st.integers(1, 8))
def test_enumeration_distractors_lie_in_0_to_number_of_categories(seed, answer):
    drawn = draw(Task.CE, str(answer), seed)
    assert len({answer, *drawn}) == 4
    assert all(0 <= n <= len(CATEGORIES) for n in drawn)


@given(seed=st.integers(0, 10_000), answer=st.integers(3, 40))
def test_counting_distractors_lie_in_the_range_and_keep_off_the_answer(seed, answer):
    drawn = draw(Task.OC, str(answer), seed)
    assert len(set(drawn)) == 3
    assert all(3 <= n <= 40 and abs(n - answer) > 1 for n in drawn)


@given(seed=st.integers(0, 10_000), answer=st.integers(1, 25))
def test_category_counts_exclude_only_the_answer(seed, answer):
    drawn = draw(Task.SCC, str(answer), seed)
    assert len({answer, *drawn}) == 4
    assert all(1 <= n <= 25 for n in drawn)


@pytest.mark.parametrize("seed", range(20))
def test_a_range_too_small_grows_upwards(seed):
    # All pictures hold 3 objects: 2..4 are off, so the three smallest ints above are taken.
    assert sorted(draw(Task.OC, "3", seed, object_counts=(3, 3))) == [5, 6, 7]
    assert sorted(draw(Task.SCC, "1", seed, category_counts=(1, 1))) == [2, 3, 4]


def test_wide_ranges_are_drawn_without_listing_them():
    drawn = [n for s in range(50) for n in draw(Task.OC, "5", s, object_counts=(1, 10**9))]
    assert max(drawn) > 10**8


def test_categories_that_differ_only_in_writing_are_never_options_together():
    picture = prepare(random_scene(0), SUBSET)
    for seed in range(50):
        drawn = draw_distractors(
            Task.CR,
            Target("traffic-sign", (0,)),
            picture,
            statistics(categories=("traffic-sign", "Traffic Sign", "car", "van", "Van", "bus")),
            "paper",
            KeyedRandom(seed),
        )
        assert len({normalized(o) for o in (*drawn, "traffic-sign")}) == 4


def test_fewer_than_four_categories_cannot_be_asked():
    picture = prepare(random_scene(0), SUBSET)
    few = statistics(categories=("car", "van", "bus"))
    got = draw_distractors(Task.POI, Target("car", (0,)), picture, few, "paper", KeyedRandom(0))
    assert got == "fewer_than_four_categories"


@pytest.mark.parametrize("oriented", [False, True], ids=["boxes", "quads"])
@pytest.mark.parametrize("mode", MODES)
def test_location_distractors_keep_their_promises(mode, oriented):
    """IoU by shapely, sizes and places from the strings alone."""
    asked = ask_random(120, mode, oriented=oriented)
    assert len(asked.questions[Task.OL]) > 100
    for question in asked.questions[Task.OL]:
        boxes = [numbers(o) for o in question.options(0)]
        shapes = [
            box(*b) if len(b) == 4 else Polygon(list(zip(b[0::2], b[1::2], strict=True))).buffer(0)
            for b in boxes
        ]
        pairs = [(0, 1), (0, 2), (0, 3)]
        if mode == "balanced":
            pairs += [(1, 2), (1, 3), (2, 3)]
        limit = 0.5 if mode == "paper" else 0.3
        for i, j in pairs:
            shared = shapes[i].intersection(shapes[j]).area
            union = shapes[i].area + shapes[j].area - shared
            assert shared < limit * union
        for b in boxes[1:]:
            if mode == "balanced":
                left, top, right, bottom = question.target.mark
            else:
                left, top, right, bottom = 0, 0, question.picture.width, question.picture.height
            assert left <= min(b[0::2]) < max(b[0::2]) <= right
            assert top <= min(b[1::2]) < max(b[1::2]) <= bottom
            if mode == "paper" and not oriented:
                w, h = b[2] - b[0], b[3] - b[1]
                assert 10 <= w <= 99
                assert 10 <= h <= 99
                assert w * h < 1024
            if mode == "paper" and oriented:
                assert Polygon(list(zip(b[0::2], b[1::2], strict=True))).area < 1024


def ask_random(n: int, mode: str, *, oriented: bool = False, weights: list[float] | None = None):
    scenes = (random_scene(i, oriented=oriented, weights=weights) for i in range(n))
    found = [candidate(prepare(s, SUBSET), mode, KEY, Task) for s in scenes]
    return ask([c for c in found if isinstance(c, Candidate)], CATEGORIES, mode, KEY)


@given(
    counts=st.lists(st.integers(1, 9), min_size=4, max_size=12).filter(
        lambda c: 4 * max(c) <= sum(c)
    ),
    seed=st.integers(0, 10**6),
)
def test_alike_draws_three_other_answers(counts, seed):
    answers = {str(i): n for i, n in enumerate(counts)}
    assert can_be_alike(answers)
    answer = str(seed % len(counts))
    drawn = alike(answer, answers, KeyedRandom(seed))
    assert len({answer, *drawn}) == 4
    assert set(drawn) < set(answers)


def test_alike_makes_every_option_equally_likely():
    """Exact claim of the design: given the four options, each is right with probability 1/4."""
    answers = {"a": 25, "b": 25, "c": 20, "d": 10, "e": 10, "f": 5, "g": 5}
    right_given_options: dict[frozenset[str], Counter[str]] = {}
    for answer, n in answers.items():
        for seed in range(400 * n):
            options = frozenset([answer, *alike(answer, answers, KeyedRandom(answer, seed))])
            right_given_options.setdefault(options, Counter())[answer] += 1
    checked = 0
    for options, right in right_given_options.items():
        total = right.total()
        if total < 1000:
            continue
        checked += 1
        for option in options:
            # 4.5 standard deviations of a fair share
            assert abs(right[option] / total - 0.25) < 4.5 * (0.25 * 0.75 / total) ** 0.5
    assert checked >= 8


@given(st.lists(st.integers(1, 200), min_size=1, max_size=30))
def test_thinning_keeps_the_most_that_no_answer_exceeds_a_quarter(counts):
    k = thinned_count(counts)

    def fits(k: int) -> bool:
        return 4 * min(k, max(counts)) <= sum(min(n, k) for n in counts)

    brute = [k for k in range(1, max(counts) + 1) if fits(k)]
    assert k == (max(brute) if len(counts) >= 4 else None)


@given(
    st.lists(st.integers(-50, 50), min_size=8, max_size=8), st.integers(0, 99), st.integers(0, 99)
)
def test_placing_undoes_taking_the_shape(quad, x, y):
    placed = place(shape_of(quad), x, y)
    assert min(placed[0::2]) == x
    assert min(placed[1::2]) == y
    assert shape_of(placed) == shape_of(quad)
