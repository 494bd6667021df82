"""A vision-language model on this machine: the transformers pipeline ``image-text-to-text``.

The script in short: load the model, hand it batches of chats, note what it said, how large each
picture was when the model saw it, and how many tokens went in and out. A batch that does not fit
into memory is cut in half, and all later ones with it.
"""

import re
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import transformers

from soubench.builders.errors import PictureError, RunError, brief
from soubench.inference.backends import OUT_OF_MEMORY, Facts, failed
from soubench.inference.chat import Picture, Request, fit_pixels, messages
from soubench.inference.chat_templates import ensure_chat_template, has_system_role
from soubench.inference.run_folder import Reply, Size

DECODING_THREADS = 4
SAMPLED_BYTES = 1 << 20

Chat = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Fed:
    """What the processor made of one request: sizes of the pictures in px, and tokens."""

    sizes_wh: tuple[Size, ...] | None
    tokens: int


# Few of the types that transformers declares are those it takes and returns.
hf: Any = transformers


class RecordingPipeline(hf.ImageTextToTextPipeline):  # type: ignore[misc]  # see above
    """The pipeline of transformers, which also says what went in and how a reply ended."""

    fed: list[Fed]

    def preprocess(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401, D102
        made = super().preprocess(inputs, *args, **kwargs)
        n = sum(p["type"] == "image" for m in inputs.messages for p in m["content"])
        tokens = int(made["input_ids"].shape[-1])
        self.fed.append(Fed(fed_sizes(made, self.image_processor, n), tokens))
        return made

    def postprocess(self, outputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401, D102
        new = outputs["generated_sequence"].reshape(-1)
        if not self.model.config.is_encoder_decoder:
            new = new[outputs["input_ids"].shape[-1] :]
        ends = self.model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        stop = next((i for i, token in enumerate(new.tolist()) if token in ends), None)
        (record,) = super().postprocess(outputs, *args, **kwargs)
        record["output_tokens"] = len(new) if stop is None else stop + 1
        record["finish_reason"] = "length" if stop is None else "stop"
        return [record]


def fed_sizes(inputs: Mapping[str, Any], image_processor: Any, n: int) -> tuple[Size, ...] | None:  # noqa: ANN401
    """Return width and height in px of each of ``n`` pictures as a model is fed them.

    Args:
        inputs: What the processor made of one chat.
        image_processor: The processor's part for pictures.
        n: Number of pictures in the chat.

    Returns:
        None where a picture is not fed whole, stretched to one size: where it is cut to the middle
        or into tiles, or padded and nothing says how far.
    """
    if n == 0:
        return ()
    if cuts_edges(image_processor):
        return None
    grid, patch = inputs.get("image_grid_thw"), getattr(image_processor, "patch_size", None)
    if grid is not None and isinstance(patch, int) and len(grid) == n:
        return tuple((int(w) * patch, int(h) * patch) for _, h, w in grid)
    pixels, mask = inputs.get("pixel_values"), inputs.get("pixel_attention_mask")
    if not isinstance(pixels, torch.Tensor):
        return None
    if pixels.ndim == 5 and pixels.shape[0] == 1:
        pixels = pixels[0]
        mask = mask[0] if isinstance(mask, torch.Tensor) and mask.ndim == 4 else None
    if pixels.ndim != 4 or len(pixels) != n:
        return None
    if isinstance(mask, torch.Tensor) and mask.ndim == 3:
        return tuple((int(m.any(0).sum()), int(m.any(1).sum())) for m in mask)
    if getattr(image_processor, "do_pad", False):
        # Pixtral's kind says how large pictures are without the padding.
        sizes = inputs.get("image_sizes")
        return None if sizes is None else tuple((int(w), int(h)) for h, w in sizes)
    return ((int(pixels.shape[3]), int(pixels.shape[2])),) * n


def cuts_edges(image_processor: Any) -> bool:  # noqa: ANN401  # transformers: no types
    """Say whether an image processor cuts pictures to their middle, as CLIP's does."""
    if not getattr(image_processor, "do_center_crop", False):
        return False
    size, middle = dict(image_processor.size or {}), dict(image_processor.crop_size or {})
    # What was stretched to just the size of the middle loses nothing.
    is_whole = image_processor.do_resize and all(
        size.get(side) and size.get(side) == middle.get(side) for side in ("height", "width")
    )
    return not is_whole


class PipelineBackend:
    """Answers with a model that transformers loads.

    Args:
        model: Hub id or folder.
        revision: Commit, tag or branch of the model.
        dtype: Name of a torch dtype, or ``auto`` for that of the weights.
        device_map: As in transformers; by default ``auto`` on a machine with a GPU, else the CPU.
        batch_size: Requests that are answered together; halved where they do not fit.
        max_new_tokens: Longest reply, in tokens.
        max_pixels: Larger pictures are scaled down, in px.
        system_role: Whether to use the chat template's system role; None to find out.

    Raises:
        RunError: The model cannot be loaded, or is none that takes pictures and chats.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        device_map: str | None = None,
        batch_size: int = 1,
        max_new_tokens: int = 1024,
        max_pixels: int | None = None,
        system_role: bool | None = None,
    ) -> None:
        if dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
            raise RunError(f"--dtype: expected auto, bfloat16, float16 or float32, got {dtype!r}.")
        if device_map is None and torch.cuda.is_available():
            device_map = "auto"
        placed = {"device": "cpu"} if device_map is None else {"device_map": device_map}
        hf.utils.logging.set_verbosity_error()
        hf.utils.logging.disable_progress_bar()
        try:
            self.pipe = hf.pipeline(
                "image-text-to-text",
                model=model,
                revision=revision,
                dtype=dtype,
                pipeline_class=RecordingPipeline,
                **placed,
            )
        except (
            OSError, ValueError, KeyError, ImportError, AttributeError, RuntimeError, AssertionError
        ) as error:  # fmt: skip
            # What transformers raises for a missing, gated or unknown model is not one class; torch
            # has others for a device that is not there or too small.
            hint = f" Check --device-map {device_map}." if device_map is not None else ""
            raise RunError(
                f"{model}: expected a model for the pipeline image-text-to-text. "
                f"{said(error).rstrip('.')}.{hint}"
            ) from error
        self.pipe.fed = []
        if not ensure_chat_template(self.pipe.processor):
            raise RunError(
                f"{model}: the processor has no chat template, so it is not known how to ask it. "
                "Serve it with a template and use --backend openai."
            )
        # Replies start where the prompt ends, so shorter prompts are padded in front.
        self.pipe.tokenizer.padding_side = "left"
        if self.pipe.tokenizer.pad_token_id is None:
            self.pipe.tokenizer.pad_token = self.pipe.tokenizer.eos_token
        self.batch_size = batch_size
        self.max_new_tokens = max_new_tokens
        self.resize_to = max_pixels
        if max_pixels is not None and limit_pixels(self.pipe.image_processor, max_pixels):
            self.resize_to = None
        self.system_role = has_system_role(self.pipe.processor)
        if system_role is not None:
            self.system_role = system_role
        self.name, self.revision, self.max_pixels = model, revision, max_pixels

    @property
    def facts(self) -> Facts:
        """Return what pins the model and its settings."""
        model = self.pipe.model
        folder = Path(self.name)
        commit = getattr(model.config, "_commit_hash", None)
        settings = model.generation_config.to_diff_dict()
        kept = ("num_beams", "repetition_penalty", "no_repeat_ngram_size", "suppress_tokens")
        return Facts(
            model={
                "name": self.name,
                "backend": "pipeline",
                "revision": folder_digest(folder) if folder.is_dir() else commit or self.revision,
                "parameters": sum(p.numel() for p in model.parameters()),
                "dtype": str(model.dtype).removeprefix("torch."),
                "context": {
                    "class": type(model).__name__,
                    "processor": type(self.pipe.processor).__name__,
                    "image_processor": type(self.pipe.image_processor).__name__,
                    "system_role": self.system_role,
                    "max_pixels": self.max_pixels,
                    "pixels_limited_by": None
                    if self.max_pixels is None
                    else ("processor" if self.resize_to is None else "resizing"),
                },
            },
            decoding={
                "max_new_tokens": self.max_new_tokens,
                "do_sample": False,
                **{key: settings[key] for key in kept if key in settings},
            },
            machine={"device": _device(model), "batch_size": self.batch_size},
            libraries=("torch", "torchvision", "transformers", "accelerate", "pillow"),
        )

    def fed_size(self, picture: Picture) -> Size | None:
        """Return width and height in px that the whole picture is fed at; None if unknowable."""
        image = fit_pixels(picture.open(), self.resize_to)
        inputs = self.pipe.image_processor(images=[image], return_tensors="pt")
        sizes = fed_sizes(inputs, self.pipe.image_processor, 1)
        return sizes[0] if sizes else None

    def replies(self, requests: Iterator[Request]) -> Generator[Reply]:
        """Answer every request in order; the next batch is decoded while one is answered."""
        with ThreadPoolExecutor(DECODING_THREADS) as pool:
            batch = [(r, pool.submit(self._chat, r)) for r in islice(requests, self.batch_size)]
            while batch:
                following = [
                    (r, pool.submit(self._chat, r)) for r in islice(requests, self.batch_size)
                ]
                chats: list[tuple[Request, Chat]] = []
                for request, chat in batch:
                    try:
                        chats.append((request, chat.result()))
                    except PictureError as error:
                        yield failed(request.question, error.reason, str(error), permanent=False)
                yield from self._answer(chats)
                batch = following

    def _chat(self, request: Request) -> Chat:
        images = [fit_pixels(picture.open(), self.resize_to) for picture in request.pictures]
        parts = [{"type": "image", "image": image} for image in images]
        return messages(request.question, parts, system_role=self.system_role)

    def _answer(self, batch: list[tuple[Request, Chat]]) -> Iterator[Reply]:
        """Answer a batch, in parts where it does not fit into memory or cannot be put together."""
        size = max(1, min(self.batch_size, len(batch)))
        while batch:
            part, rest = batch[:size], batch[size:]
            started = time.perf_counter()
            self.pipe.fed.clear()
            try:
                answers = self.pipe(
                    text=[chat for _, chat in part],
                    batch_size=len(part),
                    return_full_text=False,
                    max_new_tokens=self.max_new_tokens,
                    generate_kwargs={"do_sample": False},
                )
            except (RuntimeError, ValueError, TypeError) as error:
                out_of_memory = is_out_of_memory(error)
                if out_of_memory and torch.cuda.is_available():
                    torch.cuda.empty_cache()
                if len(part) > 1:
                    # Pictures of unlike numbers or tilings do not stack: one by one, this once.
                    size = len(part) // 2 if out_of_memory else 1
                    if out_of_memory:
                        self.batch_size = size
                    continue
                # A device that has failed fails for every row after it; those are asked again.
                lasting = isinstance(error, ValueError | TypeError)
                kind = OUT_OF_MEMORY if out_of_memory else type(error).__name__
                yield failed(
                    part[0][0].question, kind, str(error), permanent=lasting and not out_of_memory
                )
            else:
                seconds = (time.perf_counter() - started) / len(part)
                for (request, _), answer, fed in zip(part, answers, self.pipe.fed, strict=True):
                    yield _reply(request, answer, fed, seconds)
            batch = rest


def _reply(request: Request, answer: list[dict[str, Any]], fed: Fed, seconds: float) -> Reply:
    return Reply(
        id=request.question.id,
        rotation=request.question.rotation,
        reply=answer[0]["generated_text"],
        picture_wh=fed.sizes_wh,
        input_tokens=fed.tokens,
        output_tokens=answer[0]["output_tokens"],
        finish_reason=answer[0]["finish_reason"],
        seconds=round(seconds, 6),
    )


def said(error: Exception) -> str:
    """Return what transformers said on one line; of tracebacks in it, what they end with."""
    # Where no class could load a model, the message holds a traceback for each.
    ends = re.findall(r"^[\w.]+(?:Error|Exception): .*", str(error), re.MULTILINE)
    if "Traceback (most recent call last)" in str(error) and ends:
        return "; ".join(dict.fromkeys(ends))[:400]
    return brief(error, 400)


def is_out_of_memory(error: Exception) -> bool:
    """Say whether a device's memory was too small; not every back end of torch has the class."""
    said = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or any(
        words in said for words in ("out of memory", "can't allocate memory", "not enough memory")
    )


def limit_pixels(image_processor: Any, max_pixels: int) -> bool:  # noqa: ANN401  # as above
    """Set the most pixels that an image processor makes of a picture; False if it has no limit."""
    known: dict[str, Any] = getattr(image_processor.valid_kwargs, "__annotations__", {})
    size = dict(image_processor.size or {})
    key = next((k for k in ("max_pixels", "longest_edge") if size.get(k)), None)
    if "max_pixels" not in known or key is None:
        return False
    image_processor.size = type(image_processor.size)(**(size | {key: max_pixels}))
    return True


def folder_digest(folder: Path) -> str:
    """Hash a model's folder: small files whole, of large ones the size, the head and the tail."""
    digest = sha256()
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(SAMPLED_BYTES))
            file.seek(max(file.tell(), size - SAMPLED_BYTES))
            digest.update(file.read())
    return f"folder:{digest.hexdigest()[:16]}"


def _device(model: Any) -> str:  # noqa: ANN401  # transformers: no types
    device = model.device
    if device.type != "cuda":
        return str(device.type)
    return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(device)}"
