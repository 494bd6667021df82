"""Any detection set under a name of the user's: the command, then ``load_dataset`` by name."""

import json
from collections import Counter

import pytest
from datasets import get_dataset_config_names, load_dataset
from detection_sets import WRITERS, drawn_scenes, write_coco
from filelock import FileLock

from soubench.builders.sou.subsets import Task
from soubench.cli import main

CATEGORIES = ("ship", "plane", "car", "bridge")
pytestmark = pytest.mark.usefixtures("empty_cache")


def build(*arguments):
    return main(["build", "my-set", "--workers=1", *map(str, arguments)])


def without_pictures(split):
    return split.remove_columns("image").to_list()


@pytest.mark.parametrize("source", WRITERS)
def test_every_format_gives_the_answers_of_its_labels(source, tmp_path, capsys):
    scenes = {
        "train": list(drawn_scenes(5, CATEGORIES)),
        "val": list(drawn_scenes(3, CATEGORIES, first=100)),
    }
    for split, drawn in scenes.items():
        WRITERS[source](tmp_path / "set", split, drawn, CATEGORIES)
    assert build("--source", f"{source}={tmp_path / 'set'}") == 0, capsys.readouterr().err
    loaded = load_dataset("my-set", "all")
    assert list(loaded) == ["train", "val"]
    for split, drawn in scenes.items():
        rows = loaded[split]
        assert len(rows) == 6 * len(drawn)
        labels = {stem: objects for stem, _, objects in drawn}
        for row in without_pictures(rows):
            objects = labels[row["image_id"].split("/")[-1]]
            counts = Counter(category for category, *_ in objects)
            assert row["id"] == f"{split}/{row['image_id']}/{row['task'].lower()}"
            assert (row["scenario"], row["subset"]) == ("my-set", split)
            assert row["options"][row["answer"]] == row["answer_text"]
            evidence = row["evidence"]
            if row["task"] == "CE":
                assert row["answer_text"] == str(len(counts))
            elif row["task"] == "OC":
                assert row["answer_text"] == str(len(objects))
            elif row["task"] == "SCC":
                assert row["answer_text"] == str(counts[evidence["category"]])
            elif row["task"] == "CR":
                px, py = evidence["point_xy"]
                at = [c for c, x, y, w, h in objects if x <= px < x + w and y <= py < y + h]
                assert [row["answer_text"]] == at
            elif row["task"] == "POI":
                edge = {
                    "leftmost": lambda o: o[1],
                    "rightmost": lambda o: -o[1] - o[3],
                    "topmost": lambda o: o[2],
                    "bottommost": lambda o: -o[2] - o[4],
                }[evidence["direction"]]
                assert row["answer_text"] == min(objects, key=edge)[0]
            else:
                boxes = [(x, y, x + w, y + h) for _, x, y, w, h in objects]
                quads = [(a, b, c, b, c, d, a, d) for a, b, c, d in boxes]
                numbers = tuple(json.loads(row["answer_text"]))
                assert numbers in (quads if source == "dota" else boxes)
    assert main(["verify", "my-set"]) == 0
    assert "all is well" in capsys.readouterr().out


def test_each_sub_task_has_a_config_that_is_a_view_of_all(tmp_path):
    for split, first in (("train", 0), ("val", 50)):
        write_coco(tmp_path / "set", split, drawn_scenes(4, CATEGORIES, first=first), CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}") == 0
    everything = load_dataset("my-set", "all")
    for task in Task:
        view = load_dataset("my-set", f"all-{task.lower()}")
        for split in ("train", "val"):
            wanted = [r for r in without_pictures(everything[split]) if r["task"] == task]
            assert without_pictures(view[split]) == wanted
            assert view[split][0]["image"].size == (400, 300)


@pytest.mark.parametrize(
    ("categories", "left_out"),
    [(CATEGORIES[:3], ["CR", "POI"]), (CATEGORIES[:2], ["CE", "CR", "POI"])],
)
def test_sub_tasks_that_the_labels_cannot_carry_are_left_out_by_name(
    categories, left_out, tmp_path, capsys
):
    write_coco(tmp_path / "set", "val", drawn_scenes(4, categories), categories)
    assert build("--source", f"coco={tmp_path / 'set'}") == 0
    too_few = f"the labels have too few categories ({len(categories)}): {', '.join(left_out)}"
    assert too_few in capsys.readouterr().out
    rows = load_dataset("my-set", "all", split="val")
    assert set(rows["task"]) == {task.value for task in Task} - set(left_out)
    assert main(["verify", "my-set"]) == 0
    for code in left_out:
        with pytest.raises(ValueError, match=f"all-{code.lower()}"):
            load_dataset("my-set", f"all-{code.lower()}")


def test_what_is_small_is_the_users_choice(tmp_path):
    scenes = list(drawn_scenes(6, CATEGORIES, side_px=(4, 26)))
    write_coco(tmp_path / "set", "val", scenes, CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}", "--small-area", 150) == 0
    rows = load_dataset("my-set", "all", split="val")
    for stem, _, objects in scenes:
        small = [o for o in objects if o[3] * o[4] <= 150]
        (row,) = [r for r in rows if r["image_id"] == stem and r["task"] == "OC"]
        assert row["answer_text"] == str(len(small))
        assert "at most 150 square pixels" in row["system_prompt"]
        (row,) = [r for r in rows if r["image_id"] == stem and r["task"] == "OL"]
        for option in row["options"]:
            x1, y1, x2, y2 = json.loads(option)
            assert (x2 - x1) * (y2 - y1) <= 150
    assert main(["verify", "my-set"]) == 0


def test_a_build_has_the_same_bytes_on_any_number_of_workers(tmp_path, empty_cache):
    write_coco(tmp_path / "set", "val", drawn_scenes(4, CATEGORIES), CATEGORIES)
    source = f"coco={tmp_path / 'set'}"
    assert build("--source", source) == 0
    (first,) = (empty_cache / "soubench" / "my-set").iterdir()
    assert main(["build", "my-set", "--source", source, "--workers", "2"]) == 0
    assert [f.name for f in (empty_cache / "soubench" / "my-set").iterdir()] == [first.name]


def test_other_options_reach_the_rows(tmp_path, empty_cache):
    write_coco(tmp_path / "set", "val", drawn_scenes(6, CATEGORIES), CATEGORIES)
    source = f"coco={tmp_path / 'set'}"
    own = tmp_path / "own.toml"
    from soubench.builders.sou import prompts

    given = prompts.files("soubench.builders.sou") / prompts.PROMPT_FILE
    own.write_text(given.read_text().replace("How many small objects are", "Count: what is"))
    flags = ["--distractors", "balanced", "--limit", 3, "--split", "val", "--prompt", own]
    assert build("--source", source, *flags) == 0
    rows = load_dataset("my-set", "all-oc", split="val")
    assert len(rows) <= 3
    assert all(q.startswith("Count: what is there") or "Count" in q for q in rows["question"])
    marks = load_dataset("my-set", "all-ol", split="val")
    assert all("only small object inside the red rectangle" in q for q in marks["question"])
    assert main(["verify", "my-set", "--prompt", str(own)]) == 0
    (folder,) = (empty_cache / "soubench" / "my-set").iterdir()
    assert "`, not the ones of the package), Pillow" in (folder / "README.md").read_text()


def test_an_annotation_file_alone_is_one_split(tmp_path):
    write_coco(tmp_path / "set", "2024", drawn_scenes(3, CATEGORIES), CATEGORIES)
    labels = tmp_path / "set" / "annotations" / "instances_2024.json"
    assert build("--source", f"coco={labels}") == 0
    assert list(load_dataset("my-set", "all")) == ["val"]
    assert build("--source", f"coco={labels}", "--split", "extra-2024") == 0
    assert list(load_dataset("my-set", "all")) == ["extra_2024"]


def test_pictures_in_two_splits_are_warned_of(tmp_path, capsys):
    write_coco(tmp_path / "set", "train", drawn_scenes(4, CATEGORIES), CATEGORIES)
    write_coco(tmp_path / "set", "val", drawn_scenes(2, CATEGORIES, first=2), CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}") == 0
    assert "2 pictures lie in both train and val, by" in capsys.readouterr().err


def test_another_build_of_a_name_takes_its_place(tmp_path):
    write_coco(tmp_path / "four", "val", drawn_scenes(3, CATEGORIES), CATEGORIES)
    write_coco(tmp_path / "three", "val", drawn_scenes(3, CATEGORIES[:3]), CATEGORIES[:3])
    assert build("--source", f"coco={tmp_path / 'four'}") == 0
    assert build("--source", f"coco={tmp_path / 'three'}") == 0
    assert set(load_dataset("my-set", "all", split="val")["task"]) == {"CE", "OC", "OL", "SCC"}
    with pytest.raises(ValueError, match="all-cr"):
        load_dataset("my-set", "all-cr")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["my-set"], "--source FORMAT=DIR"),
        (["my-set", "--source", "coco=x", "--source", "yolo=x"], "needs one detection set"),
        (["my-set", "--source", "pascal=x"], "no format 'pascal'"),
        (["My Set", "--source", "coco=x"], "cannot be the name of a dataset"),
        (["my-set", "--source", "coco=/nowhere"], "/nowhere"),
        (["staging", "--source", "coco=x"], "the cache itself uses"),
        (["csv", "--source", "coco=x"], "reads files of that kind"),
        (["a.py", "--source", "coco=x"], "reads files of that kind"),
    ],
)
def test_wrong_calls_are_told_what_to_do(arguments, says, capsys):
    assert main(["build", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("soubench: error: ")
    assert says in error
    assert "\n" not in error


def test_a_split_that_is_not_there_is_an_error(tmp_path, capsys):
    write_coco(tmp_path / "set", "val", drawn_scenes(2, CATEGORIES), CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}", "--split", "nightly") == 2
    assert "'nightly'" in capsys.readouterr().err


def test_an_exported_set_loads_from_its_folder(tmp_path, capsys):
    write_coco(tmp_path / "set", "train", drawn_scenes(3, CATEGORIES), CATEGORIES)
    write_coco(tmp_path / "set", "val", drawn_scenes(2, CATEGORIES, first=9), CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}") == 0
    right = "--i-have-the-right-to-redistribute"
    assert main(["export", "my-set", str(tmp_path / "out"), right]) == 0
    assert "all-poi" in get_dataset_config_names(str(tmp_path / "out"))
    for config in ("all", "all-ol"):
        ours = load_dataset("my-set", config)
        exported = load_dataset(str(tmp_path / "out"), config)
        for split in ("train", "val"):
            assert without_pictures(exported[split]) == without_pictures(ours[split])
            assert exported[split][0]["image"].tobytes() == ours[split][0]["image"].tobytes()
    card = (tmp_path / "out" / "README.md").read_text()
    assert "pretty_name: my-set" in card
    assert "<!-- name" not in card
    assert "<!-- this" not in card


def test_the_report_measures_what_the_labels_say(tmp_path, empty_cache):
    scenes = list(drawn_scenes(5, CATEGORIES))
    write_coco(tmp_path / "set", "val", scenes, CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}") == 0
    (folder,) = (empty_cache / "soubench" / "my-set").iterdir()
    subset = json.loads((folder / "report.json").read_text())["subsets"]["val"]
    areas = [w * h for _, _, objects in scenes for *_, w, h in objects]
    bins = [
        sum(a <= 64 for a in areas),
        sum(64 < a <= 256 for a in areas),
        sum(256 < a <= 576 for a in areas),
        sum(a > 576 for a in areas),
    ]
    assert subset["sides_px"] == bins
    assert subset["small_objects"] == len(areas)
    assert subset["smallest_wh"] == subset["largest_wh"] == [400, 300]
    assert subset["categories"] == 4
    card = (folder / "README.md").read_text()
    assert "| `val` | coco | val | 5 | 400×300 | 30 | 4 |" in card
    assert "| my-set | 16.67 | 16.67 | 16.67 | 16.67 | 16.67 | 16.67 | 100.00 |" in card


def test_two_exports_to_one_folder_do_not_mix(tmp_path, capsys):
    write_coco(tmp_path / "set", "val", drawn_scenes(2, CATEGORIES), CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}") == 0
    with FileLock(tmp_path / ".out.lock"):
        assert main(["export", "my-set", str(tmp_path / "out")]) == 2
    assert "is being written by another soubench" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["export", "my-set", str(tmp_path / "out")]) == 0
    assert [p.name for p in tmp_path.iterdir() if "lock" in p.name] == []


def test_a_validation_list_may_repeat_training_pictures(tmp_path, capsys):
    WRITERS["yolo"](tmp_path / "set", "train", drawn_scenes(24, CATEGORIES), CATEGORIES)
    pictures = sorted((tmp_path / "set" / "images" / "train").iterdir())
    for split, chosen in (("train", pictures), ("val", pictures[:3])):
        (tmp_path / "set" / f"{split}.txt").write_text("".join(f"{p}\n" for p in chosen))
    (tmp_path / "set" / "data.yaml").write_text(
        f"train: train.txt\nval: val.txt\ntest: images/test\nnames: [{', '.join(CATEGORIES)}]\n"
    )
    assert build("--source", f"yolo={tmp_path / 'set'}") == 0
    error = capsys.readouterr().err
    assert "3 pictures lie in both train and val" in error
    assert "no split test: " in error
    assert "'images/test', and there is neither a folder nor a list" in error
    assert list(load_dataset("my-set", "all")) == ["train", "val"]


def test_copies_under_other_names_in_two_splits_are_warned_of(tmp_path, capsys):
    write_coco(tmp_path / "set", "train", drawn_scenes(4, CATEGORIES), CATEGORIES)
    copies = [(f"copy-{stem}", *rest) for stem, *rest in drawn_scenes(3, CATEGORIES)]
    write_coco(tmp_path / "set", "val", copies, CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}") == 0
    assert "3 pictures lie in both train and val" in capsys.readouterr().err


def test_a_picture_over_the_limit_is_read_by_choice_and_goes_all_the_way(tmp_path, capsys):
    categories = CATEGORIES[:2]
    scenes = [
        (stem, picture.resize((10_001, 10_000)).convert("RGB"), objects)
        for stem, picture, objects in drawn_scenes(1, categories)
    ]
    write_coco(tmp_path / "set", "val", scenes, categories, suffix=".jpg")
    source = f"coco={tmp_path / 'set'}"
    assert build("--source", source) == 2
    assert "picture_too_large 1" in capsys.readouterr().err
    assert build("--source", source, "--max-pixels", 200_000_000) == 0
    out = tmp_path / "out"
    assert main(["export", "my-set", str(out)]) == 0
    assert main(["attach", str(out), "--pictures", str(tmp_path / "set")]) == 0
    assert main(["verify", str(out), "--pictures"]) == 0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[{x},{y}]", "[{x}]", "[questions] CR has to use {y}"),
        ("{letter}: {text}", "{letter}", "[choices] option has to use {text}"),
        ("{letter}: {text}", "{letter.real}: {text}", "[choices] option uses a field"),
    ],
)
def test_prompts_that_would_not_ask_are_refused(old, new, says, tmp_path, capsys):
    from soubench.builders.sou import prompts

    given = (prompts.files("soubench.builders.sou") / prompts.PROMPT_FILE).read_text()
    own = tmp_path / "own.toml"
    own.write_text(given.replace(old, new))
    write_coco(tmp_path / "set", "val", drawn_scenes(1, CATEGORIES), CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}", "--prompt", own) == 2
    assert says in capsys.readouterr().err


def test_a_category_like_a_letter_is_refused(tmp_path, capsys):
    categories = ("ship", "b", "car", "bridge")
    write_coco(tmp_path / "set", "val", drawn_scenes(1, categories), categories)
    assert build("--source", f"coco={tmp_path / 'set'}") == 2
    assert "val: there is a category 'b'" in capsys.readouterr().err


def test_a_folder_of_the_same_name_that_was_loaded_is_no_build(tmp_path, capsys):
    write_coco(tmp_path / "set", "val", drawn_scenes(2, CATEGORIES), CATEGORIES)
    assert build("--source", f"coco={tmp_path / 'set'}") == 0
    out = tmp_path / "my-set"
    assert main(["export", "my-set", str(out), "--pictures=none"]) == 0
    assert "takes the place of the build in the cache" in capsys.readouterr().out
    load_dataset(str(out), "all")
    assert main(["verify", "my-set"]) == 0
    assert main(["export", "my-set", str(tmp_path / "again"), "--pictures=none"]) == 0


def test_the_card_says_how_to_build_the_same(tmp_path, empty_cache):
    write_coco(tmp_path / "set", "val", drawn_scenes(3, CATEGORIES[:3]), CATEGORIES[:3])
    flags = ["--distractors=balanced", "--small-area=400", "--limit=2"]
    assert build("--source", f"coco={tmp_path / 'set'}", *flags) == 0
    (folder,) = (empty_cache / "soubench" / "my-set").iterdir()
    card = (folder / "README.md").read_text()
    said = (
        "soubench build my-set --source coco=DIR --distractors balanced --limit 2 --small-area 400"
    )
    assert said in card
    assert "Small is what has at most 400 px²." in card
    assert "`val`: left out, since the labels have too few categories (3): CR, POI." in card
    assert main(["export", "my-set", str(folder.parent / "out")]) == 0
    assert "## Release notes" in (folder.parent / "out" / "README.md").read_text()
