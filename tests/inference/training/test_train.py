"""Training on tiny models: layers, the numeric loss, resuming, and the command from end to end."""

import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys

import datasets
import PIL.Image
import pytest
import torch
from filelock import FileLock
from huggingface_hub import ModelCard
from peft import LoraConfig
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForImageTextToText,
    AutoProcessor,
    PreTrainedTokenizerFast,
)
from trl import SFTConfig, SFTTrainer

from soubench.builders.errors import TrainError
from soubench.cli import main
from soubench.inference.chat_templates import ensure_chat_template
from soubench.inference.training.judge import measure_of, score
from soubench.inference.training.lora_targets import lora_targets, part_of
from soubench.inference.training.numeric_loss import NumericSFTTrainer, numeric_token_ids
from soubench.inference.training.prefix_collator import PrefixCollator
from soubench.inference.training.recipe import load_recipe
from soubench.inference.training.rows import training_rows

RECIPE = "shapes-qwen2-vl-2b-sentence"


def load(folder):
    torch.manual_seed(0)
    return AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)


def trainer_of(kind, folder, out, *, steps=20, batch=2, accumulation=1, **options):
    """A trainer on shapes; ``kind`` is TRL's or ours."""
    rows = training_rows(load_recipe(RECIPE), system_role=True)
    model, processor = load(folder), AutoProcessor.from_pretrained(folder)
    config = SFTConfig(
        output_dir=str(out),
        max_steps=steps,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
        learning_rate=1e-3,
        logging_steps=1,
        save_steps=5,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        max_length=None,
        report_to="none",
        seed=0,
    )
    torch.manual_seed(0)
    return kind(
        model=model,
        args=config,
        train_dataset=rows.train,
        processing_class=processor,
        peft_config=LoraConfig(
            r=4, lora_alpha=8, target_modules=lora_targets(model, ["attention"], ["attention"])
        ),
        **options,
    )


def losses(trainer, key="loss"):
    return [float(entry[key]) for entry in trainer.state.log_history if key in entry]


def test_layers_of_both_parts_are_found(tiny_vlm):
    for kind in ("llava", "idefics3"):
        model = load(tiny_vlm(kind))
        found = lora_targets(model, ["attention"], ["attention", "mlp"])
        parts = {part_of(name) for name in found}
        assert parts == {"vision", "language"}
        # 2 layers each: q, k, v, out of the vision tower; q, k, v, o, gate, up, down of the text.
        assert sum(part_of(name) == "vision" for name in found) == 8
        assert sum(part_of(name) == "language" for name in found) == 14
        linear = {n for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
        assert set(found) <= linear
        assert lora_targets(model, [], ["mlp-up-down"]) == [
            name for name in found if name.endswith(("up_proj", "down_proj"))
        ]


SAMPLE = [
    f"A red square at ({i}, {i * 7 % 500}), rotated by {i / 4}: 1st, x{i}" for i in range(999)
]


def trained(model, trainer, before, decoder):
    """A tokenizer trained on sentences with many numbers."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = before, decoder
    tokenizer.train_from_iterator(SAMPLE, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    # PaliGemma's places are no numbers.
    tokenizer.add_special_tokens({"additional_special_tokens": ["<loc0012>"]})
    return tokenizer


def byte_level(digits):
    """Qwen's kind takes digits one by one, LLaMA-3's up to three at a time."""
    parts = Regex(rf"\p{{N}}{digits}|\p{{L}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+")
    split = pre_tokenizers.Split(parts, "isolated")
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=3000,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
        pre_tokenizers.Sequence([split, bytes_only]),
        decoders.ByteLevel(),
    )


def sentencepiece():
    """LLaMA-2's and Gemma's kind: digits one by one, unknown characters as bytes."""
    byte_tokens = [f"<0x{i:02X}>" for i in range(256)]
    return trained(
        models.BPE(byte_fallback=True, unk_token="<unk>"),
        trainers.BpeTrainer(
            vocab_size=900, special_tokens=["<unk>", *byte_tokens], show_progress=False
        ),
        pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(), pre_tokenizers.Digits(individual_digits=True)]
        ),
        decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]),
    )


@pytest.mark.parametrize(
    ("make", "longest"),
    [
        pytest.param(lambda: byte_level(""), 1, id="Qwen-like"),
        pytest.param(lambda: byte_level("{1,3}"), 3, id="LLaMA-3-like"),
        pytest.param(sentencepiece, 1, id="SentencePiece-like"),
    ],
)
def test_numeric_tokens_of_a_vocabulary(make, longest):
    tokenizer = make()
    numeric = set(numeric_token_ids(tokenizer))
    # All digits of a text are in numeric tokens, and nothing else is.
    for text in ("(128, 13.7) and -305 px", "1st of 2 ½ ٣ x7 1024"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        read = [tokenizer.decode([i]).strip() for i in ids if i in numeric]
        assert "".join(read) == re.sub("[^0-9]", "", text)
        assert max(map(len, read)) == longest
    tokens = set(tokenizer.convert_ids_to_tokens(sorted(numeric)))
    assert tokens >= {*"0123456789"}
    assert not tokens & {"<loc0012>", "<0x31>"}


def test_scale_1_is_the_plain_trainer_to_the_last_bit(tiny_vlm, shapes, tmp_path):
    plain = trainer_of(SFTTrainer, tiny_vlm("llava"), tmp_path / "a")
    ours = trainer_of(NumericSFTTrainer, tiny_vlm("llava"), tmp_path / "b", numeric_scale=1.0)
    plain.train()
    ours.train()
    assert losses(plain) == losses(ours)
    assert len(losses(ours)) == 20
    assert losses(ours)[-1] < losses(ours)[0]
    assert losses(ours, "plain_loss") == pytest.approx(losses(ours), rel=1e-5)
    for (name, a), (_, b) in zip(
        plain.model.named_parameters(), ours.model.named_parameters(), strict=True
    ):
        assert torch.equal(a, b), name


def test_the_loss_is_what_is_worked_out_by_hand(tiny_vlm, shapes, tmp_path):
    trainer = trainer_of(NumericSFTTrainer, tiny_vlm("llava"), tmp_path, numeric_scale=2.5)
    inputs = next(iter(trainer.get_train_dataloader()))
    trainer.model.train()
    for module in trainer.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    labels = inputs["labels"].clone()
    loss = trainer.compute_loss(trainer.model, dict(inputs))
    given = {key: value for key, value in inputs.items() if key != "labels"}
    with torch.no_grad():
        logits = trainer.model(**given).logits
    tokenizer = trainer.processing_class.tokenizer
    total, n, numbers = 0.0, 0, 0
    for row in range(labels.shape[0]):
        for place in range(1, labels.shape[1]):
            token = labels[row, place].item()
            if token == -100:
                continue
            log_probs = torch.log_softmax(logits[row, place - 1].double(), 0)
            is_number = tokenizer.decode([token]).strip().isdecimal()
            total -= log_probs[token].item() * (2.5 if is_number else 1.0)
            n += 1
            numbers += is_number
    assert 0 < numbers < n
    assert math.isclose(loss.item(), total / n, rel_tol=1e-5)


def test_a_loss_that_cannot_be_scaled_ends_the_run(tiny_vlm, shapes, tmp_path, monkeypatch):
    def of_the_model(self, model, inputs, *args, **kwargs):
        return model(**inputs).loss

    monkeypatch.setattr(SFTTrainer, "compute_loss", of_the_model)
    trainer = trainer_of(NumericSFTTrainer, tiny_vlm("llava"), tmp_path, numeric_scale=2.0)
    with pytest.raises(TrainError, match=r"Install trl 1\.16"):
        trainer.train()


def test_prompt_picture_and_padding_have_no_gradient(tiny_vlm, shapes, tmp_path):
    trainer = trainer_of(NumericSFTTrainer, tiny_vlm("llava"), tmp_path, numeric_scale=2.0)
    inputs = next(iter(trainer.get_train_dataloader()))
    kept = []
    model = trainer.model

    def note(module, arguments, output):
        output.requires_grad_()
        output.retain_grad()
        kept.append(output)

    norm = model.get_base_model().model.language_model.norm
    handle = norm.register_forward_hook(note)
    trainer.compute_loss(model, dict(inputs)).backward()
    handle.remove()
    gradient = kept[0].grad.abs().sum(-1)
    # The state at a place foretells the label of the next one.
    labelled = torch.zeros_like(gradient, dtype=torch.bool)
    labelled[:, :-1] = inputs["labels"][:, 1:] != -100
    assert (gradient[~labelled] == 0).all()
    assert (gradient[labelled] > 0).all()


@pytest.mark.parametrize("kind", ["llava", "paligemma"])
def test_the_batch_may_be_split_at_will(kind, tiny_vlm, shapes, tmp_path):
    options = {}
    if kind == "paligemma":
        processor = AutoProcessor.from_pretrained(tiny_vlm(kind))
        ensure_chat_template(processor)
        options["data_collator"] = PrefixCollator(processor)
    runs = []
    for batch, accumulation in ((4, 1), (2, 2), (1, 4)):
        out = tmp_path / f"{batch}"
        trainer = trainer_of(
            NumericSFTTrainer,
            tiny_vlm(kind),
            out,
            steps=4,
            batch=batch,
            accumulation=accumulation,
            numeric_scale=3.5,
            **options,
        )
        trainer.train()
        runs.append([losses(trainer, key) for key in ("loss", "plain_loss", "numeric_loss")])
    for other in runs[1:]:
        for one, another in zip(other, runs[0], strict=True):
            assert one == pytest.approx(another, abs=2e-4)


@pytest.fixture(scope="session")
def short(tmp_path_factory):
    """A recipe of few steps and short replies."""
    path = tmp_path_factory.mktemp("recipes") / "short.toml"
    path.write_text(
        f'extends = "{RECIPE}"\neffective_batch = 4\nmax_steps = 6\nmax_new_tokens = 8\n'
    )
    return path


def run(recipe, tiny, out, *flags):
    arguments = ["--model", tiny, "--out", out, "--save-steps", 3, "--held-out-rows", 1, *flags]
    return main(["train", str(recipe), *map(str, arguments)])


def check_card(out, judged):
    """The Hub's library reads the card, which says what training has changed, instead of TRL's."""
    settings = json.loads((out / "training.json").read_text())
    chosen = json.loads((out / "result.json").read_text())["chosen"]
    assert (out / "merged" / "README.md").read_text() == (out / "README.md").read_text()
    card = ModelCard.load(out / "README.md")
    after = judged[str(chosen)]
    results = {result.metric_type: result for result in card.data.eval_results}
    assert {name: r.metric_value for name, r in results.items()} == {
        name: round(value, 6)
        for name, value in after.items()
        if name != "unparsed" and value is not None
    }
    assert results["sama"].dataset_revision == settings["dataset"]["fingerprint"]
    assert card.data.tags == ["soubench", "lora", "primitive-shapes"]
    # A folder of this machine is neither linked nor named.
    assert card.data.base_model is None
    assert str(out.parent) not in card.content
    assert f"| sama (chooses) | share | higher | {judged['0']['sama']:.4f} | " in card.text
    assert "| max_steps | 6 | not in the paper: set in short.toml |" in card.text
    assert "| numeric_scale | 2.5 | not in the paper: set for this run |" in card.text
    assert "| lora_rank | 64 | the paper |" in card.text
    assert "| max_grad_norm | 1.0 | the default of transformers |" in card.text
    assert "| optim | adamw_torch_fused | the default of transformers |" in card.text
    assert "| vision | `model.vision_tower.encoder.layers.N.self_attn.q_proj` | 2 |" in card.text
    assert f"| all | | {len(settings['lora_targets'])} |" in card.text


def test_the_command_trains_judges_merges_and_goes_on(
    short, tiny_vlm, shapes, installed_metrics, tmp_path, capsys
):
    tiny = tiny_vlm("llava")
    assert run(short, tiny, tmp_path / "run", "--numeric-scale", "2.5") == 0
    said = capsys.readouterr().out
    assert "is chosen" in said
    assert (tmp_path / "run" / "merged" / "config.json").is_file()
    judged = json.loads((tmp_path / "run" / "held_out.json").read_text())
    assert list(judged) == ["0", "3", "6"]
    check_card(tmp_path / "run", judged)
    merged = load(tmp_path / "run" / "merged")
    before = load(tiny)
    assert any(
        not torch.equal(a, b) for a, b in zip(merged.parameters(), before.parameters(), strict=True)
    )
    # Stopped after step 3 and started again, it ends at the same weights.
    stopped = tmp_path / "stopped"
    assert run(short, tiny, stopped, "--numeric-scale", "2.5") == 0
    for name in ("checkpoint-6", "merged"):
        shutil.rmtree(stopped / name)
    (stopped / "result.json").unlink()
    # Of the last checkpoint only a part was written.
    (stopped / "checkpoint-6").mkdir()
    (stopped / "checkpoint-6" / "trainer_state.json").write_text('{"global_st')
    del judged["6"]
    (stopped / "held_out.json").write_text(json.dumps(judged))
    assert run(short, tiny, stopped, "--numeric-scale", "2.5") == 0
    again = load(stopped / "merged")
    for a, b in zip(merged.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    # Another setting is another run.
    assert run(short, tiny, stopped, "--numeric-scale", "1.5") == 2
    assert "recipe.numeric_scale was 2.5 there and is 1.5 now" in capsys.readouterr().err


def test_without_held_out_rows_the_last_checkpoint_is_merged(
    short, tiny_vlm, shapes, tmp_path, capsys
):
    own = tmp_path / "own.toml"
    own.write_text(short.read_text() + "held_out = 0.0\n")
    assert run(own, tiny_vlm("idefics3"), tmp_path / "run", "--max-steps", "2") == 0
    assert "checkpoint 2 is chosen" in capsys.readouterr().out
    assert not (tmp_path / "run" / "held_out.json").exists()
    card = ModelCard.load(tmp_path / "run" / "README.md")
    assert card.data.eval_results is None
    assert "Before and after" not in card.text


KILLED = """
import os, signal, sys
from soubench.cli import main
from soubench.inference.training import train

judge = train._Judging.judge

def killed(self, step):
    if step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    judge(self, step)

train._Judging.judge = killed
main(sys.argv[1:])
"""


# The last step is not the last of an epoch: the data would have another one.
@pytest.mark.parametrize("steps", ["6", "3"], ids=["on its way", "after its last step"])
def test_a_run_that_is_killed_goes_on_to_the_same_end(
    steps, short, tiny_vlm, shapes, installed_metrics, tmp_path
):
    tiny = tiny_vlm("llava")
    flags = ["--save-steps", "3", "--held-out-rows", "1", "--max-steps", steps]
    named = ["train", str(short), "--out", str(tmp_path / "killed"), "--model", str(tiny)]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *named, *flags],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / "result.json").exists()
    assert run(short, tiny, tmp_path / "killed", "--max-steps", steps) == 0
    assert run(short, tiny, tmp_path / "whole", "--max-steps", steps) == 0
    results = [json.loads((tmp_path / n / "result.json").read_text()) for n in ("killed", "whole")]
    assert results[0]["steps"] == int(steps)
    for key in ("steps", "loss", "held_out", "chosen"):
        assert results[0][key] == results[1][key]
    models = [load(tmp_path / name / "merged") for name in ("killed", "whole")]
    for a, b in zip(*(model.parameters() for model in models), strict=True):
        assert torch.equal(a, b)


def test_two_processes_train_as_one(short, tiny_vlm, shapes, installed_metrics, tmp_path):
    # Dropout is drawn in each process by itself.
    own = tmp_path / "own.toml"
    own.write_text(short.read_text() + "lora_dropout = 0.0\nlearning_rate = 1e-3\n")
    flags = ["--no-merge", "--max-steps", "3", "--numeric-scale", "2.5"]
    assert run(own, tiny_vlm("llava"), tmp_path / "one", *flags) == 0
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc_per_node", "2", "-m", "soubench", "train", str(own), *flags]
    launcher += ["--model", str(tiny_vlm("llava")), "--out", str(tmp_path / "two")]
    launcher += ["--save-steps", "3", "--held-out-rows", "1"]
    subprocess.run(
        launcher,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    results = [json.loads((tmp_path / n / "result.json").read_text()) for n in ("one", "two")]
    assert [result["processes"] for result in results] == [1, 2]
    states = [
        json.loads((tmp_path / n / "checkpoint-3" / "trainer_state.json").read_text())
        for n in ("one", "two")
    ]
    for key in ("loss", "plain_loss", "numeric_loss"):
        one, two = (
            [float(entry[key]) for entry in state["log_history"] if key in entry]
            for state in states
        )
        assert len(one) == 3
        assert two == pytest.approx(one, rel=1e-5)


def test_losses_are_written_for_tensorboard(short, tiny_vlm, shapes, installed_metrics, tmp_path):
    flags = ["--report-to", "tensorboard", "--no-merge", "--numeric-scale", "2"]
    assert run(short, tiny_vlm("llava"), tmp_path, *flags) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    events = EventAccumulator(str(folder)).Reload()
    state = json.loads((tmp_path / "checkpoint-6" / "trainer_state.json").read_text())
    logged = [entry for entry in state["log_history"] if "loss" in entry]
    assert len(logged) == 6
    for name in ("loss", "plain_loss", "numeric_loss"):
        written = {event.step: event.value for event in events.Scalars(f"train/{name}")}
        assert written == {e["step"]: pytest.approx(float(e[name]), rel=1e-6) for e in logged}
    # With numbers weighing twice, the trained loss is above the plain one.
    assert all(float(entry["loss"]) > float(entry["plain_loss"]) for entry in logged)


@pytest.mark.parametrize("name", ["tensorboard", "trackio"])
def test_a_missing_logger_names_its_extra(name, short, tiny_vlm, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("soubench.inference.training.train.find_spec", lambda name: None)
    assert run(short, tiny_vlm("llava"), tmp_path / "run", "--report-to", name) == 2
    assert f'pip install "soubench[{name}]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--dataset", "nowhere"], "nowhere"),
        (["--model", "/nowhere/model"], "expected a vision-language model"),
        (["--effective-batch", "3", "--per-device-batch", "2"], "effective_batch = 3 cannot"),
    ],
)
def test_what_does_not_fit_is_told(flags, says, short, tiny_vlm, shapes, tmp_path, capsys):
    assert run(short, tiny_vlm("llava"), tmp_path / "run", *flags) == 2
    assert says in capsys.readouterr().err


def test_a_model_without_a_chat_template_is_told(short, tiny_vlm, shapes, tmp_path, capsys):
    processor = AutoProcessor.from_pretrained(tiny_vlm("llava"))
    processor.chat_template = processor.tokenizer.chat_template = None
    load(tiny_vlm("llava")).save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    assert run(short, tmp_path / "model", tmp_path / "run") == 2
    assert "no chat template" in capsys.readouterr().err


def test_rows_that_cannot_be_trained_on_are_told(built, tiny_vlm, tmp_path, capsys):
    out = str(tmp_path / "run")
    flags = ["--dataset", "sou-vqa", "--model", str(tiny_vlm("llava")), "--out", out]
    assert main(["train", "sou-train-visdrone", *flags]) == 2
    assert "there is no split 'train'" in capsys.readouterr().err


def test_columns_that_are_missing_or_odd_are_told(short, tiny_vlm, tmp_path, capsys):
    image = PIL.Image.new("RGB", (8, 8))
    turn = [{"role": "user", "content": "?"}]
    for columns, says in (
        ({"prompt": [turn], "completion": [turn]}, "expected a column image or images; there are"),
        ({"image": [image], "images": [[image]]}, "there are both. Remove one"),
        ({"image": [image], "question": ["?"]}, "or question and target; there are id, image, que"),
        ({"image": [image], "prompt": ["?"], "completion": ["!"]}, "prompt as a list of turns"),
        (
            {"image": [image], "prompt": [turn], "completion": [[{"role": "assistant"}]]},
            "completion as a list of turns",
        ),
    ):
        folder = tmp_path / f"rows-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        datasets.Dataset.from_dict(columns).to_parquet(folder / "train.parquet")
        flags = ["--dataset", folder, "--config", "default"]
        assert run(short, tiny_vlm("llava"), tmp_path / "run", *flags) == 2
        assert says in capsys.readouterr().err


def test_several_gpus_and_one_process_are_refused(
    short, tiny_vlm, shapes, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert run(short, tiny_vlm("llava"), tmp_path / "run") == 2
    assert "torchrun --nproc_per_node" in capsys.readouterr().err


def test_an_unknown_schedule_or_metric_is_told(tiny_vlm, shapes, tmp_path, capsys):
    own = tmp_path / "own.toml"
    for line, says in (
        ('scheduler = "cosin"', "scheduler: expected one of linear, cosine"),
        ('metric = "accuracy"', "metric: expected one of sama, sama"),
    ):
        own.write_text(f'extends = "{RECIPE}"\n{line}\n')
        assert run(own, tiny_vlm("llava"), tmp_path / "run") == 2
        assert says in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


def test_a_folder_belongs_to_one_run_at_a_time(
    short, tiny_vlm, shapes, installed_metrics, tmp_path, capsys
):
    out = tmp_path / "run"
    flags = ["--max-steps", "2", "--save-steps", "1", "--no-merge"]
    assert run(short, tiny_vlm("llava"), out, *flags) == 0
    judged = json.loads((out / "held_out.json").read_text())
    assert list(judged) == ["0", "1", "2"]
    (out / "result.json").unlink()
    with FileLock(out / "lock"):
        assert run(short, tiny_vlm("llava"), out, *flags) == 2
    assert "another process is writing there" in capsys.readouterr().err
    (out / "held_out.json").write_text("{")
    assert run(short, tiny_vlm("llava"), out, *flags) == 2
    assert "held_out.json cannot be read" in capsys.readouterr().err
    # All checkpoints are judged again, and the same one is chosen.
    (out / "held_out.json").unlink()
    assert run(short, tiny_vlm("llava"), out, *flags) == 0
    assert json.loads((out / "held_out.json").read_text()) == judged
    for name in ("result.json", "training.json"):
        (out / name).write_text("null")
        assert run(short, tiny_vlm("llava"), out, *flags) == 2
        assert f"{name} cannot be read" in capsys.readouterr().err
        (out / name).unlink()


def test_a_training_that_diverges_is_stopped(short, tiny_vlm, shapes, tmp_path, capsys):
    own = tmp_path / "own.toml"
    own.write_text(short.read_text() + "held_out = 0.0\nlearning_rate = 1e30\nwarmup = 0.0\n")
    assert run(own, tiny_vlm("llava"), tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert "step 2: the loss is nan, so the training has diverged. Lower learning_rate" in said
    assert not (tmp_path / "run" / "result.json").exists()


def write_rows(folder, **columns):
    """Rows a and b, each with a picture of its own, as a folder that load_dataset reads."""
    pictures = []
    for color in ("red", "green"):
        file = io.BytesIO()
        PIL.Image.new("RGB", (64, 64), color).save(file, "PNG")
        pictures.append({"bytes": file.getvalue(), "path": f"{color}.png"})
    ask, say = [{"role": "user", "content": "?"}], [{"role": "assistant", "content": "!"}]
    table = {"image": pictures, "prompt": [ask] * 2, "completion": [say] * 2, "id": ["a", "b"]}
    rows = datasets.Dataset.from_dict(table | columns)
    rows = rows.cast_column("image", datasets.Image(decode=False))
    folder.mkdir()
    rows.cast_column("image", datasets.Image()).to_parquet(folder / "train.parquet")
    return pictures


@pytest.mark.parametrize("command", ["train", "train with a worker", "trl", "llamafactory"])
def test_a_picture_that_cannot_be_decoded_is_named(command, short, tiny_vlm, tmp_path, capsys):
    pictures = write_rows(tmp_path / "good")
    pictures[1]["bytes"] = pictures[1]["bytes"][:60]
    write_rows(tmp_path / "rows", image=pictures)
    own = tmp_path / "own.toml"
    base = short.read_text() if "train" in command else 'extends = "sou-train-driving"\n'
    own.write_text(base + "held_out = 0.0\n")
    if "train" in command:
        flags = ["--dataset", tmp_path / "rows", "--config", "default"]
        flags += ["--dataloader-num-workers", "1" if "worker" in command else "0"]
        assert run(own, tiny_vlm("llava"), tmp_path / "run", *flags) == 2
    else:
        flags = ["--to", command, "--recipe", str(own)]
        assert main(["export", str(tmp_path / "rows"), str(tmp_path / "run"), *flags]) == 2
        assert not (tmp_path / "run").exists()
    said = capsys.readouterr().err
    assert "row b: the picture green.png cannot be decoded" in said
    assert "BytesIO" not in said


def test_what_is_held_out_is_checked_as_well(short, tiny_vlm, tmp_path, capsys):
    for marked in ("a", "b"):
        ask = [
            [{"role": "user", "content": "<image>?" if name == marked else "?"}] for name in "ab"
        ]
        write_rows(tmp_path / marked, prompt=ask)
        own = tmp_path / "own.toml"
        own.write_text(short.read_text() + "held_out = 0.5\n")
        flags = ["--dataset", tmp_path / marked, "--config", "default"]
        assert run(own, tiny_vlm("llava"), tmp_path / "run", *flags) == 2
        assert f"row {marked}: the column prompt has '<image>'" in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


def test_out_of_memory_names_the_setting(short, tiny_vlm, shapes, tmp_path, capsys, monkeypatch):
    def full(self, *args, **kwargs):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(NumericSFTTrainer, "compute_loss", full)
    assert run(short, tiny_vlm("llava"), tmp_path / "run") == 2
    assert "per_device_batch = 1" in capsys.readouterr().err


def test_a_checkpoint_is_judged_as_score_does(shapes, built_plants, installed_metrics):
    import evaluate

    for rows, metric, key in (
        (training_rows(load_recipe(RECIPE), system_role=True).held_out, "sama", "sama"),
        (built_plants, "matched_rmse", "count_rmse"),
    ):
        targets = rows["target"][:]
        replies = [*targets[1:], "nothing"]
        wanted = evaluate.load(metric).compute(predictions=replies, references=targets)[key]
        assert score(rows, replies)[key] == pytest.approx(wanted)
        assert measure_of(metric, rows).name == key
        with pytest.raises(TrainError, match=f"expected one of {metric}, {key}"):
            measure_of("option_match", rows)


@pytest.fixture
def built_plants():
    """Rows as plant-leaves has them, pictures aside."""
    return datasets.Dataset.from_dict(
        {
            "id": ["a", "b", "c"],
            "question": ["How many leaves?"] * 3,
            "leaf_count": [2, 1, 3],
            "target": [
                "There are 2 leaves, centred at coordinates (30, 12), (8, 40).",
                "There are 1 leaves, centred at coordinates (5, 5).",
                "There are 3 leaves, centred at coordinates (1, 2), (3, 4), (5, 6).",
            ],
        }
    )
