"""Speed and size of ``soubench report``, beside a plain HTML table of the same rows.

Run: ``python benchmarks/report.py [rows]``; 18,204 rows by default. Needs Chromium and its driver.

Two runs of a baseline over a made-up dataset of that many rows, six per picture of 1280 × 720 px,
are scored and reported. Printed: seconds to write the page without and with the pictures of all
rows beside it; its size; seconds until it is usable in Chromium, to filter, to search; and the
same loading time for a page that holds all rows as one table.
"""

import os
import shutil
import sys
import tempfile
import time
from html import escape
from pathlib import Path

ROWS = 18_204
PER_PICTURE = 6
TASKS = ("CE", "OC", "CR", "OL", "SCC", "POI")
REPEATS = 3


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        # The libraries read these when they are first imported.
        os.environ.update(HF_HOME=str(home / "hf"), HF_HUB_OFFLINE="1", HF_EVALUATE_OFFLINE="1")
        measure(home, rows)


def measure(home: Path, rows: int) -> None:
    from soubench.cli import main as soubench

    make_dataset(home / "rows", rows)
    runs = []
    for name in ("random", "constant"):
        out = str(home / name)
        command = ["predict", str(home / "rows"), "--model", f"baseline:{name}", "--out", out]
        assert soubench(command) == 0
        assert soubench(["score", out]) == 0
        runs.append(out)
    page = home / "report.html"
    seconds = timed(lambda: soubench(["report", *runs, "--out", str(page)]))
    size = page.stat().st_size / 1e6
    beside = home / "beside.html"
    command = ["report", *runs, "--out", str(beside), "--pictures", str(home / "pictures")]
    all_seconds = timed(lambda: soubench(command))
    plain = home / "plain.html"
    write_plain(plain, home / "rows")
    print(f"{rows} rows, two runs: page in {seconds:.1f} s, {size:.1f} MB")
    beside_size = beside.stat().st_size / 1e6
    print(f"  with all pictures beside it: {all_seconds:.1f} s, {beside_size:.1f} MB")
    browse(page, plain)


def make_dataset(folder: Path, rows: int) -> None:
    import datasets
    import numpy as np
    from PIL import Image

    folder.mkdir()
    (folder / "pictures").mkdir()
    table = []
    rng = np.random.default_rng(0)
    for i in range(rows):
        picture = folder / "pictures" / f"{i // PER_PICTURE:05d}.jpg"
        if i % PER_PICTURE == 0:
            # Blocks of noise: about as many bytes as a photo.
            small = rng.integers(0, 255, (90, 160, 3), np.uint8)
            Image.fromarray(small).resize((1280, 720), Image.Resampling.BICUBIC).save(picture)
        x, y = (int(v) for v in rng.integers(0, 700, 2))
        table.append(
            {
                "id": f"row/{i:05d}",
                "image": str(picture),
                "subset": f"subset {i % 5}",
                "task": TASKS[i % 6],
                "group_id": f"{i // PER_PICTURE}",
                "question": f"What is the category of the small object at [{x},{y}]?",
                "options": [f"category {(i + k) % 40}" for k in range(4)],
                "answer": "ABCD"[i % 4],
                "evidence": {"point_xy": [x, y]},
            }
        )
    made = datasets.Dataset.from_list(table).cast_column("image", datasets.Image())
    made.to_parquet(folder / "test.parquet")


def timed(function) -> float:  # noqa: ANN001  # any call without arguments
    start = time.perf_counter()
    assert function() == 0
    return time.perf_counter() - start


def write_plain(path: Path, folder: Path) -> None:
    import datasets

    rows = datasets.Dataset.from_parquet(str(folder / "test.parquet")).remove_columns("image")
    lines = (
        "<tr>"
        + "".join(f"<td>{escape(str(v))}</td>" for v in (*row.values(), "A", "wrong", "B", "right"))
        + "</tr>"
        for row in rows
    )
    path.write_text(f"<!doctype html><meta charset=utf-8><table>{''.join(lines)}</table>")


def browse(page: Path, plain: Path) -> None:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    with tempfile.TemporaryDirectory() as profile:
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"):
            options.add_argument(argument)
        options.add_argument(f"--user-data-dir={profile}")
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        driver = webdriver.Chrome(options=options, service=service)
        try:
            loaded = min(loading(driver, page) for _ in range(REPEATS))
            filtered = min(interaction(driver, FILTER) for _ in range(REPEATS))
            searched = min(interaction(driver, SEARCH) for _ in range(REPEATS))
            table = min(loading(driver, plain) for _ in range(REPEATS))
        finally:
            driver.quit()
    print(
        f"  in Chromium: usable in {loaded:.2f} s, filter {filtered:.3f} s, search {searched:.3f} s"
    )
    print(f"  one plain table of the same rows: {table:.2f} s, {table / loaded:.1f} x as long")


PAINTED = (
    "requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)))"
)
FILTER = (
    "const s = document.getElementById('verdict'); s.value = s.value === 'wrong' ? '' : 'wrong';"
    "s.dispatchEvent(new Event('change'));"
)
# The page waits 80 ms for the next key; Enter does not.
SEARCH = (
    "const s = document.getElementById('search'); s.value = '[5' + (s.value ? '' : '0');"
    "s.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));"
)


def loading(driver, page: Path) -> float:  # noqa: ANN001  # a browser
    """Return seconds from opening a page until it is drawn."""
    driver.get("about:blank")
    driver.get(page.as_uri())
    return driver.execute_async_script("const done = arguments[0], start = 0;" + PAINTED) / 1e3


def interaction(driver, action: str) -> float:  # noqa: ANN001  # a browser
    """Return seconds from an action until what it changed is drawn."""
    script = f"const done = arguments[0], start = performance.now(); {action} {PAINTED}"
    return driver.execute_async_script(script) / 1e3


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROWS)
