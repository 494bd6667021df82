"""What a model is asked is what the row says, and the right letter follows its option."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soubench.builders.errors import FormatError, RunError
from soubench.builders.sou.prompts import load_prompts
from soubench.inference.coordinates import Frame, convert_options
from soubench.inference.questions import load_words, question_of, rotations_of, stratum_of

SYSTEM = load_prompts().system("visdrone", ["car", "van"], oriented=False, small_area_px=1024)
SOU = {
    "id": "visdrone/1#OL",
    "subset": "a-visdrone",
    "task": "OL",
    "question": "Which box?",
    "options": ["[10,20,30,40]", "[100,50,110,60]", "[1,2,3,4]", "[5,6,7,8]"],
    "answer": 1,
    "system_prompt": SYSTEM,
    "evidence": {"point_xy": []},
    "image": {"path": "x.jpg", "bytes": None},
}


def test_sou_rows_are_asked_as_training_rows_are():
    asked = question_of(SOU)
    assert asked.text == load_prompts().multiple_choice(SOU["question"], SOU["options"])
    assert asked.system == SYSTEM
    assert (asked.answer, asked.answer_text) == ("B", "[100,50,110,60]")
    assert (asked.answer_type, asked.images) == ("mcq", ("image",))
    assert stratum_of(SOU) == ("a-visdrone", "OL")


@given(st.integers(2, 26), st.data())
def test_rotation_moves_the_right_letter_with_its_option(n, data):
    options = [f"option {i}" for i in range(n)]
    index = data.draw(st.integers(0, n - 1))
    row = {"id": "x", "question": "Q", "options": options, "answer": index}
    letters = set()
    assert rotations_of(row) == n
    for rotation in range(n):
        asked = question_of(row, rotation=rotation)
        assert asked.answer_text == f"option {index}"
        assert asked.options[0] == f"option {rotation}"
        assert sorted(asked.options) == sorted(options)
        letters.add(asked.answer)
    assert len(letters) == n  # each letter is right once


@pytest.mark.parametrize(
    ("answer", "more", "letter"),
    [
        pytest.param(2, {}, "C", id="index or ClassLabel"),
        pytest.param("B", {}, "B", id="letter"),
        pytest.param(" B ", {}, "B", id="letter with blanks"),
        pytest.param("truck", {}, "C", id="text of an option"),
        pytest.param("B", {"answer_index": 1}, "B", id="rrs"),
        pytest.param("B", {"answer_index": -1}, "B", id="no index"),
    ],
)
def test_answers_of_other_datasets_are_understood(answer, more, letter):
    row = {"id": "x", "question": "Q", "options": ["car", "van", "truck"], "answer": answer, **more}
    assert question_of(row).answer == letter


@pytest.mark.parametrize("answer", [3, -1, "D", "bicycle", None, True, 1.5])
def test_an_answer_that_is_no_option_is_refused(answer):
    row = {"id": "x7", "question": "Q", "options": ["car", "van", "truck"], "answer": answer}
    with pytest.raises(RunError, match=r"x7: expected the answer as a letter"):
        question_of(row)


def test_missing_columns_are_named():
    with pytest.raises(RunError, match=r"'question'; these have id, prompt"):
        question_of({"id": "x", "prompt": "Q"})


def test_targets_are_text_and_nothing_is_added():
    asked = question_of({"id": "s1", "question": "Describe.", "target": "A Red Circle .."})
    assert (asked.text, asked.system, asked.answer) == ("Describe.", "", "A Red Circle ..")
    assert (asked.answer_type, asked.options, asked.images) == ("text", (), ())


RRS = {"id": "r1", "options": [], "answer_index": -1, "images": ["one", "two"]}


@pytest.mark.parametrize(
    ("kind", "answer", "end"),
    [
        ("yes_no", "yes", "Answer with yes or no only."),
        (
            "box",
            "[1, 2, 3, 4]",
            "as [x1,y1,x2,y2], in pixels from the top left corner of the image.",
        ),
        ("mask", '{"size": [2, 2], "counts": [4]}', "from the top left corner of the image."),
        ("text", "A harbor.", "Q"),
    ],
)
def test_rrs_rows_get_the_request_of_their_answer_type(kind, answer, end):
    asked = question_of(
        {**RRS, "question": "Q", "answer_type": kind, "answer": answer, "references": ["r", "s"]}
    )
    assert asked.text.startswith("Q")
    assert asked.text.endswith(end)
    assert (asked.answer, asked.images, asked.references) == (answer, ("images",), ("r", "s"))


def test_five_options_have_five_letters():
    row = {**RRS, "question": "Q", "answer_type": "mcq", "options": list("vwxyz"), "answer": "E"}
    assert question_of(row).text.splitlines()[1:6] == ["A: v", "B: w", "C: x", "D: y", "E: z"]


@pytest.mark.parametrize(
    ("frame", "boxes", "says"),
    [
        # picture 200 x 100
        (Frame("norm1000", (200, 100)), ["[50,200,150,400]", "[500,500,550,600]"], "thousandths"),
        (
            Frame("unit", (200, 100)),
            ["[0.050,0.200,0.150,0.400]", "[0.500,0.500,0.550,0.600]"],
            "0 to 1",
        ),
        (
            Frame("model-pixel", (200, 100), (100, 100)),
            ["[5,20,15,40]", "[50,50,55,60]"],
            "100 pixels wide",
        ),
    ],
)
def test_boxes_are_asked_in_the_models_own_frame(frame, boxes, says):
    asked = question_of(SOU, frame=frame)
    assert list(asked.options[:2]) == boxes
    assert asked.answer == "B"
    assert says in asked.system
    assert "given in pixels from the top left corner of the image, points" not in asked.system
    turned = question_of(SOU, frame=frame, rotation=1)
    assert (turned.answer, turned.answer_text) == ("A", boxes[1])


def test_points_are_asked_in_the_models_own_frame():
    row = {
        **SOU,
        "task": "CR",
        "question": "What is at point [150,25]?",
        "options": ["car", "van", "bus", "truck"],
        "evidence": {"point_xy": [150, 25]},
    }
    asked = question_of(row, frame=Frame("norm1000", (200, 100)))
    assert asked.question == "What is at point [750,250]?"
    assert asked.options == ("car", "van", "bus", "truck")


numbers = st.integers(0, 8000)


@given(st.sets(st.tuples(numbers, numbers, numbers, numbers), min_size=2, max_size=5), st.data())
def test_options_stay_distinct_in_every_frame(boxes, data):
    options = [f"[{','.join(map(str, box))}]" for box in sorted(boxes)]
    side = st.integers(300, 8000)
    picture, model = data.draw(st.tuples(side, side)), data.draw(st.tuples(side, side))
    for coords in ("norm1000", "unit", "model-pixel"):
        frame = Frame(coords, picture, model)
        shown = convert_options(options, frame)
        assert len(set(shown)) == len(options)
        # Going back gives the box within the rounding: half a unit of the frame.
        for option, text in zip(options, shown, strict=True):
            whole = {"norm1000": (1000, 1000), "unit": (1, 1)}.get(coords, model)
            unit = 0.0005 if coords == "unit" else 0.5
            said = re.findall(r"[\d.]+", text)
            for i, (value, back) in enumerate(zip(option[1:-1].split(","), said, strict=True)):
                scale = whole[i % 2] / picture[i % 2]
                assert abs(float(back) - int(value) * scale) <= unit + 1e-6


def test_a_size_that_is_not_known_is_an_error():
    with pytest.raises(RunError, match="as the model is fed it"):
        question_of(SOU, frame=Frame("model-pixel", (200, 100)))


def test_words_can_be_replaced_and_have_another_digest(tmp_path):
    file = tmp_path / "mine.toml"
    from importlib.resources import files

    text = (files("soubench.inference") / "words_v1.toml").read_text()
    file.write_text(
        text.replace('system = "{system}"', 'system = "Be brief. {system}"')
        + '\n[mcq]\noption = "({letter}) {text}"\nrequest = "Letter?"\n'
    )
    words = load_words(file)
    asked = question_of(SOU, words=words)
    assert asked.system == f"Be brief. {SYSTEM}"
    assert asked.text.splitlines()[1] == "(A) [10,20,30,40]"
    assert asked.text.endswith("\nLetter?")
    assert words.digest != load_words().digest
    file.write_text(text.replace("{coordinates}", "{where}"))
    with pytest.raises(FormatError, match=r"\[requests\] box uses a field"):
        load_words(file)
