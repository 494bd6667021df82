"""Speed of primitive-shapes, each as a ratio against a peer of the same run.

Run: ``python benchmarks/shapes.py [build|tikz|memory]``; all three by default.

build   the whole default build, both configs, two workers: seconds, and pictures per second
tikz    Pillow against batched TikZ, and batched TikZ against one LaTeX run per picture; all with
        PNG, one process
memory  peak memory of the build's processes for 2,000 and 8,000 training pictures
"""

import io
import sys
import tempfile
import time
from collections.abc import Iterable

from peak_memory import peak_mib
from PIL import Image

from soubench.builders.shapes.build import PNG_LEVEL, ShapesOptions
from soubench.builders.shapes.draw import draw_picture
from soubench.builders.shapes.sampler import draw
from soubench.builders.shapes.tikz import render_tikz


def encode(images: Iterable[Image.Image]) -> int:
    n = 0
    for image in images:
        image.save(io.BytesIO(), "PNG", compress_level=PNG_LEVEL)
        n += 1
    return n


def build() -> None:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run(folder)
        seconds = time.perf_counter() - start
    n = sum(ShapesOptions().sizes().values())
    print(
        f"default build, two workers: {n} pictures in {seconds:.1f} s, {n / seconds:.0f} a second"
    )


def tikz() -> None:
    samples = [draw("1.0.0", 0, "train", i) for i in range(500)]
    start = time.perf_counter()
    encode(map(draw_picture, samples))
    pillow = (time.perf_counter() - start) / len(samples)
    start = time.perf_counter()
    encode(render_tikz(samples))
    batched = (time.perf_counter() - start) / len(samples)
    start = time.perf_counter()
    encode(image for c in samples[:10] for image in render_tikz([c]))
    single = (time.perf_counter() - start) / 10
    print(
        f"with PNG, per picture: Pillow {1e3 * pillow:.2f} ms, "
        f"batched TikZ {1e3 * batched:.2f} ms, one LaTeX run each {1e3 * single:.0f} ms"
    )
    print(f"  Pillow {batched / pillow:.1f} x as fast as batched TikZ")
    print(f"  batched TikZ {single / batched:.0f} x as fast as one run per picture")


def memory() -> None:
    peaks = {}
    for n in (2000, 8000):
        with tempfile.TemporaryDirectory() as folder:
            peaks[n] = run(folder, f"--pictures=train={n}")
        print(f"peak memory, {n} training pictures: {peaks[n]:.0f} MiB")
    print(f"  ratio {peaks[8000] / peaks[2000]:.2f}")


def run(folder: str, *args: str) -> float:
    """Build into a cache of its own; return the peak memory in MiB."""
    command = ["build", "primitive-shapes", "--workers=2", *args]
    return peak_mib(command, {"HF_DATASETS_CACHE": f"{folder}/cache"})


PARTS = {"build": build, "tikz": tikz, "memory": memory}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
