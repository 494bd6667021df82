"""Whole subsets: letters, what depends on what, and the blind bound of balanced mode."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import CATEGORIES, SUBSET, random_scene

from soubench.builders.scene import normalized
from soubench.builders.sou.blind import PICTURE_BASELINE, blind_baselines
from soubench.builders.sou.picture import prepare
from soubench.builders.sou.questions import (
    Candidate,
    Key,
    Question,
    ask,
    assign_letters,
    candidate,
    sample_key,
)
from soubench.builders.sou.subsets import Task
from soubench.builders.sou.tasks import MODES, Target

KEY = Key("1.0.0", 0)


def candidates(n: int, mode: str = "paper", key: Key = KEY, **options: object) -> list[Candidate]:
    found = [
        candidate(prepare(random_scene(i, **options), SUBSET), mode, key, Task)  # type: ignore[arg-type]
        for i in range(n)
    ]
    return [c for c in found if isinstance(c, Candidate)]


def bare(n: int, prefix: str) -> dict[Task, list[Question]]:
    picture = prepare(random_scene(1), SUBSET)
    return {
        task: [
            Question(task, _renamed(picture, f"{prefix}{i}"), Target("1", ()), ("2", "3", "4"))
            for i in range(n)
        ]
        for task in Task
    }


def _renamed(picture, image_id):
    return replace(picture, image_id=image_id)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 99))
def test_letters_differ_by_at_most_one_in_every_config(sizes, seed):
    subsets = [bare(n, f"s{i}-") for i, n in enumerate(sizes)]
    letters = assign_letters(subsets, Key("1.0.0", seed))

    def spread(counts: Counter[int]) -> int:
        return max(counts[i] for i in range(4)) - min(counts[i] for i in range(4))

    for first in range(len(sizes)):
        for last in range(first + 1, len(sizes) + 1):
            config: Counter[int] = Counter()
            for task in Task:
                per_task: Counter[int] = Counter()
                for chosen in letters[first:last]:
                    per_task.update(chosen[task].values())
                assert spread(per_task) <= 1
                config += per_task
            assert spread(config) <= 1


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 9), min_size=6, max_size=6), min_size=1, max_size=4))
def test_letters_stay_balanced_where_sub_tasks_differ_in_size(sizes):
    subsets = [
        {task: bare(n, f"s{i}-")[task] for task, n in zip(Task, counts, strict=True)}
        for i, counts in enumerate(sizes)
    ]
    letters = assign_letters(subsets, KEY)
    whole: Counter[int] = Counter()
    for task in Task:
        per_task = Counter(letter for chosen in letters for letter in chosen[task].values())
        assert max(per_task[i] for i in range(4)) - min(per_task[i] for i in range(4)) <= 1
        whole += per_task
    if len(sizes) == 1:
        assert max(whole[i] for i in range(4)) - min(whole[i] for i in range(4)) <= 1


def test_letters_do_not_follow_the_order_of_the_pictures():
    (chosen,) = assign_letters([bare(400, "x")], KEY)
    in_order = [chosen[Task.OC][f"x{i}"] for i in range(400)]
    same_as_next = sum(a == b for a, b in pairwise(in_order))
    assert 60 < same_as_next < 140


@pytest.mark.parametrize("mode", MODES)
def test_a_build_is_the_same_in_any_order_of_pictures(mode):
    found = candidates(60, mode)
    one = ask(found, CATEGORIES, mode, KEY)
    other = ask(found[::-1], CATEGORIES, mode, KEY)
    assert one.statistics == other.statistics
    for task in Task:
        assert list(one.questions[task]) == list(other.questions[task])[::-1]


def test_with_equal_statistics_a_further_picture_changes_no_question():
    found = candidates(80)
    before = ask(found, CATEGORIES, "paper", KEY)
    # A picture like one that is there already leaves the ranges of the counts as they are.
    twin = candidate(_renamed(found[7].picture, "twin"), "paper", KEY, Task)
    after = ask([*found, twin], CATEGORIES, "paper", KEY)
    for task in Task:
        *kept, last = after.questions[task]
        assert kept == list(before.questions[task])
        assert last.picture.image_id == "twin"


def test_seed_and_version_change_the_questions():
    pictures = [prepare(random_scene(i), SUBSET) for i in range(40)]
    orders = {
        tuple(p.image_id for p in sorted(pictures, key=lambda p, s=s: sample_key(s, p)))
        for s in range(5)
    }
    assert len(orders) == 5
    targets = {
        str([candidate(p, "paper", key, Task).targets for p in pictures])
        for key in (KEY, Key("1.0.0", 1), Key("1.0.1", 0))
    }
    assert len(targets) == 3


@pytest.mark.parametrize("mode", MODES)
def test_every_question_has_four_different_options(mode):
    asked = ask(candidates(150, mode), CATEGORIES, mode, KEY)
    assert not asked.unable
    for rows in asked.questions.values():
        for question in rows:
            assert len({normalized(o) for o in question.options(0)}) == 4


SKEWED = [60.0, 20, 8, 5, 3, 2, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "least"),
    [
        pytest.param({"objects": (4, 60)}, dict.fromkeys(Task, 2000), id="plain"),
        pytest.param(
            {"objects": (4, 60), "weights": SKEWED},
            dict.fromkeys(Task, 2000) | {Task.CE: 1000},
            id="one category in most objects",
        ),
        pytest.param(
            {"objects": (1, 12), "weights": SKEWED},
            dict.fromkeys(Task, 1000) | {Task.OL: 2000},
            id="few objects",
        ),
        pytest.param(
            {"objects": (20, 60), "oriented": True}, dict.fromkeys(Task, 2000), id="quads"
        ),
    ],
)
def test_in_balanced_mode_no_blind_baseline_reaches_30_percent(options, least):
    found = candidates(4000, "balanced", **options)
    asked = ask(found, CATEGORIES, "balanced", KEY)
    (letters,) = assign_letters([asked.questions], KEY)
    assert not asked.unbalanced
    for task, rows in asked.questions.items():
        chosen = [letters[task][q.picture.image_id] for q in rows]
        for line in blind_baselines(rows, chosen):
            if line.name == PICTURE_BASELINE:
                continue
            # One-sided 99 % upper bound of the measured share; where thinning left fewer than
            # 2,000 rows, of what a share of a quarter may show by chance.
            upper = line.accuracy + 2.33 * sqrt(line.accuracy * (1 - line.accuracy) / line.n)
            chance = 0.25 + 2 * 2.33 * sqrt(0.25 * 0.75 / line.n)
            assert upper <= (0.30 if line.n >= 2000 else max(0.30, chance)), (task, line)
            assert line.n >= least[task], (task, line)


def test_blind_baselines_by_hand():
    picture = prepare(random_scene(1), SUBSET)

    def number(answer: str, *others: str) -> Question:
        return Question(Task.OC, picture, Target(answer, ()), others)

    rows = [number("3", "9", "8", "7"), number("3", "1", "2", "9"), number("8", "1", "8888", "2")]
    lines = {b.name: b.right for b in blind_baselines(rows, [0, 0, 1])}
    assert lines == {
        "constant-letter": 2,  # A, A, B
        # lengths 1111, 1111, 1141: a quarter, a quarter, nothing
        "longest-string": 0.5,
        "smallest-number": 1,  # only the first
        "largest-number": 0,
        "median-number": 2,  # the answers' median is 3: nearest 3, 3, and 2 in the last
        # 3 is right twice, 8 once: right, right, and right (8; 1, 8888, 2 never)
        "most-common-number": 3,
    }


def test_red_box_baseline_reads_the_outline():
    asked = ask(candidates(60), CATEGORIES, "paper", KEY)
    rows = asked.questions[Task.OL]
    lines = {b.name: b.accuracy for b in blind_baselines(rows, [0] * len(rows))}
    assert lines[PICTURE_BASELINE] == 1.0
