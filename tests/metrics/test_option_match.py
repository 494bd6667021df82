"""The kinds of reply that ``option_match`` must read, and what the metric makes of them."""

import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

import evaluate
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soubench.metrics.option_match.option_match import RULES, match_option, score

FOLDER = str(Path(__file__).parents[2] / "metrics" / "option_match")
SEA = ["buoy", "fishing-boat", "cargo-ship", "pier"]
LAND = ["tree", "people", "person", "truck"]
COUNTS = ["14", "6", "60", "3"]
BOXES = ["[10,20,30,40]", "[11,20,31,40]", "[200,5,260,17]", "[7,7,19,23]"]
QUADS = ["[1,2,9,2,9,8,1,8]", "[21,2,29,2,29,8,21,8]", "[3,4,5,6,7,8,9,10]"]
YES_NO = ["Yes", "No"]
LENGTHS = ["40 m", "250 m", "900 m", "2500 m"]
SIDES = ["left", "right", "upper-left", "below", "center"]
USES = ["civil", "military", "mixed civil-military"]
WITH_NONE = ["Dam", "Quarry", "None of the above"]

KINDS: dict[str, list[tuple[str, list[str], str]]] = {
    "plain_letter": [
        ("B", SEA, "B"),
        (" d\n", SEA, "D"),
        ("[A]", SEA, "A"),
        ("C)", SEA, "C"),
        ("Option D", SEA, "D"),
        ("Answer: b", SEA, "B"),
    ],
    "letter_plus_text": [
        ("C: cargo-ship", SEA, "C"),
        ("A - buoy", SEA, "A"),
        ("B. A fishing boat at anchor", SEA, "B"),
        ("D pier", SEA, "D"),
        ("fishing-boat (B)", SEA, "B"),
    ],
    "sentence_letter": [
        ("I would go with D.", SEA, "D"),
        ("Its wake is long. The right answer is (C).", SEA, "C"),
        ("A is correct, the mast is missing.", SEA, "A"),
        ("B seems the most plausible.", SEA, "B"),
        ("Die richtige Antwort ist B.", SEA, "B"),
        ("La réponse est C.", SEA, "C"),
    ],
    "markdown": [
        ("**C**", SEA, "C"),
        ("### Answer\n\n**B**", SEA, "B"),
        ("~~A~~ D", SEA, "D"),
        ("- [ ] A\n- [x] B\n- [ ] C\n- [ ] D", SEA, "B"),
        ("**Answer:** **(A)**", SEA, "A"),
    ],
    "latex": [
        (r"\boxed{\text{B}}", SEA, "B"),
        (r"$\mathbf{D}$", SEA, "D"),
        (r"\(\boxed{A}\)", SEA, "A"),
        (r"Two piers hold \boxed{3} each, so 6 in all. Answer: B", COUNTS, "B"),
        (r"so \boxed{60}", COUNTS, "C"),
    ],
    "json": [
        ('{"answer": "C"}', SEA, "C"),
        ("{'choice': 'D'}", SEA, "D"),
        ('{"reasoning": "A or B?", "final_answer": "pier"}', SEA, "D"),
        ('{"answer": 60}', COUNTS, "C"),
        ('{"answer": ["A", "B"]}', SEA, ""),
        ('{"answer": null}', SEA, ""),
    ],
    "tags": [
        ("A looks close.<answer>B</answer>", SEA, "B"),
        ("<|begin_of_box|>D<|end_of_box|>", SEA, "D"),
        ("<answer>cargo ship</answer>", SEA, "C"),
        ("<answer>B or C</answer>", SEA, ""),
    ],
    "special_tokens": [
        ("C</s>", SEA, "C"),
        ("[INST] A: buoy B: pier [/INST] B </s>", SEA, "B"),
        ("<|im_start|>assistant\nD<|im_end|>", SEA, "D"),
    ],
    "think": [
        ("<think>A? No.</think>C", SEA, "C"),
        ("It must be A.</think>\nB", SEA, "B"),
        ("<think>It is B, so the answer is B", SEA, ""),
        ("<think>B</think>", SEA, ""),
        ("◁think▷A◁/think▷D", SEA, "D"),
    ],
    "article_a": [
        ("A pier.", SEA, "D"),
        ("A total of 60", COUNTS, "C"),
        ("A sharper picture is needed.", SEA, ""),
        ("The answer is a buoy.", SEA, "A"),
    ],
    "embedded_letter": [
        ("At Berth B lies a cargo ship.", SEA, "C"),
        ("The SODA-D frame shows a truck", LAND, "D"),
        ("Cargo in Zone C", SEA, ""),
    ],
    "text_number": [
        ("There are 14 boats.", COUNTS, "A"),
        ("sixty", COUNTS, "C"),
        ("5", COUNTS, ""),
        ("600", COUNTS, ""),
        ("3 boats and 3 buoys, 6 in total", COUNTS, "B"),
        ("3 boats and 9 buoys", COUNTS, ""),
        ("6 or 14", COUNTS, ""),
        ("At Dock 3 I count 14", COUNTS, "A"),
    ],
    "text_category": [
        ("fishing boat", SEA, "B"),
        ("boat", SEA, ""),
        ("piers", SEA, "D"),
        ("people", LAND, "B"),
        ("persons", LAND, "C"),
        ("It is a truck next to a tree.", LAND, "D"),
        ("awning-tricycle", ["tricycle", "truck"], ""),
    ],
    "text_box": [
        ("(10, 20), (30, 40)", BOXES, "A"),
        ('{"bbox_2d": [200, 5, 260, 17]}', BOXES, "C"),
        ("x1=7, y1=7, x2=19, y2=23", BOXES, "D"),
        ("[10,20,30,41]", BOXES, ""),
        ("[[21,2],[29,2],[29,8],[21,8]]", QUADS, "B"),
    ],
    "multi_mention": [
        ("A is too small, B too large. So the answer is C.", SEA, "C"),
        ("Answer: A. Wait, the hull is long. Answer: C", SEA, "C"),
        ("A: no, B: no, C: yes, D: no", SEA, "C"),
        ("A ✗ B ✓ C ✗ D ✗", SEA, "B"),
        ("D. I ruled out A, B and C.", SEA, "D"),
    ],
    "negation": [
        ("Not A.", SEA, ""),
        ("neither A nor C, so B", SEA, "B"),
        ("Answer: D, not B", SEA, "D"),
        ("It isn't a buoy or a pier; it is a cargo ship.", SEA, "C"),
        ("A and B are wrong.", SEA, ""),
    ],
    "hedge": [
        ("B, I guess?", SEA, "B"),
        ("either B or D", SEA, ""),
        ("between A and C, I lean towards C", SEA, "C"),
        ("It may be a pier.", SEA, "D"),
        ("I can't tell whether it is a pier or a buoy.", SEA, ""),
    ],
    "refusal": [
        ("I can't help with pictures of people.", LAND, ""),
        ("As an AI model I cannot see a truck.", LAND, ""),
        ("Failed to obtain answer via API.", SEA, ""),
        ("Error code: 60 - overloaded", COUNTS, ""),
        ("I'm not sure, but I would say B.", SEA, "B"),
    ],
    "empty": [("", SEA, ""), (" \n\t", SEA, ""), ("<|im_end|>", SEA, ""), ("...", SEA, "")],
    "garbage": [
        ("!!!!!!!!", SEA, ""),
        ("B B B B B B B B", SEA, ""),
        ("pier pier pier pier pier pier pier pier", SEA, ""),
    ],
    "none_of_above": [
        ("None of the above.", SEA, ""),
        ("None of the above.", WITH_NONE, "C"),
        ("None of these options fits", WITH_NONE, "C"),
    ],
    "out_of_range": [
        ("E", SEA, ""),
        ("The answer is F.", SEA, ""),
        ("C", YES_NO, ""),
        ("E. pier", SEA, ""),
    ],
    "multi_select": [
        ("A, C", SEA, ""),
        ("A-C", SEA, ""),
        ("ANSWER: BD", SEA, ""),
        ("Both A and C", SEA, ""),
        ("All of the above", SEA, ""),
    ],
    "echo": [
        ("A: buoy\nB: fishing-boat\nC: cargo-ship\nD: pier", SEA, ""),
        ("A: buoy\nB: fishing-boat\nC", SEA, ""),
        ("A. buoy\nB. fishing-boat\nC. cargo-ship\nD. pier\n\nThe answer is D", SEA, "D"),
        ("What is it? A: buoy B: fishing-boat C: cargo-ship D: pier. C", SEA, "C"),
    ],
    "run_on": [
        ("B\n\nQuestion: And this?\nA: tree\nAnswer: A", SEA, "B"),
        ("C\nUser: sure?\nAssistant: D", SEA, "C"),
        ("D</s><s>[INST] next [/INST] A", SEA, "D"),
    ],
    "cjk": [
        ("答案是C", SEA, "C"),
        ("选项 B", SEA, "B"),
        ("정답은 D입니다", SEA, "D"),
        ("正解は（Ａ）です。", SEA, "A"),
        ("不是A，是B。", SEA, "B"),
        ("共有６０个", COUNTS, "C"),
        ("无法判断。", SEA, ""),
    ],
    "binary": [
        ("Yes, two of them.", YES_NO, "A"),
        ("There is no crane.", YES_NO, "B"),
        ("Not sure.", YES_NO, ""),
        ("I noticed a crane.", YES_NO, ""),
        ("I would say no.", YES_NO, "B"),
        ("No, I can't help with that.", YES_NO, ""),
    ],
    "three_way": [("mixed civil-military", USES, "C"), ("D", USES, ""), ("civil", USES, "A")],
    "five_way": [("E", SIDES, "E"), ("to the upper left", SIDES, "C"), ("F", SIDES, "")],
    "conflict": [("B. pier", SEA, "B"), ("The answer is A (pier).", SEA, "A")],
    "ordinal": [
        ("The second option is right.", SEA, "B"),
        ("the last one", SEA, "D"),
        ("Option 3", SEA, "C"),
        ("Option 3", COUNTS, ""),
    ],
    "distance": [
        ("about 250 meters", LENGTHS, "B"),
        ("2.5 km", LENGTHS, "D"),
        ("900", LENGTHS, "C"),
        ("40 feet", LENGTHS, ""),
        ("2,500 metres", LENGTHS, "D"),
    ],
}


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        pytest.param(*case, id=f"{kind}-{number}")
        for kind, cases in KINDS.items()
        for number, case in enumerate(cases)
    ],
)
def test_reply_is_read_as_its_kind_demands(reply, options, letter):
    assert match_option(reply, options) == letter


def test_card_names_the_rules_in_their_order():
    card = Path(FOLDER, "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \|", card.split("## How a letter is read")[1], re.MULTILINE)
    assert rows == [rule.__name__ for rule in RULES]


@pytest.fixture
def metric(tmp_path):
    return evaluate.load(FOLDER, cache_dir=str(tmp_path))


def test_accuracy_counts_unparsed_rows_as_wrong(metric):
    result = metric.compute(
        predictions=["B", "no idea", "The answer is A.", "c", "It is a pier."],
        references=["B", "A", "C", "C", "D"],
        options=[YES_NO, YES_NO, USES, SIDES, SEA],
    )
    # right: B, C, D; wrong: A for C; unparsed: 1 of 5 -> 3/5 and 1/5
    assert result == {
        "accuracy": 0.6,
        "unparsed_rate": 0.2,
        "letters": ["B", "", "A", "C", "D"],
        "letter_counts": {"A": 1, "B": 1, "C": 1, "D": 1, "E": 0, "unparsed": 1},
        "reference_counts": {"A": 1, "B": 1, "C": 2, "D": 1, "E": 0},
        "n": 5,
    }


def test_no_rows_give_zeros(metric):
    assert metric.compute(predictions=[], references=[], options=[]) == {
        "accuracy": 0.0,
        "unparsed_rate": 0.0,
        "letters": [],
        "letter_counts": {"unparsed": 0},
        "reference_counts": {},
        "n": 0,
    }


@pytest.mark.parametrize(
    "references",
    [["B", "A"], ["b", "a"], [1, 0], np.array([1, 0]), np.array(["B", "A"]), ["B", 0]],
    ids=["capitals", "lower_case", "indices", "numpy_indices", "numpy_letters", "mixed"],
)
def test_references_are_letters_or_indices(metric, references):
    result = metric.compute(predictions=["B", "A"], references=references, options=[YES_NO, YES_NO])
    assert result["accuracy"] == 1.0


def test_rows_may_have_from_two_to_twenty_six_options(metric):
    widest = [f"thing{number}" for number in range(26)]
    result = metric.compute(
        predictions=["Z", "A", "thing25"],
        references=["Z", "A", 25],
        options=[widest, YES_NO, widest],
    )
    assert result["accuracy"] == 1.0


ROWS = (["B", "A pier.", "?"], ["B", "D", "A"], [YES_NO, SEA, USES])


def test_add_add_batch_and_compute_agree(metric):
    whole = metric.compute(predictions=ROWS[0], references=ROWS[1], options=ROWS[2])
    for prediction, reference, options in zip(*ROWS, strict=True):
        metric.add(prediction=prediction, reference=reference, options=options)
    assert metric.compute() == whole
    metric.add_batch(predictions=ROWS[0][:2], references=ROWS[1][:2], options=ROWS[2][:2])
    metric.add(prediction=ROWS[0][2], reference=ROWS[1][2], options=ROWS[2][2])
    assert metric.compute() == whole
    in_memory = evaluate.load(FOLDER, keep_in_memory=True)
    assert in_memory.compute(predictions=ROWS[0], references=ROWS[1], options=ROWS[2]) == whole


def test_inputs_stay_as_they_are(metric):
    predictions, references, options = ["B", "x"], [1, "a"], [["Yes", "No"], ["Ja", "Nein"]]
    metric.compute(predictions=predictions, references=references, options=options)
    assert predictions == ["B", "x"]
    assert references == [1, "a"]
    assert options == [["Yes", "No"], ["Ja", "Nein"]]


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        pytest.param("predictions", None, "row 1: predictions", id="no_reply"),
        pytest.param("predictions", float("nan"), "row 1: predictions", id="nan_reply"),
        pytest.param("predictions", 3, "row 1: predictions", id="number_as_reply"),
        pytest.param("references", None, "row 1: references", id="no_reference"),
        pytest.param("references", "C", "row 1: references", id="letter_outside"),
        pytest.param("references", "", "row 1: references", id="empty_reference"),
        pytest.param("references", 2, "map the answers to letters", id="index_outside"),
        pytest.param("references", -1, "row 1: references", id="no_answer_index"),
        pytest.param("references", 1.0, "row 1: references", id="float_reference"),
        pytest.param("references", True, "row 1: references", id="bool_reference"),
        pytest.param("references", "No", "row 1: references", id="text_as_reference"),
        pytest.param("options", None, "row 1: options", id="no_options"),
        pytest.param("options", "Yes", "row 1: options", id="text_as_options"),
        pytest.param("options", {"A": "Yes", "B": "No"}, "row 1: options", id="dict_of_options"),
        pytest.param("options", ["Yes"], "row 1: options", id="one_option"),
        pytest.param("options", ["x"] * 27, "row 1: options", id="too_many_options"),
        pytest.param("options", ["Yes", None], "option B", id="no_option_text"),
        pytest.param("options", [1, 2], "write numbers as text", id="numbers_as_options"),
    ],
)
def test_bad_entry_is_an_error_that_names_the_row(metric, column, value, named):
    rows = {"predictions": ["A", "B"], "references": ["A", "B"], "options": [YES_NO, YES_NO]}
    rows[column] = [rows[column][0], value]
    with pytest.raises(ValueError, match=named):
        metric.compute(**rows)
    good = {"predictions": ["A"], "references": ["A"], "options": [YES_NO]}
    assert metric.compute(**good)["n"] == 1


def test_row_of_an_error_counts_what_was_added_before(metric):
    metric.add(prediction="A", reference="A", options=YES_NO)
    metric.add_batch(predictions=["A"], references=["A"], options=[YES_NO])
    with pytest.raises(ValueError, match="row 2: predictions"):
        metric.add(prediction=None, reference="A", options=YES_NO)
    assert metric.compute()["n"] == 2


@pytest.mark.parametrize("short", ["predictions", "references", "options"])
def test_columns_of_different_length_are_an_error(metric, short):
    rows = {"predictions": ["A", "B"], "references": ["A", "B"], "options": [YES_NO, YES_NO]}
    rows[short] = rows[short][:1]
    with pytest.raises(ValueError, match="row 1 is the first"):
        metric.compute(**rows)


def test_text_as_a_column_is_an_error(metric):
    with pytest.raises(ValueError, match="predictions: expected a list"):
        metric.compute(predictions="AB", references="AB", options=[YES_NO, YES_NO])


def test_lone_surrogate_does_not_stop_a_run(metric):
    result = metric.compute(
        predictions=["B \ud800", "\udcff"], references=["B", "A"], options=[YES_NO, YES_NO]
    )
    assert result["letters"] == ["B", ""]


HOSTILE = {
    "letters": "A " * 500_000,
    "brackets": "(" * 1_000_000,
    "thoughts": "<think>" * 150_000,
    "tags": "<answer>" * 125_000,
    "angles": "<" * 1_000_000,
    "boxed": "\\boxed{" * 140_000,
    "json": '{"answer": ' * 90_000,
    "cues": "the answer is " * 70_000,
    "negations": "not A " * 160_000,
    "names": "pier or " * 120_000,
    "numbers": "1, " * 300_000,
    "nested_numbers": "[1,2,3," * 140_000,
    "combining_marks": "\u0301\u0316" * 500_000,
    "blank": " " * 1_000_000,
    "lines": "A\n" * 500_000,
    "stars": "**" * 500_000,
    "turns": "Question: " * 100_000,
    "letter_lists": "A(B)" * 250_000,
    "digits": "1" * 1_000_000,
    "one_word": "a" * 1_000_000,
}


@pytest.mark.parametrize(
    "options", [SEA, COUNTS, BOXES, YES_NO], ids=["names", "counts", "boxes", "yes"]
)
@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_megabyte_of_junk_ends(reply, options):
    assert match_option(reply, options) in ("", "A", "B", "C", "D")


_MANY_OPTIONS = st.sampled_from(
    [SEA, LAND, COUNTS, BOXES, QUADS, YES_NO, LENGTHS, SIDES, WITH_NONE]
)
_SIGNS = ["(", ")", ".", ",", ":", "\n", "<answer>", "</think>", "\\boxed{", "}", '"answer": ']
_WORDS = ["A", "B", "C", "D", "E", "a", "not", "or", "and", "the answer is", "option", "6 or 14"]
_OTHERS = ["pier", "12", "选", "[10,20,30,40]", "yes", "no", "total", "is wrong", "Question:"]
_PIECES = st.lists(st.sampled_from([*_SIGNS, *_WORDS, *_OTHERS]), max_size=12).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(reply=st.one_of(st.text(), _PIECES), options=_MANY_OPTIONS)
def test_any_text_gives_a_letter_of_the_row_or_none(reply, options):
    letter = match_option(reply, options)
    assert letter == "" or letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(options)]
    assert match_option(reply, tuple(options)) == letter


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(2, 26),
    data=st.data(),
    form=st.sampled_from(
        ["{}", "({})", "{}.", "{}:", " {}\n", "**{}**", "Answer: {}", "<answer>{}</answer>"]
    ),
    is_lower=st.booleans(),
)
def test_bare_letter_is_always_read(n, data, form, is_lower):
    letter = data.draw(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n]))
    options = data.draw(st.lists(st.text(max_size=8), min_size=n, max_size=n))
    assert match_option(form.format(letter.lower() if is_lower else letter), options) == letter


@settings(max_examples=100, deadline=None)
@given(order=st.permutations(range(len(ROWS[0]) * 3)))
def test_order_of_rows_changes_nothing_but_the_order_of_letters(order):
    predictions, references, options = (column * 3 for column in ROWS)
    base = score(predictions, references, options)
    mixed = score(*([column[i] for i in order] for column in (predictions, references, options)))
    assert mixed.pop("letters") == [base["letters"][i] for i in order]
    assert mixed == {key: value for key, value in base.items() if key != "letters"}


_WORD = st.text("bcdfghjklmnpqrstvwxz", min_size=3, max_size=9)
_NAME = st.lists(_WORD, min_size=1, max_size=3).map("-".join)


@settings(max_examples=200, deadline=None)
@given(
    options=st.lists(_NAME, min_size=2, max_size=5, unique_by=lambda name: name.rstrip("es")),
    data=st.data(),
)
def test_option_text_is_read_as_its_letter(options, data):
    index = data.draw(st.integers(0, len(options) - 1))
    joiner = data.draw(st.sampled_from(["-", " ", "_"]))
    assert match_option(options[index].replace("-", joiner), options) == "ABCDE"[index]


@settings(max_examples=100, deadline=None)
@given(options=st.lists(st.integers(0, 9999), min_size=2, max_size=5, unique=True), data=st.data())
def test_number_is_read_as_its_letter_and_no_other(options, data):
    stated = data.draw(st.integers(0, 9999))
    letter = "ABCDE"[options.index(stated)] if stated in options else ""
    assert match_option(f"There are {stated} boats.", [str(option) for option in options]) == letter


def _score_in_process(results):
    metric = evaluate.load(FOLDER)
    metric.add_batch(predictions=ROWS[0], references=ROWS[1], options=ROWS[2])
    results.put(metric.compute()["accuracy"])


def test_processes_share_the_cache_folder_in_peace():
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=_score_in_process, args=(results,)) for _ in range(3)]
    for process in processes:
        process.start()
    scores = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert scores == [2 / 3] * 3


def test_folder_stands_alone(tmp_path):
    """No import of ours: the script runs where ``soubench`` cannot be imported."""
    program = (
        "import sys; sys.modules['soubench'] = None\n"
        f"import evaluate; metric = evaluate.load({FOLDER!r})\n"
        "rows = {'predictions': ['B'], 'references': ['B'], 'options': [['x', 'y']]}\n"
        "print(metric.compute(**rows)['accuracy'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1.0"
