"""BLEU, ROUGE and BERTScore of captions against one or more references each."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from itertools import zip_longest
from typing import Any, NamedTuple

import datasets
import evaluate
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU

from .bert import BertOptions, bert_scores
from .rows import check_rows

SCORES = ("bleu", "rouge", "bertscore")
TOKENIZERS = ("13a", "zh", "char")
MAX_ORDER = 4
ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
_NO_BERT_OPTIONS = BertOptions()
# Thai to Tibetan, Myanmar, Khmer, kana, Han.
_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


class Scored(NamedTuple):
    """What one family of scores adds to the result.

    Attributes:
        values: Result keys and their values.
        per_row: For scores that are means over rows, the value of each row.
        setting: Part of the hash.
        warnings: Part of the warnings.
    """

    values: dict[str, float]
    per_row: dict[str, list[float]]
    setting: str
    warnings: list[str]


def score_bleu(
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Scored:
    """Compute BLEU-1 to BLEU-4 (RRS-10K Eq. 2), unsmoothed, and what they are made of.

    The counts are sacrebleu's. nltk's ``corpus_bleu`` agrees unless a prediction has fewer tokens
    than the order: nltk then counts one n-gram that is not there
    (test: test_bleu_is_nltk_where_every_prediction_has_four_tokens).

    Args:
        predictions: One text per row.
        references: One or more texts per row; rows may differ in number.
        tokenize: Tokenizer of sacrebleu, one of `TOKENIZERS`.
        lowercase: Lower-case all texts first.

    Returns:
        ``bleu1``..``bleu4`` and ``ngram_precision1``..``ngram_precision4`` (0 to 100),
        ``brevity_penalty`` (0 to 1).
    """
    bleu = BLEU(tokenize=tokenize, lowercase=lowercase, smooth_method="none", force=True)
    counts, totals = [0] * MAX_ORDER, [0] * MAX_ORDER
    predicted_tokens = reference_tokens = 0
    if predictions:
        # sacrebleu wants the first references of all rows, then the second ones, None for none.
        streams = [list(stream) for stream in zip_longest(*references)]
        corpus = bleu.corpus_score(predictions, streams)
        counts, totals = corpus.counts, corpus.totals
        predicted_tokens, reference_tokens = corpus.sys_len, corpus.ref_len
    values = {}
    for n in range(1, MAX_ORDER + 1):
        found = BLEU.compute_bleu(
            counts[:n], totals[:n], predicted_tokens, reference_tokens, max_ngram_order=n
        )
        values[f"bleu{n}"] = min(found.score, 100.0)  # exp(log 100) is a little more
    for n in range(1, MAX_ORDER + 1):
        values[f"ngram_precision{n}"] = found.precisions[n - 1]
    values["brevity_penalty"] = found.bp if predicted_tokens else 0.0
    warnings = _rows_with(
        lambda text: tokenize == "13a" and _UNSPACED.search(text) is not None,
        predictions,
        references,
        "bleu: {} hold a script written without spaces, and 13a makes one token of a whole run; "
        "use tokenize='zh' or 'char'",
    )
    setting = (
        f"bleu: sacrebleu {version('sacrebleu')} tok={tokenize} "
        f"case={'lower' if lowercase else 'kept'} smooth=none"
    )
    return Scored(values, {}, setting, warnings)


def score_rouge(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Scored:
    """Compute ROUGE-1, ROUGE-2 and ROUGE-L (RRS-10K Eq. 3-4: F1, beta 1), stemmer off.

    Of several references the one with the best F1 counts, for each of the three on its own, as
    rouge_score's ``score_multi`` does. The mean over rows is what evaluate's ``rouge`` calls mid.

    Args:
        predictions: One text per row.
        references: One or more texts per row.

    Returns:
        ``rouge1``, ``rouge2``, ``rougeL`` (0 to 100).
    """
    scorer = RougeScorer(list(ROUGE_TYPES), use_stemmer=False)
    rows = [
        scorer.score_multi(group, prediction)
        for prediction, group in zip(predictions, references, strict=True)
    ]
    per_row = {kind: [100.0 * row[kind].fmeasure for row in rows] for kind in ROUGE_TYPES}
    return Scored(
        {kind: _mean(values) for kind, values in per_row.items()},
        per_row,
        f"rouge: rouge_score {version('rouge-score')} stemmer=off",
        _rows_with(
            lambda text: any(char.isalnum() and not char.isascii() for char in text),
            predictions,
            references,
            "rouge: {} hold letters or digits other than a-z and 0-9, which rouge_score drops: "
            "even equal texts may score 0",
        ),
    )


def score_bert(
    predictions: Sequence[str], references: Sequence[Sequence[str]], options: BertOptions
) -> Scored:
    """Compute BERTScore (RRS-10K Eq. 5-7) per row, then averaged; see ``bert.py``.

    Args:
        predictions: One text per row.
        references: One or more texts per row.
        options: Model, layer and the rest.

    Returns:
        ``bertscore_p``, ``bertscore_r``, ``bertscore_f1`` (times 100).
    """
    found = bert_scores(predictions, references, options)
    per_row = {
        f"bertscore_{name}": [100.0 * getattr(row, name) for row in found.rows]
        for name in ("p", "r", "f1")
    }
    return Scored(
        {name: _mean(values) for name, values in per_row.items()},
        per_row,
        found.setting,
        found.warnings,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _rows_with(
    is_odd: Callable[[str], bool],
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    message: str,
) -> list[str]:
    """Return the message with the number of rows that hold an odd text, or nothing."""
    rows = [
        i
        for i, (prediction, group) in enumerate(zip(predictions, references, strict=True))
        if any(not text.isascii() and is_odd(text) for text in (prediction, *group))
    ]
    if not rows:
        return []
    return [message.format(f"{len(rows)} of {len(predictions)} rows (first: {rows[0]})")]


def score(
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    scores: Iterable[str] | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
    bert: BertOptions = _NO_BERT_OPTIONS,
) -> dict[str, Any]:
    """Score captions; pure function behind the metric.

    An empty reference is left out where its row has another.

    Args:
        predictions: One text per row, ``""`` where there is none.
        references: One or more texts per row.
        scores: Some of `SCORES`; None is BLEU and ROUGE, and BERTScore if a model is named.
        tokenize: Tokenizer of BLEU, one of `TOKENIZERS`.
        lowercase: Whether BLEU lower-cases.
        bert: Options of BERTScore.

    Returns:
        The keys of `score_bleu`, `score_rouge` and `score_bert` as far as asked for; ``per_row``
        (lists by key), ``n``, ``empty_predictions`` and ``empty_references`` (counts of rows),
        ``warnings`` (list of str) and ``hash`` (the setting).

    Raises:
        ValueError: An option is unknown, has the wrong type, or has no effect on the scores
            asked for.
    """
    flags: dict[str, object] = {
        "lowercase": lowercase,
        "idf": bert.idf,
        "rescale_with_baseline": bert.rescale_with_baseline,
    }
    for name, value in flags.items():
        if not isinstance(value, bool):
            msg = f"{name}: expected True or False, got {value!r}"
            raise ValueError(msg)
    chosen = _chosen(scores, bert)
    if tokenize not in TOKENIZERS:
        msg = f"tokenize: expected one of {', '.join(TOKENIZERS)}, got {tokenize!r}"
        raise ValueError(msg)
    if "bleu" not in chosen and (tokenize != "13a" or lowercase):
        name = "lowercase" if lowercase else "tokenize"
        msg = f"{name}: only BLEU uses this, and it is not computed; add 'bleu' to scores"
        raise ValueError(msg)
    groups = [[text for text in group if text.strip()] or [""] for group in references]
    parts = []
    if "bleu" in chosen:
        parts.append(score_bleu(predictions, groups, tokenize=tokenize, lowercase=lowercase))
    if "rouge" in chosen:
        parts.append(score_rouge(predictions, groups))
    if "bertscore" in chosen:
        parts.append(score_bert(predictions, groups, bert))
    result: dict[str, Any] = {}
    for part in parts:
        result |= part.values
    return result | {
        "per_row": {key: values for part in parts for key, values in part.per_row.items()},
        "n": len(predictions),
        "empty_predictions": sum(not text.strip() for text in predictions),
        "empty_references": sum(group == [""] for group in groups),
        "warnings": [warning for part in parts for warning in part.warnings],
        "hash": " | ".join(part.setting for part in parts),
    }


def _chosen(scores: Iterable[str] | None, bert: BertOptions) -> list[str]:
    if scores is None:
        chosen = list(SCORES if bert.model_type is not None else SCORES[:2])
    elif isinstance(scores, str):
        chosen = [scores]
    else:
        chosen = list(scores) if isinstance(scores, Iterable) else []
    if not chosen or any(name not in SCORES for name in chosen):
        msg = f"scores: expected some of {', '.join(SCORES)}, got {scores!r}"
        raise ValueError(msg)
    idle = [
        name
        for name, default in _NO_BERT_OPTIONS._asdict().items()
        if getattr(bert, name) != default
    ]
    if idle and "bertscore" not in chosen:
        msg = (
            f"{', '.join(idle)}: only BERTScore uses this, and it is not computed; give model_type "
            "(and no scores), or 'bertscore' among scores"
        )
        raise ValueError(msg)
    return chosen


_DESCRIPTION = """
Corpus BLEU-1 to BLEU-4 (sacrebleu's counts and tokens, unsmoothed) with the single n-gram
precisions, ROUGE-1, ROUGE-2 and ROUGE-L (rouge_score, F1), and on request BERTScore (bert-score) of
captions with one or more references each; all times 100.
"""
_INPUTS = """
Args:
    predictions: list of str, the captions; a missing one is "".
    references: per row one str, or a list of them.
    scores: some of "bleu", "rouge", "bertscore"; without it BLEU and ROUGE, and BERTScore if
        model_type is given.
    tokenize: tokenizer of BLEU: "13a" (default), "zh" or "char".
    lowercase: whether BLEU lower-cases the texts, default False.
    model_type: model of BERTScore, a name on the Hub or a local folder; "roberta-large" if
        BERTScore is asked for without it.
    num_layers: layer to compare; needed for local folders.
    batch_size: texts encoded together, default 64.
    device: "cpu", "cuda", ...; default: CUDA where there is one.
    idf: weigh tokens by inverse document frequency, default False.
    rescale_with_baseline: rescale BERTScore, default False.
    baseline_path: file of baselines for rescaling.

Returns:
    bleu1..bleu4: cumulative BLEU with brevity penalty, 0 to 100, higher is better.
    ngram_precision1..ngram_precision4: modified precision of one order, 0 to 100.
    brevity_penalty: 0 to 1.
    rouge1, rouge2, rougeL: mean F1, 0 to 100, higher is better.
    bertscore_p, bertscore_r, bertscore_f1: means, higher is better.
    per_row: ROUGE and BERTScore of each row.
    n, empty_predictions, empty_references: counts of rows.
    warnings: what a reader of the scores should know, list of str.
    hash: libraries, tokenizer, model, layer and options, as one str.

Examples:
    >>> metric = evaluate.load("caption_scores")
    >>> metric.compute(predictions=["two ships at sea"], references=["two ships at sea"])["bleu4"]
    100.0
"""
_CITATION = """
@inproceedings{papineni-etal-2002-bleu,
  title = {{BLEU}: a Method for Automatic Evaluation of Machine Translation},
  author = {Papineni, Kishore and Roukos, Salim and Ward, Todd and Zhu, Wei-Jing},
  booktitle = {Proceedings of ACL},
  year = {2002}
}
@inproceedings{post-2018-call,
  title = {A Call for Clarity in Reporting {BLEU} Scores},
  author = {Post, Matt},
  booktitle = {Proceedings of WMT},
  year = {2018}
}
@inproceedings{lin-2004-rouge,
  title = {{ROUGE}: A Package for Automatic Evaluation of Summaries},
  author = {Lin, Chin-Yew},
  booktitle = {Text Summarization Branches Out},
  year = {2004}
}
@inproceedings{zhang-etal-2020-bertscore,
  title = {{BERTScore}: Evaluating Text Generation with {BERT}},
  author = {Zhang, Tianyi and Kishore, Varsha and Wu, Felix and Weinberger, Kilian Q. and
            Artzi, Yoav},
  booktitle = {ICLR},
  year = {2020}
}
"""


class CaptionScores(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """BLEU, ROUGE and BERTScore of captions; see the card."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {
                    "predictions": datasets.Value("string"),
                    "references": datasets.Sequence(datasets.Value("string")),
                }
            ),
        )

    def add_batch(
        self, *, predictions: Iterable[Any] | None = None, references: Iterable[Any] | None = None
    ) -> None:
        """Check a batch of rows and keep it; a single reference becomes a list of one."""
        rows = check_rows(predictions, references, first_row=len(self))
        evaluate.Metric.add_batch(self, **rows._asdict())

    def add(self, *, prediction: object = None, reference: object = None) -> None:
        """Check one row and keep it."""
        rows = check_rows([prediction], [reference], first_row=len(self))
        evaluate.Metric.add(self, prediction=rows.predictions[0], reference=rows.references[0])

    def _compute(
        self,
        predictions: list[str],
        references: list[list[str]],
        scores: Iterable[str] | None = None,
        tokenize: str = "13a",
        lowercase: bool = False,
        model_type: str | None = None,
        num_layers: int | None = None,
        batch_size: int = 64,
        device: str | None = None,
        idf: bool = False,
        rescale_with_baseline: bool = False,
        baseline_path: str | None = None,
    ) -> dict[str, Any]:
        return score(
            predictions,
            references,
            scores=scores,
            tokenize=tokenize,
            lowercase=lowercase,
            bert=BertOptions(
                model_type,
                num_layers,
                batch_size,
                device,
                idf,
                rescale_with_baseline,
                baseline_path,
            ),
        )
