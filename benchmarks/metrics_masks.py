"""Speed of `dice` and `mask_iou` on run lengths, against torchmetrics on the same masks.

Run it alone, with torch and torchmetrics, which no extra of this project installs::

    pip install "torch>=2.6" "torchmetrics>=1.9"
    OMP_NUM_THREADS=1 python benchmarks/metrics_masks.py

Both sides get the same COCO run lengths of blob masks of 1024 x 1024 pixels, through a whole
``compute``, and must agree to 1e-5. torchmetrics works on tensors, so its time includes decoding
the run lengths with pycocotools; the share of decoding is printed too. Each figure is the best of
several rounds in one process, the two sides taking turns.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
from PIL import Image
from pycocotools import mask as coco

METRICS = Path(__file__).parents[1] / "metrics"
SIDE_PX = 1024
N_PAIRS = 50
ROUNDS = 5
Rle = dict[str, Any]


def blob_mask(rng: np.random.Generator, cells: int) -> Rle:
    """Return the run lengths of smooth blobs: a coarse random field, enlarged and cut at 0.6."""
    field = Image.fromarray(rng.random((cells, cells), dtype=np.float32))
    smooth = np.asarray(field.resize((SIDE_PX, SIDE_PX), Image.Resampling.BICUBIC))
    rle: Rle = coco.encode(np.asfortranarray(smooth > 0.6, dtype=np.uint8))
    return rle


def best_seconds(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return the least time of each call, the calls taking turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def main() -> None:
    try:
        import torch
        from torchmetrics.segmentation import DiceScore, MeanIoU
    except ImportError as error:
        sys.exit(
            f"{error}. This benchmark compares with torchmetrics, which soubench[dev] does not "
            f"install. Install it, then run this again:\n  {sys.executable} -m pip install "
            '"torch>=2.6" "torchmetrics>=1.9"'
        )
    torch.set_num_threads(1)

    def decoded(rles: list[Rle]) -> Any:  # noqa: ANN401  # a tensor (N, 1, H, W)
        return torch.stack([torch.from_numpy(coco.decode(rle)) for rle in rles]).unsqueeze(1)

    def by_torchmetrics(peer: Any) -> float:  # noqa: ANN401  # a torchmetrics metric
        peer.reset()
        for prediction, reference in zip(predictions, references, strict=True):
            peer.update(decoded([prediction]).bool(), decoded([reference]).bool())
        return float(peer.compute())

    # Each peer's mean over pictures, background left out: its single channel is the foreground.
    peers = {
        "dice": ("dice", DiceScore(1, include_background=True, average="micro")),
        "mask_iou": ("mean_iou", MeanIoU(1, include_background=True)),
    }
    for cells, kind in ((6, "few blobs"), (16, "many blobs")):
        rng = np.random.default_rng(0)
        predictions = [blob_mask(rng, cells) for _ in range(N_PAIRS)]
        references = [blob_mask(rng, cells) for _ in range(N_PAIRS)]
        n_bytes = int(np.mean([len(rle["counts"]) for rle in predictions]))
        print(f"{kind}: {N_PAIRS} pairs of {SIDE_PX} x {SIDE_PX}, {n_bytes} bytes a mask")
        for name, (key, peer) in peers.items():
            metric = evaluate.load(str(METRICS / name))

            def ours() -> float:
                result = metric.compute(predictions=predictions, references=references)  # noqa: B023
                return float(result[key])  # noqa: B023

            def theirs() -> float:
                return by_torchmetrics(peer)  # noqa: B023

            def decoding() -> None:
                for rle in (*predictions, *references):  # noqa: B023
                    decoded([rle])

            if abs(ours() - theirs()) > 1e-5:
                sys.exit(f"{name}: {ours()} here, {theirs()} by torchmetrics")
            mine, peer_s, decode_s = best_seconds(ROUNDS, ours, theirs, decoding)
            print(
                f"  {name}: {N_PAIRS / mine:,.0f} pairs/s; torchmetrics {N_PAIRS / peer_s:,.0f} "
                f"pairs/s, of which decoding {decode_s / peer_s:.0%}; ratio {peer_s / mine:.1f}"
            )


if __name__ == "__main__":
    main()
