"""``soubench report``: what the page holds, without a browser."""

import base64
import doctest
import io
import json
import sys

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as rle_tools
from shapely import Polygon

from soubench.builders.errors import PictureError
from soubench.cli import main
from soubench.inference.chat import Picture
from soubench.inference.dataset_rows import open_rows
from soubench.inference.report import charts, pictures, svg
from soubench.inference.report import page as page_module
from soubench.inference.report.crops import LONGEST_SIDE_PX, window_of
from soubench.inference.report.figures import figures_of
from soubench.inference.report.marks import marks_of, mask_outlines
from soubench.inference.report.page import PageOptions, write_page
from soubench.inference.report.runs import read_runs, sections_of
from tests.inference.report_runs import HOSTILE, Page, change, make_run, synthetic_section


@pytest.fixture(scope="session")
def runs(small_cache, tmp_path_factory, installed_metrics):
    """A run with replies of every kind, and one that is right throughout."""
    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = small_cache
    folder = tmp_path_factory.mktemp("runs")
    strange = dict(enumerate(HOSTILE)) | {10: "", 11: ("timeout",), 12: ("http 500",)}
    made = {
        "mixed": change(make_run(folder / "mixed"), strange),
        "oracle": make_run(folder / "oracle", model="baseline:oracle"),
    }
    datasets.config.HF_DATASETS_CACHE = before
    return made


def report(out, *arguments, embed=0):
    command = ["report", *map(str, arguments), "--out", str(out), "--workers=1"]
    assert main([*command, f"--embed={embed}"]) == 0
    return Page(out)


def decoded(url):
    head, _, data = url.partition(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("module", [charts, svg, page_module], ids=lambda module: module.__name__)
def test_examples_in_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0


def test_the_page_is_one_file_that_refers_to_nothing_else(built, runs, tmp_path):
    page = report(tmp_path / "report.html", runs["mixed"], runs["oracle"], embed=300)
    assert all(link.startswith(("#", "data:")) for link in page.links), page.links
    assert "default-src 'none'" in page.text
    assert "@import" not in page.text
    assert "url(" not in page.text
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_every_row_and_reply_is_there_and_hostile_ones_stay_texts(built, runs, tmp_path):
    page = report(tmp_path / "report.html", runs["mixed"])
    lines = [json.loads(x) for x in (runs["mixed"] / "replies.jsonl").read_text().splitlines()]
    found = page.verdicts()
    assert {key: said[0] for key, said in found.items()} == {
        (line["id"], line["rotation"]): line["reply"] for line in lines
    }
    assert len(page.scripts) == 2
    assert [found[lines[i]["id"], 0][1:] for i in (0, 10, 11, 12)] == [
        ("unparsed", None),
        ("unparsed", None),
        ("error", "timeout"),
        ("error", "http 500"),
    ]


def test_a_hostile_name_and_title_stay_texts(built, runs, tmp_path):
    run = change(make_run(tmp_path / "run"), model={"name": "<script>alert(1)</script>"})
    page = report(tmp_path / "report.html", run, "--title=<script>{{data}}")
    assert len(page.scripts) == 2
    assert page.data["sections"][0]["runs"] == [{"name": "<script>alert(1)</script>"}]
    assert "&lt;script&gt;{{data}}" in page.text


def test_verdicts_are_those_of_the_scores(built, runs, tmp_path):
    page = report(tmp_path / "report.html", runs["mixed"])
    lines = (runs["mixed"] / "verdicts.jsonl").read_text().splitlines()
    right = {v["id"]: v["right"] for v in map(json.loads, lines)}
    told = {key[0]: said[1] == "right" for key, said in page.verdicts().items()}
    assert told == {row: value == 1 for row, value in right.items()}


def test_the_table_shows_what_scores_json_says(built, runs, tmp_path):
    page = report(tmp_path / "report.html", runs["mixed"])
    scores = json.loads((runs["mixed"] / "scores.json").read_text())
    groups = [g for g in scores["groups"] if g["table"] == "sou_tables_3_and_6"]
    expected = [f"{100 * g['value']:.2f}{100 * g['low']:.1f}–{100 * g['high']:.1f}" for g in groups]
    # The table of runs comes first, then the scores line by line: 7 of them and 3 rates each.
    cells = page.cells[7 : 7 + 10 * len(groups) // 7]
    assert [cell for i, cell in enumerate(cells) if i % 10 < 7] == expected


def test_the_same_runs_give_the_same_bytes_on_any_number_of_workers(
    built, runs, tmp_path, monkeypatch
):
    first = report(tmp_path / "a.html", runs["mixed"], embed=300).text
    assert report(tmp_path / "b.html", runs["mixed"], embed=300).text == first
    monkeypatch.setattr(pictures, "ROWS_PER_WORKER", 1)
    command = ["report", str(runs["mixed"]), "--out", str(tmp_path / "c.html"), "--workers=2"]
    assert main(command) == 0
    assert (tmp_path / "c.html").read_text() == first


def test_the_seed_draws_other_pictures(built, runs, tmp_path):
    pages = [
        report(tmp_path / "a.html", runs["mixed"], f"--seed={seed}", embed=6) for seed in (0, 1)
    ]
    first, second = (set(page.data["sections"][0]["views"]) for page in pages)
    assert len(first) == len(second) == 6
    assert first != second


def test_rows_that_were_missed_get_pictures_first(built, runs, tmp_path):
    page = report(tmp_path / "a.html", runs["mixed"], runs["oracle"], embed=10)
    of = page.data["sections"][0]
    missed = {row for row, _, _, _, _, state, *_ in of["verdicts"][0] if state != 1}
    assert len(missed) > 10
    assert set(map(int, of["views"])) <= missed
    everything = report(tmp_path / "b.html", runs["mixed"], embed=len(missed) + 2)
    shown = set(map(int, everything.data["sections"][0]["views"]))
    assert missed < shown
    assert len(shown) == len(missed) + 2


def test_crops_are_small_and_show_the_part_of_the_picture_that_they_say(built, runs, tmp_path):
    page = report(tmp_path / "a.html", runs["mixed"], embed=300)
    of = page.data["sections"][0]
    images = {row["id"]: row["image"] for row in open_rows("sou-vqa", "aerial", None).rows}
    assert len(of["views"]) == len(of["rows"]) == len(images)
    for place, (view,) in of["views"].items():
        crop = decoded(page.data["pictures"][view["picture"]]).convert("RGB")
        x, y, w, h = view["frame"]
        assert max(crop.size) <= LONGEST_SIDE_PX
        assert crop.width / crop.height == pytest.approx(w / h, rel=0.02)
        part = images[of["rows"][int(place)][0]].convert("RGB").crop((x, y, x + w, y + h))
        size = (32, 32)
        near = np.abs(
            np.asarray(part.resize(size, Image.Resampling.BOX), float)
            - np.asarray(crop.resize(size, Image.Resampling.BOX), float)
        )
        assert near.mean() < 6
        for mark in view["marks"]:
            for shape in mark["shapes"]:
                assert all(x - 1 <= value <= x + w + 1 for value in shape[::2])
                assert all(y - 1 <= value <= y + h + 1 for value in shape[1::2])


def test_what_a_question_is_about_is_marked(built, runs, tmp_path):
    page = report(tmp_path / "a.html", runs["mixed"], embed=300)
    of = page.data["sections"][0]
    rows = {row["id"]: row for row in open_rows("sou-vqa", "aerial", None).columns()}
    seen = set()
    for place, (view,) in of["views"].items():
        row = rows[of["rows"][int(place)][0]]
        marks = {mark["role"]: mark["shapes"] for mark in view["marks"]}
        count = sum(len(m["shapes"]) for m in view["marks"] if m["role"] == "evidence")
        seen.add(row["task"])
        if row["task"] == "CR":
            assert marks["asked"] == [row["evidence"]["point_xy"]]
        if row["task"] == "OL":
            assert marks["asked"] == [row["evidence"]["mark"]]
        if row["task"] in ("OC", "SCC", "CE"):
            assert count == int(row["answer_text"])
    assert seen == {"CE", "OC", "CR", "OL", "SCC", "POI"}


def test_all_other_pictures_lie_beside_the_page_once_each(built, runs, tmp_path):
    page = report(
        tmp_path / "a b" / "r.html",
        runs["mixed"],
        f"--pictures={tmp_path / 'a b' / 'pictures 1'}",
        embed=5,
    )
    of = page.data["sections"][0]
    assert len(of["views"]) == len(of["rows"])
    names = [view["picture"] for views in of["views"].values() for view in views]
    files = {name for name in names if name not in page.data["pictures"]}
    assert {name.partition("/")[0] for name in files} == {"pictures%201"}
    there = {f"pictures%201/{p.name}" for p in (tmp_path / "a b" / "pictures 1").iterdir()}
    assert files == there


@pytest.mark.parametrize("limit", [400_000, 120_000])
def test_the_page_keeps_to_its_size(built, runs, tmp_path, monkeypatch, limit, capsys):
    long = change(make_run(tmp_path / "long"), {i: "A" + "x" * 3000 for i in range(40)})
    monkeypatch.setattr(page_module, "MOST_PAGE_BYTES", limit)
    found = report(tmp_path / "a.html", long, embed=300)
    assert (tmp_path / "a.html").stat().st_size <= limit
    replies = [said[0] for said in found.verdicts().values()]
    if limit == 120_000:
        assert "replies are cut after" in capsys.readouterr().out
        assert any("more characters]" in reply for reply in replies)
    else:
        assert max(map(len, replies)) == 3001
    assert 0 < len(found.data["sections"][0]["views"]) < len(replies)


def test_a_page_that_cannot_be_small_enough_is_refused(built, runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(page_module, "MOST_PAGE_BYTES", 30_000)
    assert main(["report", str(runs["mixed"]), "--out", str(tmp_path / "a.html")]) == 2
    assert "Report fewer runs at a time." in capsys.readouterr().err
    assert not (tmp_path / "a.html").exists()


def test_runs_over_different_data_get_sections_of_their_own(built, runs, tmp_path):
    shapes = make_run(tmp_path / "shapes", dataset="primitive-shapes", config="tuple")
    page = report(tmp_path / "a.html", runs["mixed"], shapes, runs["oracle"], embed=300)
    names = [section["name"] for section in page.data["sections"]]
    assert names == ["sou-vqa aerial test", "primitive-shapes tuple test"]
    assert page.heads[:2] == names
    assert [len(s["runs"]) for s in page.data["sections"]] == [2, 1]
    states = {said[1] for said in page.verdicts(section=1).values()}
    assert states <= {"right", "partly", "wrong"}
    view = page.data["sections"][1]["views"]["0"][0]
    assert view["frame"] == [0, 0, 224, 224]
    assert {mark["role"] for mark in view["marks"]} == {"evidence"}


def test_configs_that_ask_differently_are_different_rows(built, tmp_path):
    made = [
        make_run(tmp_path / config, dataset="primitive-shapes", config=config)
        for config in ("sentence", "tuple")
    ]
    page = report(tmp_path / "a.html", *made)
    (section,) = page.data["sections"]
    ids = [row[0] for row in section["rows"]]
    assert len(ids) == 2 * len(set(ids))
    assert "were asked different rows" in page.text


def test_circular_runs_show_every_rotation(built, tmp_path):
    run = make_run(tmp_path / "run", "--circular", "--limit=6")
    page = report(tmp_path / "a.html", run)
    rotations = [rotation for _, rotation in page.verdicts()]
    assert sorted(rotations) == sorted([0, 1, 2, 3] * 6)
    assert "baseline:random (circular, limit 6)" in page.text


def test_boxes_masks_and_several_pictures(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    grid = np.zeros((60, 80), np.uint8, order="F")
    grid[10:30, 20:50] = 1
    rle = rle_tools.encode(grid)
    mask = json.dumps({"size": rle["size"], "counts": rle["counts"].decode("ascii")})
    images = [Image.fromarray(rng.integers(0, 255, (60, 80, 3), np.uint8)) for _ in range(2)]
    common = {"question": "Where is it?", "options": [], "sub_dimension": "perception-object"}
    rows = [
        {"id": "box", "answer_type": "box", "answer": "[5,6,40,30]", "images": images,
         "box_xyxy": [5.0, 6.0, 40.0, 30.0], "mask_rle": None, "task": "VG"},
        {"id": "mask", "answer_type": "mask", "answer": mask, "images": images[:1],
         "box_xyxy": None, "mask_rle": mask, "task": "RS"},
        {"id": "yes", "answer_type": "yes_no", "answer": "yes", "images": images[:1],
         "box_xyxy": None, "mask_rle": None, "task": "HD"},
    ]  # fmt: skip
    features = datasets.Features(
        {name: datasets.Value("string") for name in ("id", "answer_type", "answer", "mask_rle")}
        | {name: datasets.Value("string") for name in ("question", "sub_dimension", "task")}
        | {
            "options": datasets.List(datasets.Value("string")),
            "images": datasets.List(datasets.Image()),
            "box_xyxy": datasets.List(datasets.Value("float64")),
        }
    )
    folder = tmp_path / "own"
    folder.mkdir()
    made = datasets.Dataset.from_list([common | row for row in rows], features=features)
    made.to_parquet(folder / "test.parquet")
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "run", dataset="./own", config="default", model="baseline:oracle")
    page = report(tmp_path / "a.html", run, embed=300)
    (section,) = page.data["sections"]
    views = {section["rows"][int(place)][0]: found for place, found in section["views"].items()}
    assert {row: len(found) for row, found in views.items()} == {"box": 2, "mask": 1, "yes": 1}
    assert views["box"][0]["marks"] == [
        {"role": "right", "label": "right box", "shapes": [[5, 6, 40, 30]]}
    ]
    assert views["box"][1]["marks"] == []
    (outline,) = views["mask"][0]["marks"][0]["shapes"]
    assert sorted(zip(outline[::2], outline[1::2], strict=True)) == [
        (20, 10), (20, 30), (50, 10), (50, 30),
    ]  # fmt: skip
    assert {said[1] for said in page.verdicts().values()} == {"right"}


def test_pictures_that_are_gone_leave_the_rest_of_the_page(built, runs, tmp_path, monkeypatch):
    def missing(self):
        raise PictureError("picture_missing", "gone")

    monkeypatch.setattr(Picture, "open", missing)
    found = report(tmp_path / "a.html", runs["mixed"], embed=300)
    assert found.data["sections"][0]["views"] == {}
    assert "The pictures of 72 rows could not be read." in found.text


def test_scores_over_parameters_where_they_are_known(built, tmp_path):
    made = [
        change(make_run(tmp_path / name, f"--seed={i}"), model={"name": name, "parameters": p})
        for i, (name, p) in enumerate({"small": 3_000_000, "large": 7_000_000_000}.items())
    ]
    page = report(tmp_path / "a.html", *made)
    assert "accuracy by size of the model" in page.text
    assert "small, 3M:" in page.text
    assert "large, 7B:" in page.text
    one = report(tmp_path / "b.html", made[0])
    assert "by size of the model" not in one.text


def test_plots_are_png_and_the_same_each_time(built, runs, tmp_path):
    for name in ("a", "b"):
        report(tmp_path / "r.html", runs["mixed"], f"--plots={tmp_path / name}")
    first, second = (sorted((tmp_path / name).iterdir()) for name in ("a", "b"))
    assert {p.name for p in first} >= {
        "sou_tables_3_and_6-aerial.png",
        "letters-4.png",
        "object_area-cr.png",
    }
    for one, other in zip(first, second, strict=True):
        with Image.open(one) as image:
            assert image.format == "PNG"
        assert one.read_bytes() == other.read_bytes()


def test_plots_without_matplotlib_say_what_to_install(built, runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    command = ["report", str(runs["mixed"]), "--out", str(tmp_path / "r.html"), "--embed=0"]
    assert main([*command, f"--plots={tmp_path / 'plots'}"]) == 2
    assert 'pip install "soubench[plots]"' in capsys.readouterr().err


def test_what_is_no_run_or_not_the_same_data_is_refused(built, runs, tmp_path, capsys):
    out = f"--out={tmp_path / 'r.html'}"
    assert main(["report", str(tmp_path), out]) == 2
    assert "expected a RUN folder" in capsys.readouterr().err
    assert main(["report", str(runs["mixed"]), str(runs["mixed"]), out]) == 2
    assert "is given twice" in capsys.readouterr().err
    shapes = make_run(tmp_path / "shapes", dataset="primitive-shapes", config="tuple")
    assert main(["report", str(runs["mixed"]), str(shapes), "--dataset=sou-vqa", out]) == 2
    assert "this is one" in capsys.readouterr().err
    scores = json.loads((runs["mixed"] / "scores.json").read_text())
    scores["runs"][0]["dataset"]["fingerprint"] = "0" * 64
    other = tmp_path / "other"
    other.mkdir()
    (other / "scores.json").write_text(json.dumps(scores))
    (other / "verdicts.jsonl").write_text((runs["mixed"] / "verdicts.jsonl").read_text())
    assert main(["report", str(other), out]) == 2
    assert "expected the rows that were asked" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_models_of_the_same_name_are_told_apart(built, runs, tmp_path):
    again = make_run(tmp_path / "again", "--seed=1")
    (section,) = sections_of(read_runs([runs["mixed"], again]))
    assert [run.name for run in section.runs] == [
        "baseline:random [mixed]",
        "baseline:random [again]",
    ]


def test_published_figures_stand_beside_once(built, runs, tmp_path):
    page = report(tmp_path / "a.html", runs["mixed"], runs["oracle"], "--published")
    plain = report(tmp_path / "b.html", runs["mixed"], runs["oracle"])
    # One line per group: aerial and its three subsets.
    assert page.text.count("Human Performance *") == 4
    assert "Human Performance" not in plain.text


def test_a_page_of_all_rows_is_small(tmp_path):
    section = synthetic_section()
    options = PageOptions(out=tmp_path / "a.html")
    written = write_page([section], [figures_of(section)], options)
    assert written.rows == 18_204
    assert written.bytes == (tmp_path / "a.html").stat().st_size < 25_000_000
    assert written.cut_at == 0


@given(
    st.tuples(st.integers(1, 3000), st.integers(1, 3000)),
    st.lists(st.tuples(*[st.floats(-50, 3050)] * 4), max_size=4),
)
def test_a_window_lies_in_the_picture_and_holds_what_does(size, boxes):
    shapes = [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in boxes]
    x, y, width, height = window_of(shapes, size)
    assert 0 <= x <= x + width <= size[0]
    assert 0 <= y <= y + height <= size[1]
    assert width > 0
    assert height > 0
    for x1, y1, x2, y2 in shapes:
        if 0 <= x1 <= x2 <= size[0] and 0 <= y1 <= y2 <= size[1]:
            assert x <= x1
            assert y <= y1
            assert x2 <= x + width
            assert y2 <= y + height


def test_outlines_of_a_mask_enclose_its_pixels():
    grid = np.zeros((40, 50), np.uint8, order="F")
    grid[5:25, 10:40] = 1
    grid[10:20, 15:30] = 0
    grid[30:35, 0:50] = 1
    rle = rle_tools.encode(grid)
    rle["counts"] = rle["counts"].decode("ascii")
    rings = [Polygon(list(zip(r[::2], r[1::2], strict=True))) for r in mask_outlines(rle)]
    # Two parts and a hole: 20 x 30, 5 x 50, and 10 x 15.
    assert sorted(ring.area for ring in rings) == [150, 250, 600]
    assert mask_outlines(json.dumps(rle)) == mask_outlines(rle)
    assert mask_outlines(rle["counts"], [40, 50]) == mask_outlines(rle)
    empty = rle_tools.encode(np.zeros((4, 4), np.uint8, order="F"))
    assert mask_outlines({"size": [4, 4], "counts": empty["counts"].decode("ascii")}) == ()


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"evidence": "see the manual", "objects": 3}, id="words"),
        pytest.param({"evidence": {"objects": [0, 7]}, "objects": {"name": ["a"]}}, id="names"),
        pytest.param({"shapes": {"sides": [3]}}, id="shapes"),
        pytest.param({"evidence": None, "box_xyxy": None, "mask_rle": None}, id="empty"),
    ],
)
def test_rows_of_other_datasets_have_no_marks(columns):
    assert marks_of({"id": "1", "question": "?", **columns}) == ()
