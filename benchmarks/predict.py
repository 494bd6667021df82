"""What ``soubench predict`` costs beside model and pictures: python benchmarks/predict.py.

Two figures, each against what it is measured with in the same run: the harness per row with a back
end that answers at once, and requests to a server that takes a second, against the ideal of full
lanes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import datasets
from PIL import Image

from soubench.inference.backends import Facts
from soubench.inference.backends.openai_server import OpenAIBackend
from soubench.inference.chat import Picture, Request
from soubench.inference.predict import PredictOptions, plan, predict
from soubench.inference.run_folder import Reply, Size

STUB = Path(__file__).parent.parent / "tests" / "inference" / "stub_server.py"
HARNESS_BAR_MS = 3.0
SERVER_BAR = 1.3
PICTURE_WH = (1360, 765)


class NullBackend:
    """Answers at once, without opening a picture."""

    facts = Facts({"name": "null"}, {})

    def fed_size(self, picture: Picture) -> Size | None:
        """Return None."""
        return None

    def replies(self, requests: Iterator[Request]) -> Generator[Reply]:
        """Answer A."""
        for request in requests:
            yield Reply(request.question.id, request.question.rotation, reply="A")


def write_rows(folder: Path, rows: int) -> Path:
    """Write rows of the form of SOU-VQA with embedded pictures."""
    folder.mkdir()
    picture = folder.parent / "picture.jpg"
    Image.effect_noise(PICTURE_WH, 60).convert("RGB").save(picture, quality=90)
    data = {"bytes": picture.read_bytes(), "path": "picture.jpg"}
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "image": datasets.Image(),
            "task": datasets.Value("string"),
            "question": datasets.Value("string"),
            "options": datasets.List(datasets.Value("string")),
            "answer": datasets.ClassLabel(names=list("ABCD")),
            "system_prompt": datasets.Value("string"),
        }
    )
    made = {
        "id": [f"row-{i:06d}" for i in range(rows)],
        "image": [data] * rows,
        "task": ["OC"] * rows,
        "question": [f"How many small objects are there in picture {i}?" for i in range(rows)],
        "options": [["1", "2", "3", "4"]] * rows,
        "answer": [i % 4 for i in range(rows)],
        "system_prompt": ["A small object covers at most 1024 square pixels."] * rows,
    }
    datasets.disable_progress_bars()
    table = datasets.Dataset.from_dict(made, features=features)
    table.to_parquet(folder / "test-00000-of-00001.parquet")
    return folder


def harness(folder: Path, scratch: Path, rows: int) -> None:
    """Time the null back end, and the disk's own part of it."""
    options = PredictOptions(str(folder), None, scratch / "null", limit=rows)
    started = time.perf_counter()
    planned = plan(options)
    planning = time.perf_counter() - started
    started = time.perf_counter()
    done = predict(planned, NullBackend())
    asking = time.perf_counter() - started
    per_row = 1000 * (planning + asking) / done.asked
    print(
        f"harness: {done.asked} rows, {1000 * planning / done.asked:.2f} ms a row to plan, "
        f"{1000 * asking / done.asked:.2f} to ask and write with fsync: {per_row:.2f} ms a row "
        f"(bar {HARNESS_BAR_MS})"
    )


def server(folder: Path, scratch: Path, requests: int, lanes: int, latency_s: float) -> None:
    """Time a server of fixed latency against the ideal of full lanes."""
    plan_json = json.dumps({"latency_s": latency_s})
    process = subprocess.Popen(
        [sys.executable, str(STUB), plan_json], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        backend = OpenAIBackend("stub", [url], concurrency=lanes)
        planned = plan(PredictOptions(str(folder), None, scratch / "server", limit=requests))
        started = time.perf_counter()
        done = predict(planned, backend)
        seconds = time.perf_counter() - started
    finally:
        process.kill()
        process.wait()
    ideal = requests * latency_s / lanes
    print(
        f"server: {done.answered} of {requests} replies, {lanes} in flight, {latency_s:g} s each: "
        f"{seconds:.1f} s, ideal {ideal:.1f} s, ratio {seconds / ideal:.2f} (bar {SERVER_BAR})"
    )


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--lanes", type=int, default=64)
    parser.add_argument("--latency", type=float, default=1.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        datasets.config.HF_DATASETS_CACHE = scratch / "cache"
        folder = write_rows(scratch / "rows", max(args.rows, args.requests))
        harness(folder, scratch, args.rows)
        server(folder, scratch, args.requests, args.lanes, args.latency)


if __name__ == "__main__":
    main()
