"""Cost of ``caption_scores`` beside the libraries it wraps, as ratios of one run.

Run: ``python benchmarks/metrics_captions.py``

2,000 captions of 20 words, with one and with three references each. Peers: sacrebleu's BLEU and
rouge_score's RougeScorer called directly on the same texts, and both together against ``compute``,
which includes the checks and evaluate's own storage. A ratio of 1 means that the wrapper is free.
The last line says whether the cost is linear in the number of rows.
"""

import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("HF_HOME", tempfile.mkdtemp())
os.environ["HF_EVALUATE_OFFLINE"] = "1"

import evaluate
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU

FOLDER = str(Path(__file__).parents[1] / "metrics" / "caption_scores")
WORDS = [f"word{i}" for i in range(300)]
N = 2_000


def timed(function: Callable[[], object]) -> float:
    """Return the best of three times in seconds."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def captions(rng: random.Random, n: int) -> list[str]:
    return [" ".join(rng.choices(WORDS, k=20)) + "." for _ in range(n)]


def main() -> None:
    metric = evaluate.load(FOLDER)
    rouge_types = ["rouge1", "rouge2", "rougeL"]
    for n_references in (1, 3):
        rng = random.Random(0)
        predictions = captions(rng, N)
        references = [captions(rng, n_references) for _ in range(N)]
        streams = [list(stream) for stream in zip(*references, strict=True)]

        def bleu(predictions=predictions, streams=streams) -> None:  # noqa: ANN001
            BLEU().corpus_score(predictions, streams)

        def rouge(predictions=predictions, references=references) -> None:  # noqa: ANN001
            scorer = RougeScorer(rouge_types)
            for text, group in zip(predictions, references, strict=True):
                scorer.score_multi(group, text)

        def ours(scores, p=predictions, r=references) -> Callable[[], object]:  # noqa: ANN001
            return lambda: metric.compute(predictions=p, references=r, scores=scores)

        peers = {"bleu": timed(bleu), "rouge": timed(rouge)}
        peers["bleu and rouge"] = peers["bleu"] + peers["rouge"]
        print(f"{N} captions, {n_references} reference(s) each")
        for name, peer in peers.items():
            seconds = timed(ours(name.split(" and ")))
            print(
                f"  {name:14s} {seconds:.3f} s, called directly {peer:.3f} s, "
                f"ratio {seconds / peer:.2f}"
            )
    rng = random.Random(1)
    few, many = captions(rng, N // 4), captions(rng, N)
    small = timed(lambda: metric.compute(predictions=few, references=few[::-1]))
    large = timed(lambda: metric.compute(predictions=many, references=many[::-1]))
    print(f"linear: time per row at {N} is {large / small / 4:.2f} x that at {N // 4}")


if __name__ == "__main__":
    main()
