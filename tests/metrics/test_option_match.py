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

from soubench.metrics.option_match.interval import clustered_interval, wilson
from soubench.metrics.option_match.option_match import RULES, match_option, score
from tests.light import LIGHT

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
        (r"\boxed{\text{C}}", SEA, "C"),
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
    "bystander": [
        ("The object at point [31, 8] is a buoy. A pier can be seen behind it.", SEA, "A"),
        ("The marked target is a truck parked beside a tree.", LAND, "D"),
        ("This thing belongs to the category pier. Nearby there is a cargo ship.", SEA, "D"),
        ("Pier. There is a buoy on the water.", SEA, "D"),
        ("The position falls on a truck under a tree.", LAND, "D"),
        ("In the middle I see a person carrying a tree.", LAND, "C"),
        ("Below the pier there is a buoy. The object itself is a cargo ship.", SEA, "C"),
        ("At these coordinates there is a tree. There are people in the background.", LAND, "A"),
        ("The animal is a starfish. A fish swims past.", ["fish", "starfish"], "B"),
        ("A tree stands behind it; the target looks like a truck.", LAND, "D"),
        ("The buoy touches the pier.", SEA, ""),
    ],
    "correction": [
        ("B. On reflection, D.", SEA, "D"),
        ("The answer is A. Oh, it should have been C.", SEA, "C"),
        ("C? Hmm, rather B.", SEA, "B"),
        ("There are 14 of them. Correction: 60.", COUNTS, "C"),
        ("6. Let me recount: 14.", COUNTS, "A"),
        ("The answer is 60, no wait, 3.", COUNTS, "D"),
        ("I count 6. Actually, I count 14 with those behind.", COUNTS, "A"),
        ("Answer: pier\n\nUpdate: buoy", SEA, "A"),
        ("It is a person. Scratch that, it is a tree.", LAND, "A"),
        ("[10,20,30,40]. Make that [7,7,19,23].", BOXES, "D"),
        ("Yes. Wait, no.", YES_NO, "B"),
        ("Answer: A. Wait, it is not B.", SEA, "A"),
        ("Answer: A. It is actually similar to C.", SEA, "A"),
    ],
    "total": [
        ("14 boats in total, of which 6 are moored.", COUNTS, "A"),
        ("There are 60 boats in total, with 14 on the left.", COUNTS, "C"),
        ("In total 14: 6 buoys and 8 boats.", COUNTS, "A"),
        ("Total: 60 (6 moored, 54 moving)", COUNTS, "C"),
        ("There are 14 boats, 6 at the pier and 8 at sea.", COUNTS, "A"),
        ("I see 60 boats, perhaps 3 more are hidden.", COUNTS, "C"),
        ("6 buoys plus 8 boats make 14 things.", COUNTS, "A"),
        ("Boats: 6\nBuoys: 8\nTotal: 14", COUNTS, "A"),
        ("There are 3 boats, 6 buoys and 2 piers.", COUNTS, ""),
        ("There are 14 boats, 6 buoys and 8 piers.", COUNTS, ""),
        ("There are two boats and one buoy, i.e. three objects.", COUNTS, "D"),
        ("14 boats in 2021", COUNTS, "A"),
        ("Around (14, 6) lie 60 boats.", COUNTS, "C"),
        ("1. boats\n2. buoys\n\n6", COUNTS, "B"),
        ("One can see 3 boats.", ["1", "2", "3"], "C"),
        ("No one counts them.", ["1", "2", "3"], ""),
        ("It is the one on the left.", ["1", "2", "3"], ""),
        ("[14, 6]: 60", COUNTS, "C"),
        ("No boats", ["0", "1"], "A"),
        ("十四", COUNTS, "A"),
    ],
    "bound": [
        (f"{bound} boats", COUNTS, "")
        for bound in (
            *("at least 14", "at most 14", "14 or more", "14 or fewer", "14+", "under 14", "<14"),
            *("above 14", "more than 14", "up to 14", "over 14", "a minimum of 14", "≥ 14"),
        )
    ],
    "lines": [
        ("B\nD", SEA, ""),
        ("1. A\n2. C", SEA, ""),
        ("The right ones are:\nA. buoy\nD. pier", SEA, ""),
        ("(B) fishing-boat\n(C) cargo-ship", SEA, ""),
        ("C\n\nA", SEA, ""),
        ("(A)(B)", SEA, ""),
        ("1) B 2) C", SEA, ""),
        ("A B", SEA, ""),
        ("A. buoy\nB. fishing-boat\nC. cargo-ship\nD. pier\n\nB", SEA, "B"),
        ("A. buoy\nB. fishing-boat\nC. cargo-ship\nD. pier\n\nIt is a pier.", SEA, "D"),
    ],
    "loop": [
        ("boat, " * 50 + "so there are 60.", COUNTS, "C"),
        ("- boat\n" * 60 + "\nAnswer: B", COUNTS, "B"),
        ("Let me see. " * 40 + "\n\nD", SEA, "D"),
        ("fishing boat " * 20, SEA, ""),
    ],
    "scope": [
        ("Not A, not C - D.", SEA, "D"),
        ("B (not C)", SEA, "B"),
        ("rather than a buoy it is a pier", SEA, "D"),
        ("Most likely A, possibly D.", SEA, "A"),
        ("C, though A is also possible.", SEA, "C"),
        ("I think B, but D could work too.", SEA, "B"),
        ("Between 3 and 60, I'd say 14.", COUNTS, "A"),
        ("A, C are too small.", SEA, ""),
        ("It is not clear, but B", SEA, "B"),
        ("The hull is not short so B", SEA, "B"),
        ("It can't be anything but a pier.", SEA, "D"),
        ("This is none other than a pier.", SEA, "D"),
        ("It is a pier, unless it is a buoy.", SEA, "D"),
        ("I wondered if it is a buoy but it is a pier.", SEA, "D"),
        ("If unsure, zoom in. It is a pier. A buoy floats by.", SEA, "D"),
        ("Is it a buoy? I see a pier.", SEA, "D"),
        ("Anything but B", SEA, ""),
        ("A. a small buoy - no\nB. a long hull - yes", SEA, "B"),
        ("A: yes, B: yes", SEA, ""),
        ("Is it A? No. B? No. D? Yes.", SEA, "D"),
        ("A? No. C.", SEA, "C"),
        ("A is plausible, but C is more likely.", SEA, "C"),
        ("选B，不选C。", SEA, "B"),
        ("A is wrong, B is wrong, C is wrong, so D must be correct.", SEA, "D"),
        ("ANSWER: BD, as B floats", SEA, ""),
        ("The sign reads STOP, so B.", SEA, "B"),
        (r"\boxed{A} or \boxed{B}", SEA, ""),
        (r"A or C float. \boxed{C} since it is long", SEA, "C"),
        (r"\boxed{\text{b}}", SEA, "B"),
        ("ANSWER: $b$", SEA, "B"),
        ("B. fishing-boat\n\nWhat else is there?\nA. 1\nB. 2\nAnswer: A", SEA, "B"),
    ],
    "small_letter": [
        ("So, the answer's c.", SEA, "C"),
        ("so b", SEA, "B"),
        ("d, because it stands on piles", SEA, "D"),
        ("Going for A here.", SEA, "A"),
        ("##C##", SEA, "C"),
        ("Option A wins.", SEA, "A"),
    ],
    "letter_of_a_name": [
        (text, SEA, "")
        for text in (
            *("The sign says 'DOCK B'.", "The hull carries the letter D.", "Ship A is moored."),
            *("It is 20 C today.", "Apron D", "Camera B is off.", "Thanks, Dr. B."),
        )
    ],
    "scripts": [
        ("fish", ["fish", "交通灯"], "A"),
        ("图中是交通灯。", ["fish", "交通灯"], "B"),
        ("有", ["有", "没有"], "A"),
        ("图中没有船。", ["是", "否"], "B"),
        ("north east", ["north", "northeast", "east"], "B"),
    ],
    "truth": [
        ("It is not true.", ["True", "False"], "B"),
        ("The statement is correct.", ["True", "False"], "A"),
        ("That is incorrect.", ["False", "True"], "A"),
        ("There isn't any crane.", YES_NO, "B"),
        ("No.1 berth", YES_NO, ""),
        ("Yes", ["Yes", "No", "Yes"], ""),
        ("No", ["no", "No", "Yes"], ""),
        ("It cannot be determined.", ["Yes", "No", "Cannot be determined"], "C"),
        ("I can't identify its name, but I see a pier.", SEA, "D"),
    ],
    "written_unit": [
        ("250 m", ["2.5 km", "0.25 km", "250 m"], "C"),
        ("0.25 km", ["2.5 km", "0.25 km", "250 m"], "B"),
        ("two kilometers", ["2 m", "20 m", "2 km"], "C"),
        ("2,4", ["2", "4"], ""),
        (
            "1 car, 2 vans, 3 trucks and 4 buses",
            ["1 car, 2 vans, 3 trucks and 4 buses", "5 cars, 6 vans, 7 trucks and 8 buses"],
            "A",
        ),
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


ANSWER_CUES = [
    *("The answer is", "Answer:", "Ans:", "The solution is", "Conclusion:", "Verdict:"),
    *("Antwort:", "Die Lösung ist", "La réponse est", "La respuesta es", "Resposta:", "Risposta:"),
    *("Ответ:", "Cevap:", "Antwoord:", "Jawaban:", "Svar:", "الإجابة:", "उत्तर:", "Category:"),
    *("The result is", "My response:", "Prediction:", "My choice is", "The selection is"),
    *("My pick would be", "My guess is", "My bet is", "The estimate is", "The option must be"),
    *("The correct one is", "The right one has to be", "The answer should be option"),
    *("I choose", "Choosing", "I chose", "I pick", "I picked", "I select", "I selected"),
    *("I'll go with", "Going for", "I went with", "I vote for", "I settled on", "I opt for"),
    *("I conclude that it is", "I'd say", "I would say", "I will say", "I guess", "I'd guess"),
    *("I answer", "I mark", "Ich wähle", "Elijo", "Je choisis", "Scelgo", "Escolho", "Я выбираю"),
    *("This leaves", "leaving", "We are left with", "The remaining option is"),
    *("The answer is probably", "The answer is most likely", "The answer is clearly"),
    *(
        "答案",
        "正确选项",
        "正確選項",
        "正解",
        "答え",
        "回答",
        "解答",
        "정답",
        "应选",
        "故选",
        "選択",
    ),
]
FAVOR_CUES = [
    *("So", "Therefore", "Thus", "Hence", "Finally", "Overall", "Consequently", "Daher", "Donc"),
    *("->", "=>", "I lean towards", "Leaning more to", "I prefer", "I favor", "I trust", "I think"),
    *("All points to", "I believe", "Most likely", "More plausible", "Probably", "It is", "It's"),
    *("That must be", "The target looks like", "This appears to be", "This should be", "That was"),
    *("The object in the box seems to be", "The thing belongs to", "The item corresponds to"),
    *("The location shows", "This represents", "The point lies on", "The position is in"),
]
RIGHT_WORDS = [
    *("is correct", "is right", "is the answer", "is true", "is the best option", "was correct"),
    *("would be the most accurate", "must be the right choice", "seems right", "looks correct"),
    *("appears the best", "remains my pick", "should be the solution", "is plausible"),
    *("seems likely", "is the most probable", "looks reasonable", "is closest", "is better"),
    *("feels fitting", "sounds suitable", "is the best match", "is the best fit", "fits"),
    *("best matches", "agrees", "stands out", "makes sense", "makes the most sense", "it is"),
    *("是正确的", "最合适", "が正解", "이 정답", "ist richtig", "est correcte", "es correcta"),
]
WRONG_WORDS = [
    *(
        "is not",
        "is never it",
        "is no match",
        "is wrong",
        "is incorrect",
        "is too small",
        "is false",
    ),
    *("is unlikely", "is less likely", "seems implausible", "is impossible", "is improbable"),
    *("is out", "is excluded", "is eliminated", "is ruled out", "is inaccurate", "is invalid"),
    *("is off", "is unreasonable", "is inconsistent", "is discarded", "is rejected"),
    *("is a distractor", "is worse", "is absent", "is missing", "isn't it", "doesn't fit"),
    *("cannot be", "can't be", "does not fit", "can be ruled out", "must be excluded", "fails"),
    *("should be dismissed", "too high", "undercounts", "overcounts", "misses", "overestimates"),
    *(
        "underestimates",
        "ignores it",
        "lacks one",
        "contradicts it",
        "ruled out",
        ": no",
        "(wrong)",
    ),
    *("是错的", "不对", "可排除", "ではない", "가 아니", "ist falsch", "n'est pas", "no es"),
]
DENIALS = [
    *("It is not", "It was never", "Neither", "Without", "It cannot be", "I rule out", "Excluding"),
    *("We can eliminate", "I reject", "I discard", "I dismiss", "It isn't", "Nicht", "Kein", "Pas"),
    *("instead of", "rather than", "except", "except for", "unlike", "against", "over", "no"),
    *("different from", "anything but", "不是", "不选", "并非", "排除", "没有", "而不是"),
]
CORRECTIONS = [
    *("Wait,", "Actually,", "Correction:", "Scratch that,", "On second thought,", "Sorry,", "Oh,"),
    *("On reflection,", "On closer look,", "Oops,", "or rather", "Hmm,", "I meant", "Make that"),
    *("Update:", "Edit:", "I changed my mind,", "My mistake,", "Let me correct that,", "No,"),
    *("Let me recheck.", "Looking again,", "Revised:", "After reconsidering,", "No wait,"),
]
PLACES = [
    *("near", "next to", "beside", "behind", "in front of", "above", "below", "beneath", "under"),
    *("underneath", "alongside", "adjacent to", "close to", "opposite", "around", "on top of"),
    *("surrounded by", "on", "in", "inside", "at", "with", "by", "holding", "carrying", "riding"),
    *("driving", "wearing", "towards"),
]
FILLERS = [
    *("option", "choice", "letter", "alternative", "number", "the", "an", "either", "probably"),
    *("likely", "possibly", "perhaps", "maybe", "most", "definitely", "clearly", "certainly"),
    *("simply", "just", "about", "approximately", "indeed", "actually", "therefore", "closest to"),
    *("category", "to be", "la", "die", "opción"),
]
NAMES = [
    *("Dock", "Terminal", "Runway", "Gate", "Berth", "Hangar", "Apron", "Wharf", "Quay"),
    *("Harbor", "Station", "Field", "Hall", "Bay", "Stand", "Corner", "Door", "Bridge", "Tank"),
    *("Building", "Zone", "Area", "Block", "Sector", "Section", "Lane", "Row", "Column", "Line"),
    *("Type", "Class", "Plan", "Vitamin", "Figure", "Fig.", "Image", "Panel", "Step", "Stage"),
    *("Point", "Region", "Site", "Base", "Camp", "Grade", "Group", "Team", "Level", "Phase"),
    *("Part", "Unit", "Room", "Road", "Route", "Highway", "Exit", "Platform", "Track", "Tower"),
    *("Series", "Size", "Appendix", "Table", "Vehicle", "Car", "Truck", "Ship", "Vessel", "Boat"),
    *("Plane", "Aircraft", "Object", "Marker", "Camera", "Version", "Model", "Mr.", "Dr."),
    *("The sign reads", "It carries", "A label says", "On it is painted", "Inscribed"),
]
AFTER_LETTER_A = [
    *(
        "is",
        "was",
        "seems",
        "appears",
        "looks",
        "because",
        "since",
        "as",
        "and",
        "or",
        "but",
        "not",
    ),
    *(
        "for",
        "due",
        "given",
        "fits",
        "matches",
        "would",
        "should",
        "could",
        "can",
        "will",
    ),
    *("has", "does", "must", "may", "might", "over", "here", "rather", "instead", "than", "with"),
    *("which", "where", "yes", "then"),
]
ORDINALS = [
    *("The third option", "the 3rd choice", "third alternative", "The third candidate fits best"),
    *(
        "the third one",
        "The third answer is right",
        "It's the third",
        "third",
        "I choose the third",
    ),
    *(
        "pick third",
        "I'd select the third.",
        "say third",
        "go with the third",
        "第三个选项",
        "第3項",
    ),
    *("Option 3", "choice 3", "alternative number 3", "Option three", "option no. 3", "option #3"),
]
SMALL_LETTERS = [
    *(
        "c",
        "c.",
        "(c) it floats",
        "option c floats",
        "choice c floats",
        "the letter c",
        "c: it floats",
    ),
    *("alternative c", "Buchstabe c", "opción c", "The answer is c.", "ans: c", "Antwort: c"),
    *("respuesta: c", "la réponse est c", "Die Antwort ist c", "resposta: c", "risposta: c"),
    *("I choose c.", "I select c", "I'd pick c.", "I go with c.", "I'd go for c", "I say c."),
    *("My guess c.", "so c", "It is c."),
]
THOUGHTS = [
    *("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "analysis", "cot"),
    *("scratchpad", "seed:think"),
]
TURN_ENDS = [
    *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>", "<|end_of_text|>", "<|return|>"),
    *(
        "<|END_OF_TURN_TOKEN|>",
        "<｜end▁of▁sentence｜>",
        "<EOT>",
        "</s>",
        "<eos>",
        "<end_of_turn>",
        "<|im_start|>user",
    ),
    *("<start_of_turn>user", "<|user|>", "[INST]", "\nUSER:", "\nUser:", "\nHuman:", "\nHUMAN:"),
    *("\nInstruction:", "\nQuestion:", "\nQUESTION 2:", "\nNext question:", "\nNew question:"),
    *("\nProblem:", "\nQ:", "\n问题:", "\n題目:", "\n質問:", "\n질문:", "\nFrage:", "\nuser\n"),
    *("\nAssistant:", "\nModel:", "\nassistant\n", " USER: Well "),
]
ASSISTANT_TURNS = [
    *("<|im_start|>assistant\n", "<|start_header_id|>assistant<|end_header_id|>"),
    *("<start_of_turn>model\n", "<|assistant|>", "[/INST]", "\nASSISTANT:", "\nAssistant:"),
    *("\n### Response:", "\nModel:", "\nassistant\n"),
]
TAGS = [
    *("answer", "final_answer", "final answer", "final", "choice", "option", "result", "ans"),
    *("prediction",),
]
JSON_KEYS = [
    *("answer", "Answer", "final_answer", "correct option", "selected_choice", "chosen_option"),
    *("best_answer", "predicted_answer", "my answer", "the_answer", "option", "choice", "letter"),
    *("answer_letter", "answer_choice", "option_id", "answer_key", "selection", "selected"),
    *("prediction", "pred", "result", "response", "output", "答案", "选项", "정답", "答え"),
]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        *((f"The answer is {word} C with a long hull", "C") for word in FILLERS),
        *((f"{name} C", "") for name in NAMES),
        *((f"Well, A {word} that.", "A") for word in AFTER_LETTER_A),
        *((reply, "C") for reply in ORDINALS + SMALL_LETTERS),
        *((f"<{name}>It is A.", "") for name in THOUGHTS),
        *((f"C it is{token}The answer is A", "C") for token in TURN_ENDS),
        *((f"<|user|>The answer is A{token}C", "C") for token in ASSISTANT_TURNS),
        *((f"<{tag}>C</{tag}> The answer is A", "C") for tag in TAGS),
        *((f'{{"why": "The answer is A", "{key}": "C"}}', "C") for key in JSON_KEYS),
        *((f"A floats and D sinks. {cue} C with a long hull", "C") for cue in ANSWER_CUES),
        *((f"A floats and D sinks. {cue} C with a long hull", "C") for cue in FAVOR_CUES),
        *((f"A floats and D sinks. Here C {word}", "C") for word in RIGHT_WORDS),
        *((f"Here C {word}; D sinks.", "D") for word in WRONG_WORDS),
        *((f"I see this. {denial} C here; D sinks.", "D") for denial in DENIALS),
        *((f"The answer is A. {cue} C with a long hull", "C") for cue in CORRECTIONS),
        *((f"I see one pier {place} a buoy", "D") for place in PLACES),
    ],
)
def test_cue_weighs(reply, letter):
    assert match_option(reply, SEA) == letter


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
        pytest.param("options", {"Yes", "No"}, "row 1: options", id="set_of_options"),
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


@pytest.mark.parametrize(
    "replies", [{"A", "B"}, {"A": 0, "B": 1}, {"A": 0}.keys()], ids=["set", "dict", "keys"]
)
def test_column_without_an_order_of_rows_is_an_error(metric, replies):
    with pytest.raises(ValueError, match="predictions: expected a list"):
        metric.compute(predictions=replies, references=["A", "B"], options=[YES_NO, YES_NO])


def test_accuracy_per_group(metric):
    result = metric.compute(
        predictions=["A", "B", "A", "?"],
        references=["A", "A", "A", "A"],
        options=[YES_NO] * 4,
        groups=["urban", "urban", np.int64(7), np.int64(7)],
    )
    # urban: right, wrong; 7: right, unparsed
    assert result["accuracy_per_group"] == {"urban": 0.5, 7: 0.5}
    assert result["n_per_group"] == {"urban": 2, 7: 2}
    assert [type(label) for label in result["n_per_group"]] == [str, int]


def test_a_question_counts_if_all_its_rotations_are_right(metric):
    result = metric.compute(
        predictions=["A", "B", "A", "A", "B", "B"],
        references=["A", "B", "A", "B", "B", "B"],
        options=[["dam", "port"], ["port", "dam"]] * 2 + [USES, SEA],
        question_ids=["q1", "q1", "q2", "q2", "q3", "q4"],
    )
    # q1: both right; q2: one of two; q3 and q4 are asked once and right -> 3 of 4
    assert result["circular_accuracy"] == 0.75
    assert result["n_questions"] == 4
    assert result["accuracy"] == 5 / 6


def test_labels_cover_the_rows_in_the_order_of_adding(metric):
    labels = {"groups": ["x", "y", "x"], "clusters": [1, 1, 2], "question_ids": ["p", "p", "q"]}
    whole = metric.compute(predictions=ROWS[0], references=ROWS[1], options=ROWS[2], **labels)
    metric.add(prediction=ROWS[0][0], reference=ROWS[1][0], options=ROWS[2][0])
    metric.add_batch(predictions=ROWS[0][1:], references=ROWS[1][1:], options=ROWS[2][1:])
    assert metric.compute(**labels) == whole
    metric.add(prediction=ROWS[0][0], reference=ROWS[1][0], options=ROWS[2][0])
    rest = {
        "predictions": iter(ROWS[0][1:]),
        "references": iter(ROWS[1][1:]),
        "options": iter(ROWS[2][1:]),
    }
    assert metric.compute(**rest, **labels) == whole
    # ROWS: right, right, unparsed
    assert whole["accuracy_per_group"] == {"x": 0.5, "y": 1.0}
    assert whole["circular_accuracy"] == 0.5


@pytest.mark.parametrize("name", ["groups", "clusters", "question_ids"])
@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        pytest.param(["x"], "each of the 2 rows", id="short"),
        pytest.param(["x", "y", "z"], "got 3", id="long"),
        pytest.param(["x", None], "row 1", id="none"),
        pytest.param([float("nan"), "x"], "row 0", id="nan"),
        pytest.param([True, "x"], "row 0", id="bool"),
        pytest.param("xy", "expected a list", id="text"),
        pytest.param({"x", "y"}, "expected a list", id="set"),
    ],
)
def test_bad_labels_are_an_error_that_names_them_and_adds_nothing(metric, name, labels, problem):
    metric.add(prediction="A", reference="A", options=YES_NO)
    rows = {"predictions": ["B"], "references": ["B"], "options": [YES_NO]}
    with pytest.raises(ValueError, match=f"{name}.*{problem}|{problem}.*{name}"):
        metric.compute(**rows, **{name: labels})
    assert metric.compute()["n"] == 1


def test_labels_without_rows_give_empty_answers(metric):
    labels = {"groups": [], "clusters": [], "question_ids": []}
    result = metric.compute(predictions=[], references=[], options=[], **labels)
    assert result["accuracy_per_group"] == {}
    assert result["accuracy_interval"] == (0.0, 1.0)
    assert (result["circular_accuracy"], result["n_questions"], result["n_clusters"]) == (0.0, 0, 0)


def _slow_interval(right, clusters):
    """Walk the rows of each drawn cluster; the draws are the documented ones."""
    members = {}
    for cluster, is_right in zip(clusters, right, strict=True):
        members.setdefault(cluster, []).append(is_right)
    ordered = sorted(members.values(), key=lambda rows: (len(rows), sum(rows)))
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(2000):
        rows = [row for i in rng.integers(len(ordered), size=len(ordered)) for row in ordered[i]]
        shares.append(sum(rows) / len(rows))
    shares.sort()

    def percentile(q):
        place = q * (len(shares) - 1)
        below = int(place)
        return shares[below] + (place - below) * (shares[below + 1] - shares[below])

    return percentile(0.025), percentile(0.975)


@pytest.mark.parametrize(("n", "n_clusters"), [(2, 2), (30, 7), (200, 60), (400, 399)])
def test_interval_equals_a_slow_bootstrap(n, n_clusters):
    rng = np.random.default_rng(n)
    clusters = [*range(n_clusters), *rng.integers(n_clusters, size=n - n_clusters).tolist()]
    right = [*(rng.random(n - 2) < 0.6).tolist(), True, False][::-1]
    expected = _slow_interval(right, clusters)
    assert clustered_interval(right, clusters) == pytest.approx(expected, abs=1e-12)
    # Neither the order of the rows nor the names of the clusters matter.
    order = rng.permutation(n)
    names = [f"picture {clusters[i] * 31 % 401}" for i in order]
    assert clustered_interval([right[i] for i in order], names) == clustered_interval(
        right, clusters
    )


@pytest.mark.parametrize(
    ("right", "clusters", "share", "n"),
    [
        pytest.param([True] * 4, ["a", "a", "b", "c"], 1.0, 3, id="all_right"),
        pytest.param([False] * 4, ["a", "b", "c", "d"], 0.0, 4, id="all_wrong"),
        pytest.param([True, False] * 3, [0, 0, 1, 1, 2, 2], 0.5, 3, id="each_half_right"),
        pytest.param([True, True, False], [5, 5, 5], 2 / 3, 1, id="one_cluster"),
    ],
)
def test_interval_is_wilson_of_the_clusters_where_they_agree(right, clusters, share, n):
    low, high = clustered_interval(right, clusters)
    # The bounds solve (p - share)^2 = z^2 p (1 - p) / n.
    for bound in (low, high):
        assert (bound - share) ** 2 == pytest.approx(
            1.959964**2 * bound * (1 - bound) / n, rel=1e-5
        )
    assert low <= share <= high
    assert (low, high) == wilson(share, n)


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40),
)
def test_interval_lies_within_zero_and_one(rows):
    right, clusters = zip(*rows, strict=True)
    low, high = clustered_interval(right, clusters)
    assert 0.0 <= low <= high <= 1.0


def test_interval_of_a_full_benchmark_is_that_of_the_normal_approximation():
    """18,204 independent rows: share ± 1.96 sqrt(share (1 - share) / n), here ± 0.0071."""
    rng = np.random.default_rng(0)
    clusters = rng.integers(3000, size=18_204).tolist()
    right = (rng.random(18_204) < 0.6).tolist()
    low, high = clustered_interval(right, clusters)
    share = sum(right) / len(right)
    half = 1.96 * (share * (1 - share) / len(right)) ** 0.5
    assert (low, high) == pytest.approx((share - half, share + half), abs=0.1 * half)


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
        f"{LIGHT}sys.modules['soubench'] = None\n"
        f"import evaluate; metric = evaluate.load({FOLDER!r})\n"
        "rows = {'predictions': ['B'], 'references': ['B'], 'options': [['x', 'y']]}\n"
        "print(metric.compute(**rows)['accuracy'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1.0"
