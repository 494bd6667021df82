"""Training on a tiny PaliGemma: its prompt sees itself, its reply only what comes before."""

import copy

import datasets
import PIL.Image
import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

from soubench.cli import main
from soubench.inference.chat_templates import ensure_chat_template
from soubench.inference.dataset_rows import open_rows
from soubench.inference.run_folder import read_run
from soubench.inference.training.prefix_collator import PrefixCollator

RECIPE = "shapes-paligemma-tuple"


@pytest.fixture(scope="module")
def folder(tiny_vlm):
    return tiny_vlm("paligemma")


@pytest.fixture(scope="module")
def processor(folder):
    processor = AutoProcessor.from_pretrained(folder)
    assert processor.chat_template is None
    assert ensure_chat_template(processor)
    return processor


@pytest.fixture(scope="module")
def model(folder):
    return AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()


def row(question, reply, color="red"):
    return {
        "image": PIL.Image.new("RGB", (80, 60), color),
        "prompt": [{"role": "user", "content": question}],
        "completion": [{"role": "assistant", "content": reply}],
    }


def logits(model, inputs):
    with torch.no_grad():
        return model(**{k: v for k, v in inputs.items() if k != "labels"}).logits


def test_the_labels_are_the_reply_and_its_end(processor):
    question, reply = "Where is it?", "circle, 12 7"
    inputs = PrefixCollator(processor)([row(question, reply), row("Where?", "nowhere at all")])
    labelled = inputs["labels"] != -100
    assert (inputs["labels"][labelled] == inputs["input_ids"][labelled]).all()
    told = [processor.decode(ids[ids != -100]) for ids in inputs["labels"]]
    assert told == [f"{reply}<eos>", "nowhere at all<eos>"]
    asked = processor.decode(inputs["input_ids"][0][: labelled[0].nonzero()[0]])
    assert asked == "<image>" * 16 + f"<bos>{question}\n"


def test_a_template_of_the_models_own_asks_as_predict_does(processor):
    own = copy.deepcopy(processor)
    own.chat_template = (
        "<image>{% for turn in messages %}{{ turn['role'] }}: {{ turn['content'][1]['text'] }} "
        "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
    )
    inputs = PrefixCollator(own)([row("Where?", "here")])
    asked = own.apply_chat_template(
        [
            {
                "role": "user",
                "content": [
                    {"type": "image", "image": row("", "")["image"]},
                    {"type": "text", "text": "Where?"},
                ],
            }
        ],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )["input_ids"]
    assert torch.equal(inputs["input_ids"][:, : asked.shape[1]], asked)
    assert own.decode(asked[0]).endswith("assistant: \n")


def test_a_reply_is_foretold_as_it_is_generated(processor, model):
    """What training sees at each place of a reply is what greedy decoding saw when it wrote it."""
    asked = processor(images=row("", "")["image"], text="<image>Where is it?", return_tensors="pt")
    made = model.generate(
        **asked, max_new_tokens=5, do_sample=False, output_logits=True, return_dict_in_generate=True
    )
    inputs = PrefixCollator(processor)([row("Where is it?", "x")])
    start = asked["input_ids"].shape[1]
    reply = made.sequences[:, start:]
    # The tokens that it wrote, whatever text they are.
    inputs["input_ids"] = made.sequences
    inputs["attention_mask"] = torch.ones_like(made.sequences)
    inputs["token_type_ids"] = torch.cat(
        [inputs["token_type_ids"][:, :start], torch.ones_like(reply)], dim=1
    )
    seen = logits(model, inputs)[0, start - 1 : -1]
    assert torch.allclose(seen, torch.cat(made.logits), atol=1e-4)
    assert len(set(reply[0].tolist())) > 1


def test_a_reply_does_not_see_itself_and_a_prompt_does(processor, model):
    collate = PrefixCollator(processor)
    one, other = collate([row("Where is it?", "abcde")]), collate([row("Where is it?", "abcdx")])
    a, b = logits(model, one)[0], logits(model, other)[0]
    # The last letter of the reply, and its end, are all that may differ.
    assert torch.equal(a[:-2], b[:-2])
    assert not torch.equal(a[-2:], b[-2:])
    asked = collate([row("Where is is?", "abcde")])
    assert not torch.equal(logits(model, asked)[0][:16], a[:16])


def test_padding_changes_nothing(processor, model):
    collate = PrefixCollator(processor)
    rows = [row("Where?", "here", "blue"), row("What is it, and where?", "a circle, 12 7")]
    both = collate([dict(one) for one in rows])
    for i, one in enumerate(rows):
        alone = collate([one])
        n = alone["input_ids"].shape[1]
        assert torch.allclose(logits(model, both)[i, :n], logits(model, alone)[0], atol=1e-4)
        assert (both["labels"][i, n:] == -100).all()


def test_the_command_trains_and_predict_asks_the_same(
    folder, processor, shapes, installed_metrics, tmp_path, capsys
):
    recipe = tmp_path / "short.toml"
    recipe.write_text(
        f'extends = "{RECIPE}"\neffective_batch = 4\nmax_steps = 20\nmax_new_tokens = 8\n'
        "learning_rate = 1e-2\nnumeric_scale = 2.0\n"
    )
    out = tmp_path / "run"
    flags = ["--model", folder, "--out", out, "--save-steps", 20, "--held-out-rows", 1]
    flags += ["--dataloader-num-workers", 1]
    assert main(["train", str(recipe), *map(str, flags)]) == 0
    assert "checkpoint" in capsys.readouterr().out
    log = datasets.load_dataset("json", data_files=str(out / "checkpoint-20/trainer_state.json"))
    losses = [entry["loss"] for entry in log["train"][0]["log_history"]]
    assert losses[-1] < losses[0] / 2
    # The template goes with the merged model, so that others can ask it.
    assert AutoProcessor.from_pretrained(out / "merged").chat_template
    command = ["predict", "primitive-shapes", "tuple", "--max-new-tokens=4"]
    assert main([*command, f"--model={out / 'merged'}", f"--out={tmp_path / 'replies'}"]) == 0
    asked = {r["id"]: r for r in open_rows("primitive-shapes", "tuple", "test").rows}
    _, replies = read_run(tmp_path / "replies")
    assert replies
    for reply in replies:
        trained = row(asked[reply.id]["question"], asked[reply.id]["target"])
        inputs = PrefixCollator(processor)([trained])
        assert reply.input_tokens == int((inputs["labels"] == -100).sum())


def test_several_turns_are_refused(folder, tmp_path, capsys):
    rows = {name: [value] for name, value in row("Where?", "here").items()}
    ask, say = rows["prompt"][0], rows["completion"][0]
    rows["prompt"] = [[*ask, *say, *ask]]
    path = tmp_path / "rows"
    path.mkdir()
    datasets.Dataset.from_dict(rows).to_parquet(path / "train.parquet")
    flags = ["--dataset", path, "--config", "default", "--model", folder, "--out", tmp_path / "run"]
    assert main(["train", RECIPE, *map(str, flags)]) == 2
    assert "row train-000000 has turns that the model's chat template" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
