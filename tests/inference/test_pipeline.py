"""The pipeline back end on real transformers models of random weights."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from soubench.builders.errors import RunError
from soubench.cli import main
from soubench.inference.chat import Picture, Request, messages
from soubench.inference.questions import question_of
from soubench.inference.run_folder import read_run

torch = pytest.importorskip("torch")
pipeline = pytest.importorskip("soubench.inference.backends.pipeline")

NEW_TOKENS = 6


def run(out, model, *arguments, config="aerial", dataset="sou-vqa"):
    command = ["predict", dataset, config, f"--model={model}", f"--out={out}"]
    assert main([*command, f"--max-new-tokens={NEW_TOKENS}", *arguments]) == 0
    return read_run(out)


def told(replies):
    return {reply.key: reply.reply for reply in replies}


@pytest.fixture
def requests(tmp_path):
    """Make requests about pictures of given sizes, several to a request if asked."""

    def make(*sizes_per_request, system=""):
        made = []
        for i, sizes in enumerate(sizes_per_request):
            pictures = []
            for j, size in enumerate(sizes):
                path = tmp_path / f"{i}-{j}.png"
                values = np.random.default_rng([i, j]).integers(0, 255, (size[1], size[0], 3))
                Image.fromarray(values.astype(np.uint8)).save(path)
                pictures.append(Picture(str(path), None))
            row = {
                "id": str(i),
                "question": f"What is in picture {i}?",
                "target": "",
                "system_prompt": system,
            }
            made.append(Request(question_of(row), tuple(pictures)))
        return made

    return make


def by_hand(processor, row):
    """What a model is asked, without the pipeline: by its template, or as its makers document."""
    question = question_of(row)
    if processor.chat_template is None:
        text = "\n".join(filter(None, [question.system, question.text]))
        return processor(images=row["image"], text=f"<image>{text}", return_tensors="pt")
    return processor.apply_chat_template(
        messages(question, [{"type": "image", "image": row["image"]}]),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )


@pytest.mark.parametrize("kind", ["llava", "idefics3", "paligemma"])
def test_replies_are_those_of_generate_whatever_the_batch_size(built, tiny_vlm, tmp_path, kind):
    model = tiny_vlm(kind)
    description, one_by_one = run(tmp_path / "1", model, "--limit=9")
    _, together = run(tmp_path / "4", model, "--limit=9", "--batch-size=4")
    assert told(one_by_one) == told(together)
    assert len(set(told(one_by_one).values())) > 1

    # Without the pipeline: processor, generate, decode.
    from transformers import AutoModelForImageTextToText, AutoProcessor

    from soubench.inference.dataset_rows import open_rows

    processor = AutoProcessor.from_pretrained(model)
    net = AutoModelForImageTextToText.from_pretrained(model)
    rows = {row["id"]: row for row in open_rows("sou-vqa", "aerial", None).rows}
    for reply in one_by_one:
        inputs = by_hand(processor, rows[reply.id])
        tokens = net.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False)[0]
        new = tokens[inputs["input_ids"].shape[1] :]
        assert reply.reply == processor.decode(new, skip_special_tokens=True)
        assert (reply.input_tokens, reply.output_tokens) == (inputs["input_ids"].shape[1], len(new))
        ended = new[-1] == processor.tokenizer.eos_token_id
        assert reply.finish_reason == ("stop" if ended else "length")
    assert description["model"]["parameters"] == sum(p.numel() for p in net.parameters())
    assert description["model"]["dtype"] == "float32"
    assert description["decoding"]["do_sample"] is False
    assert description["libraries"]["torch"]


def test_each_picture_is_noted_as_large_as_the_model_saw_it(built, tiny_vlm, tmp_path):
    # CLIP's processor cuts a picture to its middle: no size is that of the whole.
    _, middles = run(tmp_path / "llava", tiny_vlm("llava"), "--limit=4", "--batch-size=2")
    assert {reply.picture_wh for reply in middles} == {None}
    # With splitting off, Idefics3 stretches a picture to one square tile.
    _, tiles = run(tmp_path / "idefics3", tiny_vlm("idefics3"), "--limit=6", "--batch-size=2")
    assert {reply.picture_wh for reply in tiles} == {((56, 56),)}


def test_sizes_of_other_processors_are_read_off_what_they_make():
    def size(n, do_pad=False, **inputs):
        patch = SimpleNamespace(do_pad=do_pad)
        if "image_grid_thw" in inputs:
            patch.patch_size = 14
        return pipeline.fed_sizes(inputs, patch, n)

    grid = torch.tensor([[1, 20, 30], [1, 4, 6]])  # in patches of 14: Qwen-VL
    assert size(2, image_grid_thw=grid, pixel_values=torch.zeros(624, 9)) == ((420, 280), (84, 56))
    assert size(1, pixel_values=torch.zeros(1, 3, 336, 448)) == ((448, 336),)
    assert size(1, pixel_values=torch.zeros(1, 5, 3, 336, 336)) is None  # five tiles
    assert size(1, pixel_values=[1]) is None
    mask = torch.zeros(1, 2, 56, 56)
    mask[0, 0, :32, :], mask[0, 1, :, :21] = 1, 1  # what is not padding
    tiles = torch.zeros(1, 2, 3, 56, 56)
    assert size(2, True, pixel_values=tiles, pixel_attention_mask=mask) == ((56, 32), (21, 56))
    padded = torch.zeros(2, 3, 64, 48)
    assert size(2, True, pixel_values=padded) is None
    sizes = [[64, 32], [16, 48]]  # height and width: Pixtral
    assert size(2, True, pixel_values=padded, image_sizes=sizes) == ((32, 64), (48, 16))
    assert size(0) == ()


def test_a_processor_that_cuts_edges_off_has_no_size_of_the_whole_picture():
    from transformers import CLIPImageProcessorPil

    def size(picture, **settings):
        processor = CLIPImageProcessorPil(**settings)
        inputs = processor(images=[picture], return_tensors="pt")
        return pipeline.fed_sizes(inputs, processor, 1)

    wide, middle = Image.new("RGB", (100, 50)), {"height": 56, "width": 56}
    assert size(wide, size={"shortest_edge": 56}, crop_size=middle) is None
    assert size(wide, size={"height": 60, "width": 60}, crop_size=middle) is None
    assert size(wide, size=middle, crop_size=middle) == ((56, 56),)
    assert size(wide, size={"shortest_edge": 56}, do_center_crop=False) == ((112, 56),)


def test_qwens_processor_is_fed_as_told_and_takes_max_pixels(tmp_path):
    from transformers import Qwen2VLImageProcessorPil

    processor = Qwen2VLImageProcessorPil()
    assert pipeline.limit_pixels(processor, 100_000)
    picture = Image.new("RGB", (1000, 500))
    inputs = processor(images=[picture], return_tensors="pt")
    ((width, height),) = pipeline.fed_sizes(inputs, processor, 1)
    assert (width % 28, height % 28) == (0, 0)
    assert 80_000 < width * height <= 100_000
    from transformers import CLIPImageProcessorPil

    assert not pipeline.limit_pixels(CLIPImageProcessorPil(), 100_000)


def test_pictures_are_scaled_before_a_processor_without_a_limit(tiny_vlm, requests):
    backend = pipeline.PipelineBackend(str(tiny_vlm("llava")), max_pixels=5000, max_new_tokens=2)
    context = backend.facts.model["context"]
    assert (context["max_pixels"], context["pixels_limited_by"]) == (5000, "resizing")
    seen = []
    (request,) = requests([(200, 100)])
    for part in backend._chat(request)[-1]["content"]:
        if part["type"] == "image":
            seen.append(part["image"].size)
    assert seen == [(100, 50)]


@pytest.mark.parametrize("kind", ["llava", "idefics3"])
def test_several_pictures_and_none_go_in_one_batch(tiny_vlm, requests, kind):
    asked = requests([(80, 60), (40, 90)], [], [(30, 30)], [(64, 64), (64, 64)])
    model = str(tiny_vlm(kind))
    alone = pipeline.PipelineBackend(model, max_new_tokens=NEW_TOKENS)
    batched = pipeline.PipelineBackend(model, max_new_tokens=NEW_TOKENS, batch_size=4)
    expected = list(alone.replies(iter(asked)))
    replies = list(batched.replies(iter(asked)))
    assert [r.error for r in expected] == [None] * 4
    assert told(replies) == told(expected)
    sizes = {"llava": [None, (), None, None], "idefics3": [((56, 56),) * n for n in (2, 0, 1, 2)]}
    assert [r.picture_wh for r in replies] == sizes[kind]


def test_a_batch_that_does_not_fit_is_halved_and_stays_so(tiny_vlm, requests, monkeypatch):
    backend = pipeline.PipelineBackend(
        str(tiny_vlm("llava")), batch_size=8, max_new_tokens=NEW_TOKENS
    )
    asked = requests(*[[(40, 40)]] * 11)
    expected = told(backend.replies(iter(asked)))
    generate, tried = backend.pipe.model.generate, []

    def small_memory(**inputs):
        tried.append(len(inputs["input_ids"]))
        if tried[-1] > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return generate(**inputs)

    monkeypatch.setattr(backend.pipe.model, "generate", small_memory)
    replies = list(backend.replies(iter(asked)))
    assert told(replies) == expected
    assert [r.id for r in replies] == [str(i) for i in range(11)]
    assert tried == [8, 4, 2, 2, 2, 2, 2, 1]
    assert backend.batch_size == 2


def test_one_request_that_does_not_fit_is_an_error_that_may_pass(tiny_vlm, requests, monkeypatch):
    backend = pipeline.PipelineBackend(str(tiny_vlm("llava")), batch_size=2, max_new_tokens=2)

    def no_memory(**_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(backend.pipe.model, "generate", no_memory)
    replies = list(backend.replies(iter(requests([(40, 40)], [(40, 40)]))))
    assert [(r.error.kind, r.error.permanent) for r in replies] == [("out of memory", False)] * 2


@pytest.mark.parametrize(
    ("error", "permanent"),
    [
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("absolute aspect ratio must be smaller than 200"), True),
    ],
)
def test_a_row_that_fails_does_not_take_its_batch_along(
    tiny_vlm, requests, monkeypatch, error, permanent
):
    backend = pipeline.PipelineBackend(str(tiny_vlm("llava")), batch_size=3, max_new_tokens=2)
    chat = backend.pipe.preprocess

    def preprocess(inputs, **more):
        if "picture 1" in inputs.messages[-1]["content"][-1]["text"]:
            raise error
        return chat(inputs, **more)

    monkeypatch.setattr(backend.pipe, "preprocess", preprocess)
    replies = list(backend.replies(iter(requests(*[[(40, 40)]] * 3))))
    failures = {r.id: (r.error.kind, r.error.permanent) for r in replies if r.error}
    assert failures == {"1": (type(error).__name__, permanent)}


def test_a_damaged_picture_costs_its_own_row_only(tiny_vlm, requests):
    asked = requests([(40, 40)], [(40, 40)], [(40, 40)])
    broken = Picture("broken.png", b"\x89PNG\r\n\x1a\n nothing")
    asked[1] = Request(asked[1].question, (broken,))
    backend = pipeline.PipelineBackend(str(tiny_vlm("llava")), batch_size=3, max_new_tokens=2)
    replies = {r.id: r for r in backend.replies(iter(asked))}
    assert replies["1"].error.kind == "picture_unreadable"
    assert replies["0"].error is None
    assert replies["2"].error is None


def test_without_a_system_role_the_system_prompt_comes_before_the_text(tiny_vlm, requests):
    (request,) = requests([(40, 40)], system="Small is small.")
    with_role = pipeline.PipelineBackend(str(tiny_vlm("llava")), max_new_tokens=2)
    without = pipeline.PipelineBackend(str(tiny_vlm("llava", system_role=False)), max_new_tokens=2)
    assert [m["role"] for m in with_role._chat(request)] == ["system", "user"]
    (user,) = without._chat(request)
    assert user["content"][-1]["text"] == "Small is small.\nWhat is in picture 0?"
    assert [b.facts.model["context"]["system_role"] for b in (with_role, without)] == [True, False]
    assert [r.error for r in without.replies(iter([request]))] == [None]


def test_boxes_are_asked_in_the_pixels_that_the_model_sees(built, tiny_vlm, tmp_path):
    from soubench.inference.predict import PredictOptions, plan, predict

    asked = []
    backend = pipeline.PipelineBackend(str(tiny_vlm("idefics3")), max_new_tokens=1)
    inner = backend.replies
    backend.replies = lambda requests: inner(asked.append(r) or r for r in requests)
    options = PredictOptions("sou-vqa", "aerial-ol", tmp_path / "r", coords="model-pixel")
    predict(plan(options), backend)
    assert all("56 pixels wide and 56 pixels high" in r.question.system for r in asked)
    numbers = [float(v) for r in asked for o in r.question.options for v in o[1:-1].split(",")]
    assert 0 <= min(numbers) <= max(numbers) <= 56


def test_model_pixels_are_refused_where_the_processor_cuts_pictures(
    built, tiny_vlm, tmp_path, capsys
):
    # Also where the first rows have no coordinates.
    command = ["predict", "sou-vqa", "aerial", f"--model={tiny_vlm('llava')}"]
    assert main([*command, "--coords=model-pixel", f"--out={tmp_path / 'r'}"]) == 2
    assert not (tmp_path / "r").exists()
    error = capsys.readouterr().err.splitlines()[-1]
    assert "its processor cuts or pads it" in error
    assert "Use --coords norm1000, unit or pixel." in error


def test_another_model_in_the_same_folder_is_another_model(tiny_vlm, tmp_path):
    from tests.inference.tiny_vlm import save_tiny_vlm

    first = pipeline.folder_digest(tiny_vlm("llava"))
    assert first == pipeline.folder_digest(save_tiny_vlm(tmp_path / "again", "llava"))
    assert first != pipeline.folder_digest(save_tiny_vlm(tmp_path / "other", "llava", seed=1))


def test_what_is_no_model_is_said_in_one_line(built, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for model in (str(tmp_path / "empty"), "nobody/nothing"):
        command = ["predict", "sou-vqa", "aerial", f"--model={model}", f"--out={tmp_path / 'r'}"]
        assert main(command) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith(f"soubench: error: {model}: expected a model for the pipeline")


@pytest.mark.parametrize("where", ["nowhere", "cuda:7", "disk"])
def test_a_device_map_that_makes_no_sense_is_said_in_one_line(
    built, tiny_vlm, tmp_path, capsys, where
):
    if where == "cuda:7" and torch.cuda.device_count() > 7:
        where = "cuda:999"
    command = ["predict", "sou-vqa", "aerial", f"--model={tiny_vlm('llava')}"]
    assert main([*command, f"--out={tmp_path / 'r'}", f"--device-map={where}"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("soubench: error: ")
    assert error.endswith(f"Check --device-map {where}.")
    assert "Traceback" not in error
    assert "File" not in error
    assert not (tmp_path / "r").exists()


def test_a_processor_without_a_template_is_refused(tiny_vlm, tmp_path):
    import shutil

    folder = shutil.copytree(tiny_vlm("llava"), tmp_path / "bare")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(RunError, match="no chat template"):
        pipeline.PipelineBackend(str(folder))
