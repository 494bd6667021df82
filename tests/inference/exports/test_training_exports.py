"""What three trainers read: the conversations of sou-train with their pictures, and the recipe."""

import io
import json
import sys
import types
from dataclasses import replace

import datasets
import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from soubench.builders.errors import TrainError
from soubench.cli import main
from soubench.inference.dataset_rows import open_rows
from soubench.inference.exports.folder import Pictures
from soubench.inference.exports.training import conversations, target_regex
from soubench.inference.training.lora_targets import lora_targets
from soubench.inference.training.recipe import load_recipe
from soubench.inference.training.rows import training_rows

RECIPE = load_recipe("sou-train-visdrone")


def export(to, folder, *more, dataset="sou-train", config="a-visdrone"):
    return main(["export", dataset, str(folder), "--to", to, "--config", config, *more])


def settings_of(folder):
    return yaml.safe_load((folder / "train.yaml").read_text(encoding="utf-8"))


def pixels(image):
    return image.convert("RGB").size, image.convert("RGB").tobytes()


def llamafactory_parts(folder):
    """Read both parts by ``dataset_info.json``, as LLaMA-Factory does."""
    settings = settings_of(folder)
    home = folder / settings["dataset_dir"]
    info = json.loads((home / "dataset_info.json").read_text(encoding="utf-8"))
    for name in (settings["dataset"], settings["eval_dataset"]):
        entry = info[name]
        assert entry["formatting"] == "sharegpt"
        assert entry["columns"] == {"messages": "messages", "images": "images"}
        assert entry["tags"] == {
            "role_tag": "role",
            "content_tag": "content",
            "user_tag": "user",
            "assistant_tag": "assistant",
            "system_tag": "system",
        }
        yield home, json.loads((home / entry["file_name"]).read_text(encoding="utf-8"))


def ms_swift_parts(folder):
    settings = settings_of(folder)
    for (name,) in (settings["dataset"], settings["val_dataset"]):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        yield folder, [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("to", "parts"), [("llamafactory", llamafactory_parts), ("ms-swift", ms_swift_parts)]
)
def test_messages_carry_every_row_of_sou_train(training, tmp_path, to, parts):
    assert export(to, tmp_path / "out") == 0
    by_id = {row["id"]: row for row in open_rows("sou-train", "a-visdrone", "train").rows}
    seen = []
    shown = {}
    for home, records in parts(tmp_path / "out"):
        seen.append([record["id"] for record in records])
        for record in records:
            row = by_id[record["id"]]
            system, user, assistant = record["messages"]
            assert system == row["prompt"][0]
            assert user == {"role": "user", "content": f"<image>{row['prompt'][1]['content']}"}
            assert [assistant] == row["completion"]
            (name,) = record["images"]
            assert pixels(Image.open(home / name)) == pixels(row["image"])
            shown.setdefault(name, row["image_id"])
    train, held_out = seen
    assert len(train) + len(held_out) == len(by_id) == len({*train, *held_out})
    expected = training_rows(RECIPE, system_role=True)
    assert held_out == expected.held_out["id"][:]
    # Every picture is there once, and nothing else.
    images = [path for path in (tmp_path / "out").rglob("images/*")]
    assert len(images) == len(shown)


def test_trl_gets_prompt_and_completion_that_load_dataset_reads(training, tmp_path):
    assert export("trl", tmp_path / "out") == 0
    settings = settings_of(tmp_path / "out")
    data = str(tmp_path / "out" / settings["dataset_name"])
    loaded = datasets.load_dataset(data, cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {settings["dataset_train_split"], settings["dataset_test_split"]}
    expected = training_rows(RECIPE, system_role=True)
    ids = [name for name in open_rows("sou-train", "a-visdrone", "train").rows["id"]]
    held = set(expected.held_out["id"])
    assert loaded["train"]["id"][:] == [name for name in ids if name not in held]
    for split, rows in (("train", expected.train), ("validation", expected.held_out)):
        assert isinstance(loaded[split].features["image"], datasets.Image)
        for got, row in zip(loaded[split], rows, strict=True):
            assert got["prompt"] == row["prompt"]
            assert got["completion"] == row["completion"]
            assert pixels(got["image"]) == pixels(row["image"])


def test_settings_are_the_recipes_and_say_what_the_paper_does_not(training, tmp_path):
    common = {
        "lora_alpha": 16,
        "lora_dropout": 0.0,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "learning_rate": 1e-4,
        "num_train_epochs": 6.0,
        "lr_scheduler_type": "cosine",
        "adam_beta2": 0.999,
        "weight_decay": 0.0,
        "bf16": True,
    }
    own = {
        "llamafactory": {
            "model_name_or_path": "Qwen/Qwen3-VL-2B-Instruct",
            "template": "qwen3_vl_nothink",
            "lora_rank": 8,
            "lora_target": "all",
            "freeze_vision_tower": True,
            "image_max_pixels": 4194304,
            "cutoff_len": 8192,
            "warmup_ratio": 0.1,
        },
        "ms-swift": {
            "model": "Qwen/Qwen3-VL-2B-Instruct",
            "lora_rank": 8,
            "max_pixels": 4194304,
            "max_length": 8192,
            "warmup_ratio": 0.1,
        },
        "trl": {
            "model_name_or_path": "Qwen/Qwen3-VL-2B-Instruct",
            "lora_r": 8,
            "max_length": None,
            "warmup_steps": 0.1,
        },
    }
    for to, expected in own.items():
        assert export(to, tmp_path / to) == 0
        settings = settings_of(tmp_path / to)
        expected = common | expected
        assert {key: settings.get(key, "missing") for key in expected} == expected
        text = (tmp_path / to / "train.yaml").read_text(encoding="utf-8")
        for key in ("learning_rate", "lora_alpha"):
            (line,) = [line for line in text.splitlines() if line.startswith(f"{key}:")]
            assert "# not in the paper: " in line
        readme = (tmp_path / to / "README.md").read_text(encoding="utf-8")
        for key, why in RECIPE.not_in_paper.items():
            assert f"- {key}: {why}." in readme


@pytest.mark.parametrize("kind", ["llava", "idefics3"])
@pytest.mark.parametrize(
    ("vision", "language"),
    [
        ((), ("attention", "mlp")),
        (("attention",), ("attention",)),
        (("attention", "mlp"), ("attention", "mlp-up-down")),
        (("attention",), ()),
    ],
)
def test_the_expression_finds_the_layers_that_soubench_trains(tiny_vlm, kind, vision, language):
    import re
    from dataclasses import replace

    import transformers

    model = transformers.AutoModelForImageTextToText.from_pretrained(tiny_vlm(kind))
    pattern = re.compile(target_regex(replace(RECIPE, vision=vision, language=language)))
    named = [n for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)]
    found = [name for name in named if pattern.fullmatch(name)]
    assert found == lora_targets(model, vision, language)
    assert found
    # PEFT looks at every module: nothing that is no linear layer may match.
    assert not [n for n, _ in model.named_modules() if pattern.fullmatch(n) and n not in named]


@pytest.mark.slow
def test_trl_trains_on_the_export(training, tiny_vlm, tmp_path, monkeypatch):
    """With TRL's own command, its settings as written but for the model, the length and the GPU."""
    from trl import DatasetMixtureConfig, ModelConfig, ScriptArguments, SFTConfig, TrlParser
    from trl.scripts.sft import main as sft

    assert export("trl", tmp_path / "out") == 0
    monkeypatch.chdir(tmp_path / "out")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig, DatasetMixtureConfig))
    flags = ["--model_name_or_path", str(tiny_vlm("llava")), "--max_steps", "2", "--bf16", "false"]
    flags += ["--use_cpu", "true", "--dtype", "float32", "--eval_steps", "1"]
    script, config, model, mixture = parser.parse_args_and_config(
        ["--config", "train.yaml", *flags], fail_with_unknown_args=True
    )
    sft(script, config, model, mixture)
    state = json.loads(next((tmp_path / "out").rglob("trainer_state.json")).read_text())
    assert state["global_step"] == 2
    assert [entry["eval_loss"] > 0 for entry in state["log_history"] if "eval_loss" in entry]
    adapter = next((tmp_path / "out").rglob("adapter_config.json"))
    assert json.loads(adapter.read_text())["r"] == 8


@pytest.mark.parametrize(
    ("to", "flags", "said"),
    [
        pytest.param("trl", ["--recipe=shapes-minicpm-v-tuple-x1_5"], "soubench train", id="scale"),
        pytest.param(
            "llamafactory", ["--recipe=shapes-paligemma-tuple"], "--to ms-swift", id="vision"
        ),
        pytest.param(
            "trl", ["--recipe=shapes-paligemma-tuple"], "the reply would see itself", id="prefix"
        ),
        pytest.param("trl", ["--recipe=nope"], "no recipe 'nope'", id="no such recipe"),
        pytest.param("lmms-eval", ["--recipe=sou-train-soda"], "evaluates models", id="no trainer"),
    ],
)
def test_what_a_trainer_cannot_do_is_refused(training, tmp_path, capsys, to, flags, said):
    assert export(to, tmp_path / "out", *flags) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("split", ["test", "od_size"])
def test_a_split_to_test_on_is_not_trained_on(split, built, tmp_path, capsys):
    flags = {"dataset": "primitive-shapes", "config": "tuple"}
    assert export("trl", tmp_path / "out", "--split", split, **flags) == 2
    assert f"got {split!r}: models are tested on that" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["trl", "ms-swift", "llamafactory"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_picture_that_was_cut_off_is_not_passed_on(to, kind, tmp_path, capsys):
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, kind)
    whole = file.getvalue()
    table = {
        "id": ["a", "b"],
        "image": [{"bytes": whole, "path": "a"}, {"bytes": whole[:-800], "path": "b"}],
        "prompt": [[{"role": "user", "content": "?"}]] * 2,
        "completion": [[{"role": "assistant", "content": "!"}]] * 2,
    }
    rows = datasets.Dataset.from_dict(table)
    (tmp_path / "rows").mkdir()
    rows.cast_column("image", datasets.Image()).to_parquet(tmp_path / "rows" / "train.parquet")
    flags = ["--to", to, "--recipe", "sou-train-driving"]
    assert main(["export", str(tmp_path / "rows"), str(tmp_path / "out"), *flags]) == 2
    assert "row b: the picture b cannot be decoded" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_step_that_cannot_be_divided_is_refused(training, tmp_path, capsys):
    recipe = tmp_path / "mine.toml"
    recipe.write_text('extends = "sou-train-visdrone"\nper_device_batch = 3\n')
    assert export("ms-swift", tmp_path / "out", f"--recipe={recipe}") == 2
    assert (
        "effective_batch = 8 must be a multiple of per_device_batch = 3" in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


def test_a_config_without_a_recipe_names_those_there_are(training, tmp_path, capsys):
    assert export("ms-swift", tmp_path / "out", config="a-visdrone-ce") == 2
    assert "--recipe (sou-train-driving, sou-train-visdrone" in capsys.readouterr().err
    flags = ["--recipe=sou-train-visdrone"]
    assert export("ms-swift", tmp_path / "out", *flags, config="a-visdrone-ce") == 0


def test_a_text_that_looks_like_a_picture_is_refused(training, tmp_path):
    def disturbed(row):
        row["prompt"][1]["content"] += " <image>"
        return row

    loaded = open_rows("sou-train", "a-visdrone", "train")
    rows = replace(loaded, rows=loaded.rows.select([0]).map(disturbed))
    with pytest.raises(TrainError, match="holds <image>"):
        list(conversations(rows, tmp_path, Pictures(), ""))


def test_ms_swift_gets_a_plugin_that_scales_numbers(built, tmp_path, monkeypatch):
    flags = ["--recipe=shapes-minicpm-v-tuple-x1_5"]
    folder = tmp_path / "out"
    assert export("ms-swift", folder, *flags, dataset="primitive-shapes", config="tuple") == 0
    settings = settings_of(folder)
    assert settings["external_plugins"] == ["numeric_loss.py"]
    # A stand-in for the tool, which does not install beside soubench.
    swift, scales = types.ModuleType("swift"), types.ModuleType("swift.loss_scale")
    scales.LossScale, scales.loss_scale_map = object, {}
    monkeypatch.setitem(sys.modules, "swift", swift)
    monkeypatch.setitem(sys.modules, "swift.loss_scale", scales)
    exec((folder / "numeric_loss.py").read_text(encoding="utf-8"), {"__name__": "plugin"})
    scale = scales.loss_scale_map[settings["loss_scale"]]()
    parts, weights = scale.get_loss_scale("(128, 13.7) is 45")
    assert parts == ["(", "128", ", ", "13", ".", "7", ") is ", "45"]
    assert weights == [1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0, 1.5]
    assert "multiplies the loss of numbers by 1.5" in (folder / "README.md").read_text()


def test_shapes_go_to_trainers_too(built, tmp_path):
    assert export("ms-swift", tmp_path / "out", dataset="primitive-shapes", config="tuple") == 0
    _, records = next(ms_swift_parts(tmp_path / "out"))
    by_id = {row["id"]: row for row in open_rows("primitive-shapes", "tuple", "train").rows}
    for record in records:
        row = by_id[record["id"]]
        assert record["messages"] == [
            {"role": "user", "content": f"<image>{row['question']}"},
            {"role": "assistant", "content": row["target"]},
        ]
