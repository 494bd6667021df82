"""What ``sama`` reads in a reply, how it pairs shapes, and what it makes of the pairs."""

import itertools
import math
import random
import subprocess
import sys
from pathlib import Path

import evaluate
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soubench.metrics.sama import shape_text
from soubench.metrics.sama.assignment import assign, assign_integers, pack
from soubench.metrics.sama.sama import match_shapes, score, score_shapes
from soubench.metrics.sama.shape_text import CATEGORICAL, Shape, read_shapes
from tests.light import LIGHT

FOLDER = str(Path(__file__).parents[2] / "metrics" / "sama")
KINDS = ("Circle", "Square", "Triangle")
COLORS = ("Red", "Blue")
SIDES = ("left of", "right of", "above", "below")


def sentence(
    kind="Circle",
    color="Red",
    quadrant="top left",
    center=(40, 50),
    relation="left of Square",
    rotation=0,
    occluded=False,
):
    return (
        f"A {color} {kind} is located in the {quadrant} quadrant, centred at coordinates "
        f"({center[0]}, {center[1]}), with relative positions described as {relation}, rotated by "
        f"{rotation} degrees, and is {'' if occluded else 'not '}occluded."
    )


def tuple_form(
    kind="Circle",
    color="Red",
    quadrant="top left",
    center=(40, 50),
    relation="left of Square",
    rotation=0,
    occluded=False,
):
    return (
        f"({kind}, quadrant={quadrant}, center_coordinates=({center[0]}, {center[1]}), "
        f"relative_position={relation}, rotation={rotation}, "
        f"occlusion={'Yes' if occluded else 'No'}, color={color})"
    )


FULL = ("circle", "red", "top left", "no", "left of square", (40.0, 50.0), 0.0)
FIRST = sentence()
SECOND = sentence("Square", "Blue", "top right", (150, 60), "right of Circle", 15, True)
SECOND_FULL = ("square", "blue", "top right", "yes", "right of circle", (150.0, 60.0), 15.0)


def partial(**values):
    return tuple(values.get(name) for name in Shape._fields[1:])


BLUE = partial(shape="square", color="blue", center=(7.0, 9.0))
READINGS = [
    pytest.param(FIRST, [FULL], id="sentence"),
    pytest.param(tuple_form(), [FULL], id="tuple"),
    pytest.param(f"{FIRST} {SECOND}", [FULL, SECOND_FULL], id="two sentences"),
    pytest.param(f"{FIRST}\n{tuple_form()}", [FULL, FULL], id="mixed forms"),
    pytest.param(f"[{tuple_form()}, {tuple_form()}]", [FULL, FULL], id="list of tuples"),
    pytest.param(FIRST.upper(), [FULL], id="capitals"),
    pytest.param(FIRST.replace("centred", "centered"), [FULL], id="American spelling"),
    pytest.param(FIRST.replace(" ", "\n"), [FULL], id="line breaks"),
    pytest.param(
        f"Here are the shapes:\n1. {FIRST}\n2. {SECOND}\nI hope this helps!",
        [FULL, SECOND_FULL],
        id="numbered list in prose",
    ),
    pytest.param(
        f"- {FIRST[:-1]}\n- {SECOND[:-1]}", [FULL, SECOND_FULL], id="bullets without full stops"
    ),
    pytest.param(FIRST.replace("Red Circle", "**Red Circle**"), [FULL], id="bold"),
    pytest.param(FIRST.replace("(40, 50)", "[40.0, 50]"), [FULL], id="float in brackets"),
    pytest.param(FIRST.replace("0 degrees", "0°"), [FULL], id="degree sign"),
    pytest.param(
        "There is a red circle in the top left quadrant at (40, 50), to the left of the Square. "
        "It is rotated by 0 degrees and is not occluded.",
        [FULL],
        id="own words",
    ),
    pytest.param(
        "A Circle is located in the top left quadrant, and is occluded.",
        [partial(shape="circle", quadrant="top left", occlusion="yes")],
        id="no color, center, neighbor or rotation",
    ),
    pytest.param(
        FIRST.replace("left of Square", "none"),
        [(*FULL[:4], "none", *FULL[5:])],
        id="no neighbor is a value",
    ),
    pytest.param(
        f"{FIRST} A Blue Square is located in the", [FULL], id="last sentence cut before a value"
    ),
    pytest.param(
        f"{tuple_form()}, (Square, quadrant=top right, rota",
        [FULL, partial(shape="square", quadrant="top right")],
        id="last tuple cut after a value",
    ),
    pytest.param(f"{tuple_form()}, (Square, qua", [FULL], id="last tuple cut before a value"),
    pytest.param(f"```python\n[\n {tuple_form()},\n]\n```", [FULL], id="code fence"),
    pytest.param(
        "('Circle', quadrant='top left', center_coordinates=[40, 50], "
        "relative_position=\"left of Square\", rotation=\"0\", occlusion='No', color='Red',)",
        [FULL],
        id="quotes and trailing comma",
    ),
    pytest.param(
        '{"shape": "Circle", "quadrant": "top-left", "center": {"x": 40, "y": 50}, '
        '"relative_position": "left of the Square", "rotation": 0, "occluded": false, '
        '"color": "Red"}',
        [FULL],
        id="JSON",
    ),
    pytest.param(tuple_form().replace("No", "not occluded"), [FULL], id="occlusion in words"),
    pytest.param(tuple_form().replace("No", "False"), [FULL], id="occlusion as bool"),
    pytest.param(tuple_form().replace("rotation=0", "rotation=0 degrees"), [FULL], id="unit"),
    pytest.param(tuple_form().replace("(", "（").replace(",", "，"), [FULL], id="full width"),
    pytest.param(tuple_form()[1:-1], [FULL], id="tuple without brackets"),
    pytest.param(
        "**Red Circle**:\n- Quadrant: top left\n- Center coordinates: (40, 50)\n"
        "- Relative position: left of Square\n- Rotation: 0 degrees\n- Occlusion: not occluded",
        [FULL],
        id="key by line",
    ),
    pytest.param(
        "Shape: Circle, Color: Red\nShape: Square, Color: Blue",
        [partial(shape="circle", color="red"), partial(shape="square", color="blue")],
        id="shape as a key begins a shape",
    ),
    pytest.param(
        "(Circle, color=None, rotation=unknown, occlusion=maybe, quadrant=top left)",
        [partial(shape="circle", quadrant="top left")],
        id="values that say nothing",
    ),
    pytest.param(
        f"(Circle, color=Red, rotation={'9' * 400})",
        [partial(shape="circle", color="red")],
        id="absurd number",
    ),
    pytest.param(
        "Square(quadrant=top right, color=Blue), Ellipse (color=Green)",
        [
            partial(shape="square", quadrant="top right", color="blue"),
            partial(shape="ellipse", color="green"),
        ],
        id="kind before the bracket",
    ),
    pytest.param(
        "Shape(type='Square', color='Blue')",
        [partial(shape="square", color="blue")],
        id="shape before the bracket is no kind",
    ),
    pytest.param(tuple_form().replace("(Circle,", "(Circle;"), [FULL], id="semicolon after kind"),
    pytest.param(tuple_form().replace(", ", "; ").replace("40; ", "40, "), [FULL], id="semicolons"),
    pytest.param(
        "Shape 1: Blue Square, located in the bottom left quadrant.\n"
        "Shape 2: Green Ellipse, located in the top right quadrant.",
        [
            partial(shape="square", color="blue", quadrant="bottom left"),
            partial(shape="ellipse", color="green", quadrant="top right"),
        ],
        id="numbered shapes",
    ),
    pytest.param(
        "[{'shape': 'Square', 'position': {'quadrant': 'top right', 'center': [7, 9]}, "
        "'color': 'Blue'}, {'shape': 'Ellipse', 'position': {'quadrant': 'top left'}}]",
        [
            partial(shape="square", quadrant="top right", center=(7.0, 9.0), color="blue"),
            partial(shape="ellipse", quadrant="top left"),
        ],
        id="JSON in JSON is a value",
    ),
    pytest.param(
        "{'circle': {'color': 'Red'}, 'square': {'color': 'Blue'}}",
        [partial(color="red"), partial(color="blue")],
        id="brackets beside each other are shapes",
    ),
    pytest.param(
        "There is a square at (7, 9) in the top right quadrant.",
        [partial(shape="square", center=(7.0, 9.0), quadrant="top right")],
        id="at a point",
    ),
    pytest.param("- Blue Square is placed at (7, 9).", [BLUE], id="bullet without an article"),
    pytest.param("", [], id="empty"),
    pytest.param("I cannot see any shapes in this image.", [], id="refusal"),
    pytest.param("A total of 4 shapes are found: circle, square.", [], id="names only"),
    pytest.param("(Circle, top left, (40, 50), Red)", [], id="tuple without keys is not guessed"),
    pytest.param("There are 2 leaves, centred at coordinates (1, 2), (3, 4).", [], id="plant"),
]


@pytest.mark.parametrize(("reply", "expected"), READINGS)
def test_reply_gives_these_shapes(reply, expected):
    assert [shape[1:] for shape in read_shapes(reply)] == expected


GREEN = "A green triangle is placed in the bottom right quadrant."
MORE = [
    pytest.param("It is positioned at (7, 9).", id="it"),
    pytest.param("Here it is centered at (7, 9).", id="here it"),
    pytest.param("This is located at (7, 9).", id="this"),
    pytest.param("Its center is positioned at (7, 9).", id="its center"),
    pytest.param("The center of the shape is located at (7, 9).", id="center of the shape"),
    pytest.param("The center of the triangle is located at (7, 9).", id="center of the kind"),
    pytest.param("The shape is centered at (7, 9).", id="the shape"),
    pytest.param("This object is situated at (7, 9).", id="this object"),
    pytest.param("The triangle is located at (7, 9).", id="the kind"),
    pytest.param("This green triangle is located at (7, 9).", id="color and kind"),
    pytest.param("They are located at (7, 9).", id="they"),
    pytest.param("Both are located at (7, 9).", id="both"),
    pytest.param("A thick outline is located at (7, 9).", id="a part of it"),
]


@pytest.mark.parametrize("more", MORE)
def test_what_refers_to_a_shape_goes_on_with_it_and_with_its_text(more):
    (shape,) = read_shapes(f"{GREEN} {more} Fine.")
    assert shape == Shape(
        f"{GREEN} {more}".lower(),
        "triangle",
        "green",
        "bottom right",
        center=(7.0, 9.0),
    )


@pytest.mark.parametrize("more", MORE)
def test_what_refers_to_no_shape_begins_none(more):
    if "triangle" not in more:
        assert read_shapes(more) == []


def test_several_sentences_about_one_shape_score_as_one():
    parts = (
        "A Red Circle is located in the top left quadrant, to the left of the Square. It is "
        "positioned at (40, 50), rotated by 0 degrees, and is not occluded."
    )
    result = score([parts], [FIRST])
    assert (result["sama"], result["n_surplus"], result["center_rmse"]) == (1.0, 0, 0.0)


@pytest.mark.parametrize(
    "words",
    [
        "The image is located in the top left.",
        "Sorry, the picture is in the bottom right quadrant of the canvas.",
        "The background is located at (1, 2).",
        "My answer is in the top left quadrant.",
        "The figures are positioned in the top left quadrant.",
        "These shapes are placed at (1, 2).",
        "All objects are located in the bottom left quadrant.",
        "Nothing is located in the top left quadrant.",
        "There are 2 dots, placed at (1, 2).",
        "One is located in the top left, the other is located in the top right.",
        "Another shape is located at (1, 2).",
        "The second object is located at (1, 2).",
        "A blue shape is located at (1, 2).",
    ],
)
def test_a_head_that_names_no_shape_begins_none_and_keeps_its_attributes(words):
    assert read_shapes(words) == []
    assert read_shapes(f"{words} {FIRST}") == read_shapes(FIRST)
    assert read_shapes(f"{GREEN} {words}") == read_shapes(GREEN)
    assert score([words], [FIRST])["unparsed"] == 1


@pytest.mark.parametrize(
    "aside",
    [
        " with a black outline",
        " having a thin border",
        " of small size",
        ", which has a rim,",
        ", drawn in ink,",
        " that",
        ", which",
    ],
)
def test_words_between_name_and_verb_do_not_hide_the_shape(aside):
    reply = FIRST.replace("Circle", f"Circle{aside}", 1)
    assert read_shapes(reply) == [Shape(reply.lower(), *FULL)]


def test_the_kind_named_again_is_a_shape_of_its_own_where_its_attributes_differ():
    again = "The Red Circle is located in the top right quadrant."
    assert [shape.quadrant for shape in read_shapes(f"{FIRST} {again}")] == [
        "top left",
        "top right",
    ]


@pytest.mark.parametrize(
    ("end", "center", "rotation"),
    [
        pytest.param(", centred at (120, 45", None, None, id="point"),
        pytest.param(", centred at (120, 45)", (120.0, 45.0), None, id="closed point"),
        pytest.param(" at coordinates 120, 45.5", None, None, id="decimal"),
        pytest.param(", rotated by 3", None, None, id="rotation"),
        pytest.param(", rotated by 3.", None, 3.0, id="rotation and full stop"),
        pytest.param(", rotated by 30\n", None, 30.0, id="rotation and line break"),
        pytest.param(", rotated by 30 ", None, 30.0, id="rotation and blank"),
        pytest.param(", rotated by 30 deg", None, 30.0, id="rotation and unit"),
    ],
)
def test_a_number_that_ends_the_reply_may_be_cut_off(end, center, rotation):
    (shape,) = read_shapes(f"A Red Circle is located in the top left quadrant{end}")
    assert (shape.quadrant, shape.center, shape.rotation) == ("top left", center, rotation)


def test_a_number_that_ends_a_tuple_may_be_cut_off():
    (shape,) = read_shapes("(Circle, quadrant=top left, rotation=1")
    assert shape.rotation is None
    (shape,) = read_shapes("(Circle, quadrant=top left, center_coordinates=(10, 1")
    assert shape.center is None


def test_text_of_a_shape_is_cut_from_the_reply_without_its_surroundings():
    reply = f"Sure!  Here:\n1. {FIRST}\n2. {tuple_form()},\nThe image is in RGB."
    assert [shape.text for shape in read_shapes(reply)] == [FIRST.lower(), tuple_form().lower()]


def test_text_of_a_shape_is_in_normal_form():
    (shape,) = read_shapes("A  Ｒed Circle\nis located in the top\tleft quadrant.")
    assert shape.text == "a red circle is located in the top left quadrant."


@pytest.mark.parametrize(
    ("form", "texts"),
    [("sentence", [FIRST.lower()]), ("tuple", [tuple_form().lower()])],
)
def test_format_leaves_the_other_form_out(form, texts):
    read = read_shapes(f"{FIRST}\n{tuple_form()}", form)
    assert [shape.text for shape in read] == texts


described = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "color": st.sampled_from(COLORS),
        "quadrant": st.sampled_from(["top left", "bottom right"]),
        "center": st.tuples(st.integers(0, 3), st.integers(0, 3)),
        "relation": st.builds("{} {}".format, st.sampled_from(SIDES[:2]), st.sampled_from(KINDS)),
        "rotation": st.sampled_from([0, 15]),
        "occluded": st.booleans(),
    }
)


@given(st.lists(described, min_size=1, max_size=6), st.sampled_from([sentence, tuple_form]))
def test_template_read_fast_and_mark_by_mark_is_the_same(shapes, write):
    text = " ".join(write(**shape) for shape in shapes)
    pattern = shape_text._PATTERNS["auto"]
    slow = shape_text._read_marks(shape_text.normal_form(text), pattern, 0)
    assert read_shapes(text) == slow
    assert [shape.shape for shape in slow] == [shape["kind"].lower() for shape in shapes]


@given(st.text(alphabet="aA (){}[]=:,.'\"\n-circle quadrant=(1, 2) is located", max_size=200))
def test_any_text_can_be_read(text):
    for shape in read_shapes(text):
        assert shape.text


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "(",
        "described as ",
        "(circle, ",
        "shape: ",
        "\u0301\u0316",
        "- ",
        ". a",
        "in the ",
        "1",
        "a b with ",
        "it is located ",
        "={color=,",
        "the shape is located at (1, 2). ",
    ],
)
def test_a_megabyte_of_junk_is_read_in_linear_time(piece):
    """Quadratic work on it would take hours."""
    assert read_shapes(piece * (1_000_000 // len(piece))) == []


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def brute_force(predicted, reference, distance=levenshtein):
    """Return the least (distance, wrong, unread, center, unread, rotation) of any assignment."""
    short, long = sorted((predicted, reference), key=len)
    is_swapped = short is not predicted
    found = []
    for chosen in itertools.permutations(range(len(long)), len(short)):
        pairs = [(short[i], long[j]) for i, j in enumerate(chosen)]
        found.append(totals([(b, a) if is_swapped else (a, b) for a, b in pairs], distance))
    return min(found)


def totals(pairs, distance=levenshtein):
    edits = wrong = no_center = center = no_rotation = rotation = 0
    for p, r in pairs:
        edits += distance(p.text, r.text)
        for name in CATEGORICAL:
            wanted = getattr(r, name)
            wrong += wanted is not None and getattr(p, name) != wanted
        if p.center is None or r.center is None:
            no_center += 1
        else:
            dx, dy = p.center[0] - r.center[0], p.center[1] - r.center[1]
            center += round(1000 * math.sqrt((dx * dx + dy * dy) / 2))
        if p.rotation is None or r.rotation is None:
            no_rotation += 1
        else:
            rotation += round(abs(p.rotation - r.rotation))
    return edits, wrong, no_center, center, no_rotation, rotation


# Texts of few letters and values of few kinds: nearly every sample ties in several rules.
tied_shapes = st.builds(
    Shape,
    text=st.text(alphabet="ab", max_size=3),
    shape=st.sampled_from(["x", "y", None]),
    color=st.sampled_from(["x", "y", None]),
    center=st.none() | st.tuples(st.integers(0, 2), st.integers(0, 300)),
    rotation=st.none() | st.sampled_from([0.0, 15.0, 30.0]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(tied_shapes, min_size=1, max_size=5), st.lists(tied_shapes, min_size=1, max_size=5))
def test_pairing_is_the_least_of_all_assignments_rule_after_rule(predicted, reference):
    pairs = match_shapes(predicted, reference)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert len(pairs) == min(len(predicted), len(reference))
    chosen = totals([(predicted[i], reference[j]) for i, j in pairs])
    assert chosen == brute_force(predicted, reference)


@pytest.mark.parametrize("length", [3, 300, 30_000])
def test_pairing_of_six_shapes_is_the_least_below_and_beyond_what_a_double_holds(length):
    rng = random.Random(length)
    texts = ["ab" * length, "a" * length, "b" * length]

    def distance(a, b):
        # Dropping one kind of letter, or turning all of them.
        return 0 if a == b else length

    def shape():
        return Shape(
            rng.choice(texts),
            rng.choice("xy"),
            center=rng.choice([None, (float(rng.randrange(224)), 7.0)]),
            rotation=rng.choice([None, 0.0, 72.0]),
        )

    for _ in range(4):
        predicted = [shape() for _ in range(6)]
        reference = [shape() for _ in range(6)]
        pairs = match_shapes(predicted, reference)
        chosen = totals([(predicted[i], reference[j]) for i, j in pairs], distance)
        assert chosen == brute_force(predicted, reference, distance)


@given(
    st.integers(1, 8).flatmap(
        lambda k: st.tuples(
            st.just(k),
            st.lists(
                st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 10**6)),
                min_size=2 * k,
                max_size=2 * k,
            ),
        )
    )
)
def test_packed_sums_compare_like_the_sums_one_after_the_other(case):
    k, costs = case
    packed = pack(list(zip(*costs, strict=True)), k)
    one, other = (tuple(map(sum, zip(*part, strict=True))) for part in (costs[:k], costs[k:]))
    assert (sum(packed[:k]) < sum(packed[k:])) == (one < other)
    assert (sum(packed[:k]) == sum(packed[k:])) == (one == other)


@settings(deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from([3, 10**6, 10**12, 10**30]),
    st.randoms(use_true_random=False),
)
def test_assignment_is_exact_for_integers_of_any_size(n, m, size, rng):
    costs = [rng.randrange(size) for _ in range(n * m)]
    pairs = assign(costs, n, m)
    k = min(n, m)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs) == k
    best = min(
        sum(costs[i * m + j] for i, j in zip(rows, columns, strict=True))
        for rows in itertools.combinations(range(n), k)
        for columns in itertools.permutations(range(m), k)
    )
    assert sum(costs[i * m + j] for i, j in pairs) == best


def test_both_solvers_agree_on_many_shapes():
    rng = random.Random(1)
    for n, m in ((12, 12), (5, 30)):
        costs = [[rng.randrange(1000) for _ in range(m)] for _ in range(n)]
        flat = [cost for row in costs for cost in row]
        total = sum(costs[i][j] for i, j in assign(flat, n, m))
        assert sum(costs[i][j] for i, j in assign_integers(costs)) == total


@settings(max_examples=60, deadline=None)
@given(
    st.lists(described, max_size=5),
    st.lists(described, max_size=5),
    st.randoms(use_true_random=False),
)
def test_order_of_shapes_never_matters_and_values_are_bounded(predicted, reference, rng):
    def texts(shapes):
        return " ".join(sentence(**shape) for shape in shapes)

    result = score([texts(predicted)], [texts(reference)])
    rng.shuffle(predicted)
    rng.shuffle(reference)
    assert score([texts(predicted)], [texts(reference)]) == result
    assert 0 <= result["sama_exact"] <= result["sama"] <= 1
    for table in (result["accuracy"], result["precision"], result["recall"], result["f1"]):
        assert all(0 <= value <= 1 for value in table.values())
    # Every reference has all five attributes, so the score is the mean of the five.
    assert sum(result["accuracy"].values()) / 5 == pytest.approx(result["sama"])
    swapped = score([texts(reference)], [texts(predicted)])
    assert swapped["sama"] == pytest.approx(result["sama"])
    assert score([texts(reference)], [texts(reference)])["sama_exact"] == 1


CASES = [
    # 1 of 5 attributes wrong in one of two pairs: (4/5 + 1) / 2, exact 1/2
    pytest.param(
        [sentence(color="Blue"), SECOND],
        [FIRST, SECOND],
        {"sama": 0.9, "sama_exact": 0.5, "center_rmse": 0.0},
        id="one color wrong",
    ),
    # 1 perfect pair / max(2, 1)
    pytest.param(
        [FIRST],
        [FIRST, SECOND],
        {"sama": 0.5, "sama_exact": 0.5, "n_missing": 1, "n_pairs": 1},
        id="one missing",
    ),
    # 1 perfect pair / max(1, 3)
    pytest.param([FIRST, SECOND, SECOND], [FIRST], {"sama": 1 / 3, "n_surplus": 2}, id="surplus"),
    # (5, 12): sqrt((25 + 144) / 2) = 9.19239, distance 13; rotation |72 - 0|
    pytest.param(
        [sentence(center=(45, 62), rotation=72)],
        [FIRST],
        {
            "sama": 1.0,
            "center_rmse": math.sqrt(169 / 2),
            "center_distance": 13.0,
            "rotation_rmse": 72.0,
        },
        id="errors",
    ),
    # no wrap-around: 350 against 0 is 350, not 10
    pytest.param([sentence(rotation=350)], [FIRST], {"rotation_rmse": 350.0}, id="no wrap-around"),
    # unread rotation leaves its mean: only the pair with 15 against 15 counts
    pytest.param(
        [FIRST.replace(", rotated by 0 degrees", ""), SECOND],
        [FIRST, SECOND],
        {"rotation_rmse": 0.0, "n_rotation": 1, "n_center": 2, "sama": 1.0},
        id="unread rotation",
    ),
    # the reference names shape and color only: 1 of 2 counted attributes right
    pytest.param(
        ["(Circle, color=Blue, quadrant=top left)"],
        ["(Circle, color=Red)"],
        {"sama": 0.5, "sama_exact": 0.0},
        id="only what the reference has counts",
    ),
    pytest.param([], [FIRST], {"sama": 0.0, "center_rmse": None, "unparsed": 1}, id="nothing said"),
    pytest.param([FIRST], [], {"sama": 0.0, "n_surplus": 1, "unparsed": 0}, id="nothing there"),
    pytest.param([], [], {"sama": 1.0, "sama_exact": 1.0, "unparsed": 0}, id="both empty"),
    pytest.param(["No idea"], [], {"sama": 0.0, "unparsed": 1}, id="words, but nothing there"),
    pytest.param(
        ["<think>", FIRST, "</think>", SECOND], [SECOND], {"sama": 1.0}, id="thought is dropped"
    ),
    pytest.param(["<think>", FIRST], [FIRST], {"sama": 0.0, "unparsed": 1}, id="unclosed thought"),
    # each pair has 4 of 5 right; frequencies would not notice
    pytest.param(
        [sentence(color="Blue"), sentence("Square", "Red")],
        [sentence(color="Red"), sentence("Square", "Blue")],
        {"sama": 0.8, "sama_exact": 0.0},
        id="colors swapped",
    ),
]


@pytest.mark.parametrize(("predicted", "reference", "expected"), CASES)
def test_hand_computed(predicted, reference, expected):
    result = score([" ".join(predicted)], [" ".join(reference)])
    assert {key: result[key] for key in expected} == pytest.approx(expected)


def test_data_set_value_is_the_mean_of_pictures_not_of_shapes():
    # 1/2 over 2 shapes and 1 over 1: (0.5 + 1) / 2, pooled over shapes it would be 2/3
    result = score([FIRST, FIRST], [f"{FIRST} {SECOND}", FIRST])
    assert result["sama"] == 0.75
    assert result["sama_per_sample"] == [0.5, 1.0]
    assert (result["n_pairs"], result["n_missing"], result["n_samples"]) == (2, 1, 2)


def test_pictures_without_a_pair_leave_the_errors():
    result = score([sentence(center=(40, 60)), ""], [FIRST, FIRST])
    assert result["center_rmse"] == pytest.approx(10 / math.sqrt(2))
    assert result["center_rmse_per_sample"] == [pytest.approx(10 / math.sqrt(2)), None]
    assert result["n_rmse_samples"] == 1


def test_reference_without_categorical_attributes_leaves_nothing_to_be_wrong():
    reference = [Shape("a", center=(1.0, 2.0))]
    sample = score_shapes([Shape("b", "circle")], reference)
    assert (sample.sama, sample.sama_exact) == (1.0, 1.0)
    assert sample.accuracy["shape"] is None


def test_no_rows_give_the_documented_values():
    result = evaluate.load(FOLDER).compute(predictions=[], references=[])
    assert (result["sama"], result["sama_exact"], result["f1_macro"]) == (0.0, 0.0, 0.0)
    assert result["center_rmse"] is result["rotation_rmse"] is result["center_distance"] is None
    assert result["n_samples"] == result["unparsed"] == 0


ROWS = [
    ([FIRST, SECOND, "?"], [SECOND, SECOND, FIRST]),
    ([f"{FIRST} {SECOND}", "", tuple_form()], [FIRST, "", FIRST]),
]


@pytest.mark.parametrize(("predictions", "references"), ROWS)
def test_add_and_add_batch_agree_with_compute_and_change_nothing(predictions, references):
    before = (list(predictions), list(references))
    metric = evaluate.load(FOLDER)
    at_once = metric.compute(predictions=predictions, references=references)
    for prediction, reference in zip(predictions, references, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert metric.compute() == at_once
    metric.add_batch(predictions=predictions[:1], references=references[:1])
    metric.add_batch(predictions=predictions[1:], references=references[1:])
    assert metric.compute() == at_once
    assert (predictions, references) == before
    backwards = metric.compute(predictions=predictions[::-1], references=references[::-1])
    assert backwards["sama"] == pytest.approx(at_once["sama"])


def test_two_loaded_metrics_can_be_filled_at_the_same_time():
    one, two = evaluate.load(FOLDER), evaluate.load(FOLDER, keep_in_memory=True)
    third = evaluate.load(FOLDER)
    for metric in (one, two, third):
        metric.add(prediction=FIRST, reference=FIRST)
    two.add(prediction="?", reference=FIRST)
    assert [metric.compute()["sama"] for metric in (one, two, third)] == [1.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            {"predictions": [FIRST, None], "references": [FIRST, FIRST]},
            "row 1: predictions: expected the text .* got None",
            id="None",
        ),
        pytest.param(
            {"predictions": [FIRST, 3], "references": [FIRST, FIRST]},
            "row 1: predictions: .* got 3",
            id="number",
        ),
        pytest.param(
            {"predictions": [FIRST], "references": [[FIRST]]},
            "row 0: references: expected the text",
            id="list of texts",
        ),
        pytest.param(
            {"predictions": [FIRST], "references": [FIRST, FIRST]},
            "row 1 is the first",
            id="length",
        ),
        pytest.param({"predictions": FIRST, "references": [FIRST]}, "expected a list", id="bare"),
        pytest.param(
            {"predictions": {FIRST: 1}, "references": [FIRST]},
            "predictions: expected a list with one text per row, got {",
            id="dict",
        ),
        pytest.param(
            {"predictions": [FIRST] * 2, "references": [FIRST, "two shapes"]},
            "row 1: references: expected shapes .* got 'two shapes'",
            id="reference without shapes",
        ),
        pytest.param(
            {"predictions": [FIRST], "references": [FIRST], "format": "json"},
            "expected one of 'auto', 'sentence', 'tuple', got 'json'",
            id="unknown format",
        ),
        pytest.param(
            {"predictions": [FIRST], "references": [FIRST], "zero_division": "warn"},
            "zero_division: expected a number of 0 to 1, got 'warn'",
            id="zero_division",
        ),
    ],
)
def test_bad_input_is_named(arguments, message):
    metric = evaluate.load(FOLDER)
    with pytest.raises(ValueError, match=message):
        metric.compute(**arguments)
    assert metric.compute(predictions=[FIRST], references=[FIRST])["sama"] == 1.0


def test_lone_surrogates_do_not_stop_a_run():
    result = evaluate.load(FOLDER).compute(predictions=[f"\ud800 {FIRST}"], references=[FIRST])
    assert result["sama"] == 1.0


def test_format_reaches_the_reading_of_replies_only():
    metric = evaluate.load(FOLDER)
    result = metric.compute(predictions=[FIRST], references=[tuple_form()], format="sentence")
    assert result["sama"] == 1.0
    result = metric.compute(predictions=[FIRST], references=[FIRST], format="tuple")
    assert (result["sama"], result["unparsed_rate"]) == (0.0, 1.0)


def test_what_is_unparsed_is_told_per_sample():
    result = score(["No idea.", FIRST, ""], [FIRST, FIRST, ""])
    assert result["unparsed_per_sample"] == [True, False, False]


def test_metric_loads_by_path_without_network_from_elsewhere(tmp_path):
    program = (
        f"{LIGHT}import evaluate; m = evaluate.load({FOLDER!r}); "
        f"print(m.compute(predictions=[{FIRST!r}], references=[{FIRST!r}])['sama'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"HF_HOME": str(tmp_path), "HF_EVALUATE_OFFLINE": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1.0"
