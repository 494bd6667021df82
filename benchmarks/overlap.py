"""Speed of soubench overlap, as ratios against peers of the same run.

Run: ``python benchmarks/overlap.py [search|hashing]``; both by default.

search   pairs of near hashes among n x n; peers: XOR and bit count of all pairs in numpy, in blocks
         that stay in the processor's cache, and imagehash's own difference in a Python loop (a part
         of the pairs, scaled up); and the search's own memory
hashing  pictures per second on one core, as the command hashes them and as builders do (without
         the hash of the pixels); peer: a plain loop of Pillow, imagehash.phash and SHA-256 of the
         file, which neither turns pictures upright nor says why one cannot be read
"""

import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import imagehash
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from soubench.builders.demo_scenes import write_demo_source
from soubench.builders.near_duplicates import hash_picture, near_duplicates

MAX_DISTANCE = 4
ROUNDS = 3
LOOP = 300


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def hashes(n: int, bits: int, seed: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 1 << bits, n, dtype=np.uint64)


def all_pairs(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> list[NDArray[np.int64]]:
    rows = max(1, (1 << 19) // b.size)
    return [
        np.argwhere(np.bitwise_count(a[i : i + rows, None] ^ b) <= MAX_DISTANCE)
        for i in range(0, a.size, rows)
    ]


def search() -> None:
    print(f"near hashes, up to {MAX_DISTANCE} bits")
    search_among(1_000, 64, "random")
    search_among(30_000, 64, "random")
    search_among(30_000, 44, "20 bits the same in all")


def search_among(n: int, bits: int, name: str) -> None:
    a, b = hashes(n, bits, 0), hashes(n, bits, 1)
    b[: n // 100] = a[: n // 100] ^ np.uint64(0b101)
    ours = statistics.median(timed(lambda: near_duplicates(a, b)) for _ in range(ROUNDS))
    blocks = statistics.median(timed(lambda: all_pairs(a, b)) for _ in range(ROUNDS))
    part_a, part_b = (
        [imagehash.hex_to_hash(f"{h:016x}") for h in s[:LOOP].tolist()] for s in (a, b)
    )
    loop = timed(lambda: [(x, y) for x in part_a for y in part_b if x - y <= MAX_DISTANCE])
    loop *= (n / LOOP) ** 2
    tracemalloc.start()
    found = len(near_duplicates(a, b))
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    print(
        f"  {n} x {n}, {name}: {ours:.3f} s, {found} pairs, peak {peak:.0f} MiB; "
        f"all pairs in numpy {blocks:.3f} s ({blocks / ours:.1f} x), "
        f"imagehash in a loop {loop:.0f} s ({loop / ours:.0f} x)"
    )


def hashing() -> None:
    print("hashing on one core, the median of three rounds in turns")
    for source, size_wh in (("visdrone", (1920, 1080)), ("ai-tod", (800, 800))):
        with tempfile.TemporaryDirectory() as folder:
            write_demo_source(source, Path(folder), pictures=24, size_wh=size_wh)
            paths = [p for p in Path(folder).rglob("*") if p.suffix in (".jpg", ".png")]

            def bare(paths: list[Path] = paths) -> None:
                for path in paths:
                    sha256(path.read_bytes()).hexdigest()
                    with Image.open(path) as image:
                        imagehash.phash(image)

            def ours(paths: list[Path] = paths) -> None:
                for path in paths:
                    hash_picture(path)

            ours()
            rounds = [(timed(ours), timed(bare)) for _ in range(ROUNDS)]
            mine, peer = (len(paths) / statistics.median(t) for t in zip(*rounds, strict=True))
            print(
                f"  {size_wh[0]} x {size_wh[1]} {paths[0].suffix}: {mine:.0f} pictures/s "
                f"(ratio {mine / peer:.2f}), a plain loop {peer:.0f}"
            )


PARTS = {"search": search, "hashing": hashing}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
