"""The recipes are those of the papers, and a wrong one is told what is wrong."""

import dataclasses

import pytest

from soubench.builders.errors import TrainError
from soubench.cli import main
from soubench.inference.training.recipe import load_recipe, recipe_names, unavailable


def test_every_recipe_loads_and_is_listed(capsys):
    assert main(["train", "--list"]) == 0
    listed = capsys.readouterr().out
    for name in recipe_names():
        assert load_recipe(name).name == name
        assert name in listed
    assert all(model in listed for model in unavailable())


def test_sou_train_is_table_7():
    epochs = {"driving": 9, "visdrone": 6, "aitod": 4, "soda": 3, "underwater": 3}
    for name, n in epochs.items():
        recipe = load_recipe(f"sou-train-{name}")
        assert recipe.epochs == n
        assert (recipe.lora_rank, recipe.scheduler, recipe.warmup) == (8, "cosine", 0.1)
        assert (recipe.per_device_batch, recipe.effective_batch) == (1, 8)
        assert recipe.max_pixels == 4194304
        assert recipe.model == "Qwen/Qwen3-VL-2B-Instruct"
        assert {"lora_alpha", "lora_dropout", "learning_rate"} <= set(recipe.not_in_paper)


def test_shapes_and_plants_are_those_of_the_paper():
    for name in recipe_names():
        recipe = load_recipe(name)
        if name.startswith(("shapes", "plants")):
            assert recipe.learning_rate == 1e-6
            assert (recipe.adam_beta2, recipe.weight_decay, recipe.warmup) == (0.95, 0.1, 0.01)
            assert recipe.effective_batch == 16
            plants = name.startswith("plants")
            lora = (recipe.lora_rank, recipe.lora_alpha, recipe.lora_dropout)
            assert lora == ((8, 16, 0.15) if plants else (64, 64, 0.05))
            assert recipe.max_steps == (4000 if plants else 10000)
    scales = {load_recipe(n).numeric_scale for n in recipe_names() if "minicpm-v-sentence" in n}
    assert scales == {1.0, 1.5, 2.0, 2.5, 3.5}


def test_a_recipe_of_ones_own_extends_another(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "sou-train-driving"\nmax_steps = 7\nlora_rank = 4\n')
    mine, base = load_recipe(str(path)), load_recipe("sou-train-driving")
    assert (mine.name, mine.max_steps, mine.epochs, mine.lora_rank) == ("mine", 7, None, 4)
    assert mine.learning_rate == base.learning_rate
    # What the file sets is not passed off as the paper's.
    assert mine.not_in_paper["lora_rank"] == "set in mine.toml"
    assert mine.not_in_paper["lora_alpha"] == base.not_in_paper["lora_alpha"]
    other = mine.changed(lora_alpha=3, lora_rank=4, model=None)
    assert other.not_in_paper["lora_alpha"] == "set for this run"
    assert other.not_in_paper["lora_rank"] == "set in mine.toml"
    assert other.model == base.model


def test_parts_of_a_recipe():
    recipe = load_recipe("shapes-minicpm-v-sentence")
    assert recipe.training("vision").language == ()
    assert recipe.training("language").vision == ()
    assert recipe.training("both") == recipe


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('extends = "sou-train-driving"\nlora_rnak = 4', "did you mean lora_rank"),
        ('extends = "sou-train-driving"\nlora_rank = "4"', "lora_rank: expected int, got '4'"),
        ('extends = "sou-train-driving"\nlora_dropout = 1.5', "a number from 0 to below 1"),
        ('extends = "sou-train-driving"\nlearning_rate = 0', "a number above 0"),
        ('extends = "nothing"', "extends 'nothing', which is not there"),
        ('dataset = "x"', "expected either epochs or max_steps"),
        ('dataset = "x"\nepochs = 1', "is missing"),
        ('extends = "sou-train-driving"\nprecision = "int8"', "bfloat16 or float32"),
        ('extends = "sou-train-driving"\nname = "x"', "there is no setting 'name'"),
        ('extends = "sou-train-driving"\nnot_in_paper = "x"', "expected setting = reason"),
        ('extends = "sou-train-driving"\nvision = "attention"', "expected a list of texts"),
        (
            'extends = "sou-train-driving"\nvision = ["atention"]',
            "vision: expected kinds of layers of attention, mlp, mlp-up-down, got",
        ),
        ("a = [", "expected a recipe in TOML"),
        ('extends = ["a"]', r"extends \['a'\], which is not there"),
        *(
            (f'extends = "sou-train-driving"\n{setting}', f"{setting.split()[0]}: expected")
            for setting in (
                "max_steps = 0",
                "epochs = -1",
                "learning_rate = inf",
                "adam_beta2 = 1.5",
                "weight_decay = -1",
                "max_new_tokens = 0",
                "max_pixels = 0",
                'scheduler = "cosine_with_min_lr"',
                'split = "test"',
                'split = "od_size"',
                'split = "Test"',
                'split = "devtest"',
                'split = "strong_od_test"',
            )
        ),
    ],
)
def test_wrong_recipes_are_told(text, says, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(TrainError, match=says):
        load_recipe(str(path))


def test_unknown_names_and_missing_answers(capsys):
    assert main(["train", "sou-train-drivng", "--out", "x"]) == 2
    assert "did you mean sou-train-driving" in capsys.readouterr().err
    assert main(["train"]) == 2
    assert "--list" in capsys.readouterr().err
    assert main(["train", "sou-train-driving"]) == 2
    assert "--out DIR" in capsys.readouterr().err
    assert main(["train", "sou-train-driving", "--show"]) == 0
    assert "not in the paper" in capsys.readouterr().out


def test_a_recipe_that_is_shown_is_one_that_can_be_given(capsys, tmp_path):
    assert main(["train", "shapes-minicpm-v-tuple-x1_5", "--show"]) == 0
    path = tmp_path / "shown.toml"
    path.write_text(capsys.readouterr().out)
    shown, known = load_recipe(str(path)), load_recipe("shapes-minicpm-v-tuple-x1_5")
    for field in dataclasses.fields(known):
        if field.name not in ("name", "not_in_paper"):
            assert getattr(shown, field.name) == getattr(known, field.name)


def test_what_is_changed_for_a_run_is_marked_as_such(capsys):
    recipe = load_recipe("shapes-minicpm-v-sentence")
    assert recipe.substitute_for
    assert recipe.changed(model="some/other").substitute_for == ""
    only = recipe.training("language")
    assert only.not_in_paper["vision"] == "set for this run: trained is language"
    assert only.not_in_paper["language"] == recipe.not_in_paper["language"]
    assert main(["train", "shapes-minicpm-v-sentence", "--show", "--parts", "language"]) == 0
    assert "vision = []    # not in the paper: set for this run" in capsys.readouterr().out
