"""What one record is asked about: what it says, as it was said, or what its objects prove."""

import pytest

from soubench.builders.demo_rrs.sites import SIZE_WH, SUBTYPES, changed_site, make_site
from soubench.builders.demo_rrs.write import CHANGES
from soubench.builders.errors import FormatError
from soubench.builders.rrs.geometry import (
    compass_axis,
    compass_direction,
    picture_direction,
)
from soubench.builders.rrs.prompts import PROMPT_FILE, load_prompts
from soubench.builders.rrs.questions import Subject, ask
from soubench.builders.rrs.record import (
    Attribute,
    CompassRelation,
    Count,
    Expression,
    Facility,
    Measurement,
    Object,
    Orientation,
    PictureRelation,
    Record,
    TemporalFact,
)
from soubench.builders.rrs.taxonomy import LEAF_TASKS, SUB_DIMENSIONS, Task, configs


def asked(size_wh=(400, 300), ways=4, **fields):
    record = Record(id="r", images=["r.png"], **fields)
    return ask(Subject(record, size_wh, load_prompts(), ways, ("1.0.0", 0)))


def of(task, found):
    return [d for d in found.drafts if d.task is task]


def boxes(*corners, category="ship"):
    return [Object(category=category, box_xyxy=tuple(map(float, c))) for c in corners]


def expressions(objects, **fields):
    """All expressions that single an object out, by asking with many ids."""
    record = Record(id="r", images=["r.png"], objects=objects, exhaustive=["ship"], **fields)
    subject = Subject(record, (400, 300), load_prompts(), 4, ("1.0.0", 0))
    return {n.text: n.figure.index for n in subject.named}


def test_the_taxonomy_has_the_papers_tasks():
    assert len(LEAF_TASKS) == 20
    assert len(SUB_DIMENSIONS) == 7
    assert len(configs()) == 20 + 7 + 1
    assert {sub.dimension for sub in SUB_DIMENSIONS.values()} == {
        "perception",
        "reasoning",
        "robustness",
    }
    assert configs()["perception-object"] == (Task.OC, Task.VG, Task.AR, Task.OE)
    assert configs()["reasoning-functional"] == (Task.UI, Task.AI)
    assert configs()["all"] == tuple(Task)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(boxes((10, 10, 50, 30)), {"the only ship": 0}, id="one"),
        pytest.param(boxes((10, 10, 13, 30)), {}, id="3 px wide: too small to point at"),
        pytest.param(
            boxes((10, 10, 50, 30), (10, 100, 42, 120)),
            # 800 px² and 640 px² are 1.25 apart; centers lie 4 px apart of at least 20
            {
                "the largest ship": 0,
                "the smallest ship": 1,
                "the topmost ship": 0,
                "the bottommost ship": 1,
            },
            id="a quarter larger",
        ),
        pytest.param(
            boxes((10, 10, 50, 30), (10, 100, 43, 120)),
            {"the topmost ship": 0, "the bottommost ship": 1},
            id="less than a quarter larger",
        ),
        pytest.param(
            # left edges 10 and 30, right edges 50 and 70: 20 px are 5 % of 400
            boxes((10, 10, 50, 50), (30, 12, 70, 52)),
            {"the leftmost ship": 0, "the rightmost ship": 1},
            id="5 % of the width",
        ),
        pytest.param(boxes((10, 10, 50, 50), (29, 12, 69, 52)), {}, id="less than 5 %"),
        pytest.param(
            # The left edge of the second one leads, the center of the first one.
            boxes((40, 10, 60, 30), (10, 10, 150, 30)),
            {"the largest ship": 1, "the smallest ship": 0, "the rightmost ship": 1},
            id="edges and centers disagree",
        ),
        pytest.param(boxes((10, 10, 50, 30), category="pier"), {}, id="not labelled completely"),
    ],
)
def test_expressions_refer_to_exactly_one_object(objects, expected):
    assert expressions(objects) == expected


def test_size_is_asked_for_only_where_box_and_corners_agree():
    thin = (10.0, 10.0, 12.0, 8.0, 112.0, 108.0, 110.0, 110.0)
    objects = [
        Object(category="ship", box_xyxy=(10, 8, 112, 110), quad_xy8=thin),
        Object(
            category="ship",
            box_xyxy=(200, 200, 240, 240),
            quad_xy8=(200, 200, 240, 200, 240, 240, 200, 240),
        ),
    ]
    assert "the largest ship" not in expressions(objects)


@pytest.mark.parametrize(
    ("target", "reference", "expected"),
    [
        pytest.param((0, 0, 10, 10), (50, 0, 60, 10), "left", id="left"),
        pytest.param((50, 0, 60, 10), (0, 50, 10, 60), "upper right", id="upper right"),
        pytest.param((0, 50, 10, 60), (0, 0, 10, 10), "below", id="below"),
        # 22.5 degrees is the border: 50 to the right, 20 up
        pytest.param((50, 0, 60, 10), (0, 20, 10, 30), None, id="near the border"),
        pytest.param((0, 0, 60, 10), (50, 0, 110, 10), None, id="side by side but overlapping"),
        pytest.param((0, 0, 40, 40), (30, 30, 70, 70), None, id="diagonal but overlapping"),
    ],
)
def test_directions_are_clear_or_not_asked(target, reference, expected):
    assert picture_direction(target, reference) == expected


def test_compass_directions_follow_north():
    right, left = (50, 0, 60, 10), (0, 0, 10, 10)
    assert compass_direction(right, left, 0) == "east"
    # North points to the right: what lies right lies north.
    assert compass_direction(right, left, 90) == "north"
    assert compass_direction(right, left, 45) == "northeast"
    assert compass_direction(right, left, 20) is None


def test_axes_repeat_after_half_a_turn():
    assert compass_axis(5) == compass_axis(185) == compass_axis(178) == "north-south"
    assert compass_axis(90) == compass_axis(270) == "east-west"
    assert compass_axis(45) == "northeast-southwest"
    assert compass_axis(135) == "northwest-southeast"
    assert compass_axis(22) is None


def test_what_a_record_says_is_asked_once_each_and_nothing_is_derived_besides():
    found = asked(
        objects=boxes((10, 10, 50, 30)),
        exhaustive=["ship", "crane"],
        counts=[Count(target="piers", count=3), Count(target="cranes on rails", count=0)],
        attributes=[Attribute(target="the pier", aspect="shape", value="long")],
        expressions=[
            Expression(text="the gray quay", box_xyxy=(1, 2, 30, 40)),
            Expression(text="the wall", box_xyxy=(5, 5, 9, 9.5)),
        ],
    )
    assert [(d.question, d.answer) for d in of(Task.OC, found)] == [
        ("How many piers are there in this image?", "3"),
        ("How many cranes on rails are there in this image?", "0"),
    ]
    assert [(d.target, d.answer) for d in of(Task.VG, found)] == [
        ("the gray quay", "[1,2,30,40]"),
        ("the wall", "[5,5,9,9.5]"),
    ]
    assert [d.answer for d in of(Task.AR, found)] == ["long"]
    assert found.unable[Task.RS, "no_mask"] == 1


def test_tasks_of_a_record_limit_what_is_asked():
    found = asked(objects=boxes((10, 10, 50, 30)), exhaustive=["ship", "crane"], tasks=["VG"])
    assert {d.task for d in found.drafts} == {Task.VG}
    assert not found.unable


def test_north_and_scale_are_said_or_nothing_is_asked():
    facts = {
        "orientations": [Orientation(target="the runway", bearing_deg=91)],
        "compass_relations": [
            CompassRelation(target="the tower", reference="the gate", direction="north")
        ],
        "measurements": [
            Measurement(kind="distance", target="A", reference="B", value=120),
            Measurement(kind="width", target="the road", value=8.4),
            Measurement(kind="area", target="the yard", value=5400),
        ],
    }
    silent = asked(**facts)
    assert not [d for d in silent.drafts if d.task in (Task.API, Task.ASI, Task.DC, Task.AC)]
    found = asked(**facts, north_deg=30, gsd_m=0.5)
    (axis,) = of(Task.API, found)
    assert axis.question.startswith("North lies 30 degrees clockwise from the top of this image.")
    assert axis.answer == "east-west"
    assert of(Task.ASI, found)[0].answer == "north"
    scale = "This image shows 200 m of ground from left to right and 150 m from top to bottom."
    assert [(d.question, d.answer) for d in of(Task.DC, found)] == [
        (f"{scale} About how far is A from B?", "120 m"),
        (f"{scale} About how wide is the road?", "8.4 m"),
    ]
    assert [d.answer for d in of(Task.AC, found)] == ["5400 m²"]
    border = asked(orientations=[Orientation(target="it", bearing_deg=22)], north_deg=0)
    assert border.unable == border.unable | {(Task.API, "bearing_near_the_border_of_two_axes"): 1}


def test_existence_and_hallucination_come_in_pairs_of_yes_and_no():
    found = asked(present=[Facility(name="gate")], absent=[Facility(name="silo")])
    for task in (Task.OE, Task.HD):
        assert [(d.target, d.answer) for d in of(task, found)] == [("gate", "yes"), ("silo", "no")]
    one_sided = asked(absent=[Facility(name="silo")])
    assert not of(Task.OE, one_sided)
    assert one_sided.unable[Task.HD, "nothing_known_to_be_there"] == 1


def facilities(names):
    return [Facility(name=name) for name in names]


@pytest.mark.parametrize("task", [Task.OE, Task.HD])
@pytest.mark.parametrize(
    ("present", "absent", "labels", "pairs", "lost"),
    [
        pytest.param("abc", "def", {}, 3, 0, id="as many there as not"),
        pytest.param("abcd", "e", {}, 1, 3, id="others lack a counterpart"),
        pytest.param("a", "de", {"objects": ["ship"]}, 2, 0, id="filled up by what is labelled"),
        pytest.param("abc", "d", {"exhaustive": ["x"]}, 2, 1, id="filled up, but not enough"),
        pytest.param("ab", "", {"exhaustive": ["x", "y"]}, 2, 0, id="one side is from labels"),
        pytest.param("a", "d", {"exhaustive": ["A", "D"]}, 1, 0, id="labels of the same names"),
        pytest.param("aab", "de", {}, 2, 0, id="named twice"),
        pytest.param("", "", {"objects": ["ship"], "exhaustive": ["x", "y"]}, 1, 0, id="labels"),
    ],
)
def test_every_facility_is_asked_about_or_counted(task, present, absent, labels, pairs, lost):
    objects = [o for c in labels.get("objects", ()) for o in boxes((9, 9, 50, 50), category=c)]
    found = asked(
        present=facilities(present),
        absent=facilities(absent),
        objects=objects,
        exhaustive=labels.get("exhaustive", []),
    )
    drafts = of(task, found)
    assert [d.answer for d in drafts] == ["yes", "no"] * pairs
    targets = [d.target for d in drafts]
    assert len(set(targets)) == 2 * pairs
    assert found.unable.get((task, "no_question_of_the_other_answer"), 0) == lost
    named = set(present + absent)
    assert len(named - set(targets)) == lost
    there = {*present, *labels.get("objects", ())}
    assert all((d.answer == "yes") == (d.target in there) for d in drafts)


def test_facilities_that_cannot_be_paired_off_are_all_counted():
    found = asked(absent=facilities("abc"))
    assert found.unable[Task.OE, "nothing_known_to_be_there"] == 3


def test_all_places_of_a_facility_are_its_evidence():
    places = [(1.0, 1.0, 9.0, 9.0), (20.0, 1.0, 29.0, 9.0)]
    found = asked(
        present=[Facility(name="gate", box_xyxy=place) for place in places],
        absent=facilities("x"),
    )
    assert [list(d.evidence.boxes_xyxy) for d in of(Task.OE, found)] == [places, []]


def test_everything_that_is_true_is_kept_from_the_wrong_options():
    found = asked(
        temporal=[
            TemporalFact(aspect="season", value="winter"),
            TemporalFact(aspect="Season", value="dry season"),
        ]
    )
    assert [d.also_true for d in of(Task.TAI, found)] == [{"winter", "dry season"}] * 2
    assert {d.pool for d in of(Task.TAI, found)} == {("TAI", "season")}


def test_relations_of_a_record_are_asked_as_said():
    found = asked(
        picture_relations=[
            PictureRelation(target="the hut", reference="the gate", direction="left")
        ]
    )
    (draft,) = of(Task.RSI, found)
    assert draft.question == "Where in this image does the hut lie relative to the gate?"
    assert draft.answer == "left"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(("{target}", "{thing}"), "must use", id="another field"),
        pytest.param(("in this image?", "{target.x}?"), "must use", id="attribute of a field"),
        pytest.param(('OE = "', 'OF = "'), "[questions] OE", id="missing key"),
        pytest.param(("[words]", "[words"), "TOML", id="no TOML"),
    ],
)
def test_prompt_files_are_checked(tmp_path, change, says):
    from importlib.resources import files

    text = (files("soubench.builders.rrs") / PROMPT_FILE).read_text(encoding="utf-8")
    path = tmp_path / "own.toml"
    path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(FormatError, match=r"own\.toml") as error:
        load_prompts(path)
    assert says in str(error.value)
    path.write_text(text.replace("Segment {target}", "Outline {target}"), encoding="utf-8")
    own = load_prompts(path)
    assert own.question("RS", target="it") == "Outline it in this image."
    assert own.digest != load_prompts().digest


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_drawn_sites_hold_what_their_plan_says_and_nothing_overlaps():
    for number in range(120):
        site = make_site(number, seed=1)
        found = [item.box_xyxy() for item in site.items]
        assert all(x1 >= 0 and y1 >= 0 and x2 <= 640 and y2 <= 480 for x1, y1, x2, y2 in found)
        assert SIZE_WH == (640, 480)
        assert not [1 for i, a in enumerate(found) for b in found[:i] if overlap(a, b)]
        plan = dict.fromkeys(SUBTYPES[number % 12].plan)
        for kind, _, most in plan:
            assert site.count(kind) <= most


@pytest.mark.parametrize("change", CHANGES)
def test_drawn_changes_are_what_they_say(change):
    for number in range(40):
        before, after, kind, _ = changed_site(make_site(number, 2), 2, change)
        own = [[i for i in site.items if i.kind == kind] for site in (before, after)]
        others = [[i for i in site.items if i.kind != kind] for site in (before, after)]
        assert others[0] == others[1]
        assert before.trees == after.trees
        if change in ("appeared", "disappeared"):
            assert [len(o) for o in own] == ([0, 1] if change == "appeared" else [1, 0])
        else:
            ((old,), (new,)) = own
            moved = (old.x, old.y) != (new.x, new.y)
            assert moved == (change == "moved")
            assert (old.color != new.color) == (change == "altered")


def test_a_large_picture_is_told_without_an_exponent():
    found = asked((400, 300), gsd_m=300.0, objects=boxes((10, 10, 110, 60)), exhaustive=["ship"])
    assert all("e+" not in draft.question for draft in found.drafts)
    said = asked(
        (400, 300),
        gsd_m=300.0,
        measurements=[Measurement(kind="length", target="the quay", value=5000)],
    )
    (draft,) = of(Task.DC, said)
    assert "120000 m" in draft.question
    assert "90000 m" in draft.question
