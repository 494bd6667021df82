"""primitive-shapes as its user meets it."""

import json
from dataclasses import replace
from pathlib import Path

import datasets
import evaluate
import pytest
from datasets import load_dataset
from PIL import Image

from soubench.builders.shapes.charts import configuration_of
from soubench.builders.shapes.draw import draw_picture
from soubench.builders.shapes.sampler import SPLITS, draw
from soubench.builders.shapes.targets import FORMATS, Attributes, attributes, parse
from soubench.cli import main
from soubench.dataset_scripts.primitive_shapes.primitive_shapes import FEATURES

SIZES = {split: 5 for split in SPLITS} | {"train": 30, "test": 10}
BUILD = ["build", "primitive-shapes", *(f"--pictures={s}={n}" for s, n in SIZES.items())]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    path = tmp_path_factory.mktemp("cache")
    datasets.config.HF_DATASETS_CACHE = path
    assert main([*BUILD, "--workers=1"]) == 0
    return path


@pytest.fixture(params=FORMATS)
def built(request, cache):
    datasets.config.HF_DATASETS_CACHE = cache
    return request.param, load_dataset("primitive-shapes", request.param)


def test_loads_by_name_with_the_papers_splits(built):
    _, splits = built
    assert {name: rows.num_rows for name, rows in splits.items()} == SIZES
    assert splits["train"].features == FEATURES


def test_targets_and_pictures_follow_from_the_shapes(built):
    output_format, splits = built
    for rows in splits.values():
        for row in rows:
            configuration = configuration_of(row["shapes"], row["image"].width)
            assert configuration.md5() == row["config_md5"]
            said = attributes(configuration)
            assert parse(row["target"], output_format) == said
            assert row["shapes"]["color"] == [a.color for a in said]
            assert row["image"].tobytes() == draw_picture(configuration).tobytes()


def test_golden_rows(built):
    """Rows may change only with the version: RELEASE_NOTES.md says what changed."""
    output_format, splits = built
    golden = json.loads(Path(__file__).with_name("golden_primitive_shapes.json").read_text())
    assert {
        split: [rows[0]["config_md5"], rows[0]["question"], rows[0]["target"]]
        for split, rows in splits.items()
    } == golden[output_format]


def test_pictures_of_equal_bytes_end_a_build(tmp_path, monkeypatch, capsys):
    datasets.config.HF_DATASETS_CACHE = tmp_path
    monkeypatch.setattr(
        "soubench.builders.shapes.build.draw_picture", lambda c: Image.new("RGB", (8, 8))
    )
    assert main([*BUILD, "--workers=1"]) == 2
    assert "are the same picture" in capsys.readouterr().err
    assert not (tmp_path / "primitive-shapes").exists()


def test_own_prompts_replace_the_questions(tmp_path, capsys):
    datasets.config.HF_DATASETS_CACHE = tmp_path
    own = tmp_path / "own.toml"
    own.write_text('[questions]\nsentence = "Say it."\n')
    assert main([*BUILD, "--workers=1", f"--prompt={own}"]) == 2
    assert "[questions] tuple" in capsys.readouterr().err
    own.write_text('[questions]\nsentence = "Say it."\ntuple = "List it."\n')
    assert main([*BUILD, "--workers=1", f"--prompt={own}"]) == 0
    rows = load_dataset("primitive-shapes", "tuple", split="test")
    assert set(rows["question"]) == {"List it."}


def test_stats_says_what_to_do_before_a_build(tmp_path, capsys):
    datasets.config.HF_DATASETS_CACHE = tmp_path
    assert main(["stats", "primitive-shapes"]) == 2
    assert "soubench build primitive-shapes first" in capsys.readouterr().err


def test_no_two_configurations_or_pictures_are_alike(built):
    _, splits = built
    rows = [row for part in splits.values() for row in part]
    assert len({row["config_md5"] for row in rows}) == sum(SIZES.values())
    assert len({row["image"].tobytes() for row in rows}) == sum(SIZES.values())


def test_both_configs_share_one_rendering(cache):
    datasets.config.HF_DATASETS_CACHE = cache
    paths = []
    for name in FORMATS:
        rows = load_dataset("primitive-shapes", name, split="test")
        rows = rows.cast_column("image", datasets.Image(decode=False))
        paths.append([row["path"] for row in rows["image"]])
    assert paths[0] == paths[1]


def test_workers_change_nothing_and_seed_and_size_do_what_they_say(cache, tmp_path):
    datasets.config.HF_DATASETS_CACHE = cache
    before = load_dataset("primitive-shapes", "tuple", split="train")["target"][:]
    datasets.config.HF_DATASETS_CACHE = tmp_path
    assert main([*BUILD, "--workers=2"]) == 0
    names = [
        {f.name for f in (root / "primitive-shapes/tuple/1.0.0").iterdir()}
        for root in (cache, tmp_path)
    ]
    assert names[0] == names[1]
    larger = [arg.replace("train=30", "train=31") for arg in BUILD]
    assert main([*larger, "--workers=1"]) == 0
    longer = load_dataset("primitive-shapes", "tuple", split="train")["target"][:]
    assert longer[:-1] == before
    assert main([*BUILD, "--seed=1", "--workers=1"]) == 0
    assert load_dataset("primitive-shapes", "tuple", split="train")["target"][:] != before


def test_card_has_a_contact_sheet_per_split(cache):
    (card,) = (cache / "soubench" / "primitive-shapes").glob("*/README.md")
    text = card.read_text()
    assert "<!--" not in text
    for split, n in SIZES.items():
        assert f"| `{split}` | {n} | ![{split}](sheets/{split}.png) |" in text
        with Image.open(card.parent / "sheets" / f"{split}.png") as sheet:
            assert sheet.width > 1000


def _wrong_quadrant(said):
    quadrant = "bottom left" if said[0].quadrant != "bottom left" else "top right"
    return [replace(said[0], quadrant=quadrant), *said[1:]]


def _missing(said):
    return said[:-1]


def _surplus(said):
    # Far from every other text, so that the pairing of the others stays as it is.
    extra = Attributes("Hexagon", "Turquoise", "nowhere near", (0, 0), "beyond Hexagon", 7, True)
    return [*said, extra]


def _swapped(said):
    first, second, *others = said
    return [replace(first, color=second.color), replace(second, color=first.color), *others]


@pytest.mark.parametrize(
    ("corrupt", "sama", "exact"),
    [
        pytest.param(list, lambda n: 1, lambda n: 1, id="nothing"),
        pytest.param(
            _wrong_quadrant, lambda n: 1 - 1 / (5 * n), lambda n: (n - 1) / n, id="one wrong"
        ),
        pytest.param(_missing, lambda n: (n - 1) / n, lambda n: (n - 1) / n, id="missing"),
        pytest.param(_surplus, lambda n: n / (n + 1), lambda n: n / (n + 1), id="surplus"),
        pytest.param(_swapped, lambda n: 1 - 2 / (5 * n), lambda n: (n - 2) / n, id="swapped"),
    ],
)
@pytest.mark.parametrize("output_format", FORMATS)
def test_sama_gives_what_the_card_says(output_format, corrupt, sama, exact, installed_metrics):
    pictures = []
    for i in range(200):
        said = attributes(draw("1.0.0", 0, "test", i))
        # Swapping equal colors is no corruption, and near shapes may pair the other way round.
        apart = abs(said[0].center_xy[0] - said[1].center_xy[0]) > 60
        if said[0].shape != said[1].shape and said[0].color != said[1].color and apart:
            pictures.append(said)
    write = FORMATS[output_format]
    result = evaluate.load("sama").compute(
        predictions=[write(corrupt(said)) for said in pictures],
        references=[write(said) for said in pictures],
    )
    assert len(pictures) > 50
    sizes = [len(said) for said in pictures]
    assert result["sama"] == pytest.approx(sum(map(sama, sizes)) / len(sizes))
    assert result["sama_exact"] == pytest.approx(sum(map(exact, sizes)) / len(sizes))


def test_stats_writes_a_histogram_per_split(cache, tmp_path, capsys):
    datasets.config.HF_DATASETS_CACHE = cache
    assert main(["stats", "primitive-shapes", "--out", str(tmp_path / "s")]) == 0
    written = sorted((tmp_path / "s").iterdir())
    assert len(written) == len(SPLITS)
    assert [str(p) in capsys.readouterr().out for p in written[:1]] == [True]
    with Image.open(written[0]) as image:
        assert image.width > 1000


def test_render_draws_one_configuration(tmp_path, capsys):
    data = {
        "canvas_px": 64,
        "shapes": [
            {"kind": "Circle", "color": "Red", "center_xy": [32, 32], "rotation": 0, "half_long": 9}
        ],
    }
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    assert main(["render", str(path)]) == 0
    with Image.open(tmp_path / "c.png") as image:
        assert image.getpixel((32, 32)) == (255, 0, 0)
    assert main(["render", str(path), "--out", str(tmp_path / "c.xyz")]) == 2
    assert "PNG" in capsys.readouterr().err
    path.write_text("[" * 100_000)
    assert main(["render", str(path)]) == 2
    path.write_text("{")
    assert main(["render", str(path)]) == 2
    assert "expected JSON" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["train", "train=x", "train=0", "dev=3"])
def test_wrong_sizes_get_one_clear_message(wrong, capsys, tmp_path):
    datasets.config.HF_DATASETS_CACHE = tmp_path
    assert main(["build", "primitive-shapes", f"--pictures={wrong}"]) == 2
    assert "train" in capsys.readouterr().err
