"""What can be scored without looking, against rows worked by hand."""

from pathlib import Path

import pytest

from soubench.builders.rrs.blind import blind_baselines
from soubench.builders.rrs.build import Row, Site
from soubench.builders.rrs.pictures import Picture
from soubench.builders.rrs.questions import Draft, Evidence
from soubench.builders.rrs.record import Record
from soubench.builders.rrs.taxonomy import Task

SITE = Site(
    Record(id="r", images=["r.png"]), (Picture(Path("r.png"), None, (400, 200), "0" * 64),), (), ()
)


def row(task, answer_type, answer, options=(), box=(), pool=()):
    draft = Draft(task, "?", answer_type, answer, Evidence(), box_xyxy=box, pool=pool)
    index = options.index(answer) if options else -1
    return Row(f"r/{task.lower()}", task, SITE, draft, options, index)


def choice(answer, *options, task=Task.SU):
    return row(task, "mcq", answer, options, pool=("SU",) if task is Task.SU else ())


def scored(rows):
    return {b.name: (b.right, b.n) for b in blind_baselines(rows)}


def test_words():
    rows = [
        choice("port", "port", "radar facility", "airport"),  # A, not the longest
        choice("port", "airport", "port", "barracks"),  # B, not the longest
        choice("airport", "airport", "port", "harbour"),  # A, as long as "harbour"
        choice("barracks", "airport", "barracks"),  # B, the longest
        choice("barracks", "barracks", "port", "airport"),  # A, the longest; as common as "port"
    ]
    # "port" and "barracks" are right twice, "airport" once, which does not count: rows 1 and 4
    # are won alone, row 3 goes to "port", rows 2 and 5 are ties of the two.
    assert scored(rows) == {
        "chance": (pytest.approx(4 / 3 + 1 / 2), 5),
        "constant-letter": (3, 5),
        "longest-string": (2.5, 5),
        "most-common-answer": (3.0, 5),
    }


def test_lengths_with_units():
    rows = [
        choice("90 m", "90 m", "140 m", "200 m", task=Task.DC),  # smallest
        choice("1200 m", "500 m", "800 m", "1200 m", task=Task.DC),  # largest
        choice("140 m", "90 m", "140 m", "200 m", task=Task.DC),  # the median right answer
        choice("0.5 m", "0.5 m", "0.8 m", "0.3 m", task=Task.DC),  # between the others
    ]
    # The right answers are 0.5, 90, 140 and 1200: their median is 115, from which 90 and 140 are
    # as far in rows 1 and 3, 500 the nearest in row 2, and 0.8 in row 4. No answer is right twice.
    found = scored(rows)
    assert found["smallest-number"] == (1, 4)
    assert found["median-number"] == (1.0, 4)
    assert found["largest-number"] == (1, 4)
    assert found["most-common-answer"] == (pytest.approx(4 / 3), 4)


def test_noise_rows_are_scored_by_what_they_are_made_of():
    rows = [
        row(Task.NR, "yes_no", "yes"),
        row(Task.NR, "yes_no", "no"),
        row(Task.NR, "yes_no", "no"),
        row(Task.NR, "mcq", "3", ("2", "3")),
        row(Task.NR, "mcq", "port", ("port", "airport"), pool=("SU",)),
    ]
    found = scored(rows)
    assert found["constant-yes"] == (1, 3)
    assert found["constant-no"] == (2, 3)
    assert found["constant-letter"] == (1, 2)
    assert found["largest-number"] == (1, 1)
    assert found["smallest-number"] == (0, 1)


def test_the_middle_half_of_the_picture():
    # It is (100, 50, 300, 150), 20,000 px².
    rows = [
        row(Task.VG, "box", "[100,50,300,150]", box=(100.0, 50.0, 300.0, 150.0)),
        # 15,000 px² within it: 0.75
        row(Task.VG, "box", "[100,50,250,150]", box=(100.0, 50.0, 250.0, 150.0)),
        # Half of it: 0.5 is no hit.
        row(Task.VG, "box", "[100,50,200,150]", box=(100.0, 50.0, 200.0, 150.0)),
        # The whole picture: 0.25
        row(Task.VG, "box", "[0,0,400,200]", box=(0.0, 0.0, 400.0, 200.0)),
    ]
    assert scored(rows) == {"center-box": (2, 4)}


@pytest.mark.parametrize(("task", "kind"), [(Task.IC, "text"), (Task.RS, "mask")])
def test_captions_and_masks_have_none(task, kind):
    assert blind_baselines([row(task, kind, "a port")]) == []
