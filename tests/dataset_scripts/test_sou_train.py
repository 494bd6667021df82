"""sou-train as its user meets it: conversations to train on, and nothing of the evaluation sets."""

import json
import shutil

import pytest
from datasets import load_dataset
from PIL import Image

from soubench.builders.demo_scenes import write_demo_source
from soubench.builders.sou.prompts import load_prompts
from soubench.cli import main

pytest.importorskip("imagehash", reason="near-duplicates need soubench[overlap]")
pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture
def root(tmp_path):
    return write_demo_source("visdrone", tmp_path, pictures=5, train_pictures=5)


def build(root, *flags):
    return main(
        ["build", "sou-train", "a-visdrone", f"--source=visdrone={root}", "--workers=1", *flags]
    )


def parts(root, split):
    folder = root / f"VisDrone2019-DET-{split}"
    return sorted((folder / "images").iterdir()), folder / "annotations"


def add_to_training(root, picture, stem, *, quality=None, size_wh=None):
    """Put a copy of an evaluation picture into the training split under another name."""
    folder = root / "VisDrone2019-DET-train"
    target = folder / "images" / f"{stem}.jpg"
    if quality is None:
        shutil.copyfile(picture, target)
    else:
        Image.open(picture).save(target, quality=quality)
    labels = picture.parent.parent / "annotations" / f"{picture.stem}.txt"
    shutil.copyfile(labels, folder / "annotations" / f"{stem}.txt")


def report_of(cache):
    (folder,) = (cache / "soubench" / "sou-train").iterdir()
    return json.loads((folder / "report.json").read_text())


def test_rows_are_conversations_in_the_words_of_the_test(root, capsys):
    assert build(root) == 0, capsys.readouterr().err
    rows = load_dataset("sou-train", "a-visdrone")
    assert list(rows) == ["train"]
    prompts = load_prompts()
    for row in rows["train"]:
        letter = "ABCD"[row["answer"]]
        assert row["completion"] == [{"role": "assistant", "content": letter}]
        system, user = row["prompt"]
        assert system == {"role": "system", "content": row["system_prompt"]}
        assert user["role"] == "user"
        assert user["content"] == prompts.multiple_choice(row["question"], row["options"])
        listed = "\n".join(f"{a}: {b}" for a, b in zip("ABCD", row["options"], strict=True))
        assert f"{row['question']}\n{listed}\n" in user["content"]
    assert len(rows["train"]) == 30
    pictures = {path.stem for path in parts(root, "train")[0]}
    assert set(rows["train"]["image_id"]) == pictures
    assert main(["verify", "sou-train"]) == 0


def test_evaluation_pictures_are_left_out_by_file_likeness_and_group(root, empty_cache):
    evaluation, _ = parts(root, "val")
    add_to_training(root, evaluation[0], "9000001_00001_d_0000001")
    add_to_training(root, evaluation[1], "9000002_00001_d_0000001", quality=70)
    sequence = evaluation[2].stem.split("_")[0]
    train, labels = parts(root, "train")
    train[0].rename(train[0].with_stem(f"{sequence}_99999_d_0000001"))
    (labels / f"{train[0].stem}.txt").rename(labels / f"{sequence}_99999_d_0000001.txt")
    assert build(root, "--all") == 0
    subset = report_of(empty_cache)["subsets"]["a-visdrone"]
    assert subset["left_out"] == {
        "file_in_evaluation": 1,
        "group_in_evaluation": 1,
        "near_duplicate_in_evaluation": 1,
    }
    rows = load_dataset("sou-train", "a-visdrone", split="train")
    left = {"9000001_00001_d_0000001", "9000002_00001_d_0000001", f"{sequence}_99999_d_0000001"}
    assert not left & set(rows["image_id"])
    assert len(set(rows["image_id"])) == 4


def test_a_sample_is_filled_up_after_pictures_are_left_out(root, empty_cache):
    for i, picture in enumerate(parts(root, "val")[0]):
        add_to_training(root, picture, f"900000{i}_00001_d_0000001")
    assert build(root, "--limit=5") == 0
    rows = load_dataset("sou-train", "a-visdrone", split="train")
    assert len(set(rows["image_id"])) == 5
    assert not [name for name in rows["image_id"] if name.startswith("9000")]


def test_workers_change_nothing(root, empty_cache):
    assert build(root) == 0
    (first,) = (empty_cache / "soubench" / "sou-train").iterdir()
    arguments = ["build", "sou-train", "a-visdrone", f"--source=visdrone={root}", "--workers=2"]
    assert main(arguments) == 0
    assert [f.name for f in (empty_cache / "soubench" / "sou-train").iterdir()] == [first.name]


def test_the_evaluation_split_is_needed_and_never_trained_on(root, capsys):
    assert build(root, "--split=visdrone=val") == 2
    assert "sou-vqa is made of that split" in capsys.readouterr().err
    shutil.rmtree(root / "VisDrone2019-DET-val")
    assert build(root) == 2
    error = capsys.readouterr().err
    assert "evaluation split" in error
    assert "'val'" in error


def test_pictures_in_the_evaluation_split_of_another_source_are_left_out(tmp_path, empty_cache):
    names = ("visdrone", "ai-tod", "soda-a")
    roots = {
        name: write_demo_source(name, tmp_path / name, pictures=3, train_pictures=3)
        for name in names
    }
    train, _ = parts(roots["visdrone"], "train")
    (val,) = {p.parent for p in roots["ai-tod"].rglob("*.png") if "val" in p.parts}
    shutil.copyfile(train[0], min(val.iterdir()))
    sources = [f"--source={name}={folder}" for name, folder in roots.items()]
    assert main(["build", "sou-train", "aerial", *sources, "--workers=1", "--all"]) == 0
    subset = report_of(empty_cache)["subsets"]["a-visdrone"]
    assert subset["left_out"] == {"file_in_evaluation": 1}
    rows = load_dataset("sou-train", "a-visdrone", split="train")
    assert train[0].stem not in rows["image_id"]
