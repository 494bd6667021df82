"""Speed of the rrs builder, each as a ratio against a peer of the same run.

Run: ``python benchmarks/rrs.py [pictures|sdfs]``; both by default.

pictures   records of one picture each, on one core, from reading to writing corrupted copies;
           peer: bare Pillow that decodes the same pictures and encodes the same PNG files that the
           build wrote; processor time, the best of three rounds in turns
sdfs       what filtering by CLIP adds to a build with random distractors; peer: the model's image
           embeddings of the same pictures alone, one after the other batch
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parent.parent))

SITES = 240
SDFS_SITES = 96
ROUNDS = 3


def processor_seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def build_rows(records: Path, cache: Path, *, clip: Path | None = None) -> Path:
    """Build into a cache of its own; return where the pictures lie."""
    from soubench.builders.rrs.build import RrsOptions
    from soubench.dataset_scripts.rrs.rrs import build_rrs_dataset

    options = RrsOptions(distractors="random")
    if clip is not None:
        options = RrsOptions(clip=str(clip))
    return Path(build_rrs_dataset(records, {}, options, cache_dir=cache)["folder"]) / "pictures"


def pictures() -> None:
    # Imports `datasets`, which is not what is timed.
    import soubench.dataset_scripts.rrs.rrs  # noqa: F401
    from soubench.builders.demo_rrs import write_demo_records
    from soubench.builders.rrs.build import RrsOptions, build_rrs
    from soubench.builders.rrs.pictures import PNG_LEVEL

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = write_demo_records(folder / "sites", sites=SITES, pairs=0)
        own = sorted((folder / "sites" / "pictures").iterdir())
        options = RrsOptions(distractors="random")
        rounds: list[tuple[float, float, float]] = []
        for i in range(ROUNDS):
            out = folder / f"out{i}"

            def build(out: Path = out) -> None:
                build_rrs("1.0.0", records, {}, options, out)

            ours = processor_seconds(build)
            made = [Image.open(path).convert("RGB") for path in sorted(out.iterdir())]

            def bare(made: list[Image.Image] = made, out: Path = folder / "bare.png") -> None:
                for path in own:
                    with Image.open(path) as image:
                        image.load()
                for image in made:
                    image.save(out, compress_level=PNG_LEVEL)

            whole = processor_seconds(lambda i=i: build_rows(records, folder / f"cache{i}"))
            rounds.append((ours, processor_seconds(bare), whole))
        ours, peer, whole = (min(times) for times in zip(*rounds, strict=True))
    print(
        f"{SITES} records of one 640 x 480 picture each, two corrupted copies of each: build "
        f"{ours:.2f} s, bare Pillow {peer:.2f} s: {peer / ours:.2f} of its speed "
        f"({peer / whole:.2f} with all 28 configs prepared and the card written)"
    )


def sdfs() -> None:
    import torch
    from transformers import AutoModel, AutoProcessor, CLIPConfig, CLIPModel

    from soubench.builders.demo_rrs import write_demo_records
    from soubench.builders.rrs.clip import Clip
    from tests.builders.rrs.tiny_clip import write_tiny_clip

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = write_demo_records(folder / "sites", sites=SDFS_SITES, pairs=0)
        own = sorted((folder / "sites" / "pictures").iterdir())
        clip = write_tiny_clip(folder / "clip")
        # The tiny one's processor with a vision tower that is large enough to be timed.
        config = CLIPConfig.from_pretrained(clip)
        config.vision_config.image_size, config.vision_config.patch_size = 224, 32
        config.vision_config.hidden_size, config.vision_config.intermediate_size = 768, 3072
        config.vision_config.num_hidden_layers, config.vision_config.num_attention_heads = 12, 12
        CLIPModel(config).save_pretrained(clip)
        processor = AutoProcessor.from_pretrained(clip)
        processor.image_processor.size = {"shortest_edge": 224}
        processor.image_processor.crop_size = {"height": 224, "width": 224}
        processor.save_pretrained(clip)
        model = AutoModel.from_pretrained(clip).eval()
        seen = 0

        class Counting(Clip):
            def __init__(self, name: str) -> None:
                super().__init__(name)
                inner = self._embed_images

                def embed(pixel_values: torch.Tensor) -> object:
                    nonlocal seen
                    seen += len(pixel_values)
                    return inner(pixel_values=pixel_values)

                self._embed_images = embed

        import soubench.builders.rrs.build as module
        from soubench.builders.rrs.build import RrsOptions, build_rrs

        module.Clip = Counting  # type: ignore[misc]  # counts what the build embeds

        def build(options: RrsOptions, out: str) -> None:
            build_rrs("1.0.0", records, {}, options, folder / out)

        def embed() -> None:
            for start in range(0, len(own), 32):
                some = [Image.open(path).convert("RGB") for path in own[start : start + 32]]
                with torch.inference_mode():
                    model.get_image_features(**processor(images=some, return_tensors="pt"))

        embed()
        times = []
        for i in range(ROUNDS):
            seen = 0
            with_clip = processor_seconds(lambda i=i: build(RrsOptions(clip=str(clip)), f"a{i}"))
            without = processor_seconds(
                lambda i=i: build(RrsOptions(distractors="random"), f"b{i}")
            )
            times.append((with_clip, without, processor_seconds(embed)))
        with_clip, without, peer = (min(t) for t in zip(*times, strict=True))
    print(
        f"SDFS, {len(own)} pictures, vision tower of ViT-B/32 size: {seen} image embeddings; adds "
        f"{with_clip - without:.2f} s (loading the model included) to {without:.2f} s; the "
        f"embeddings alone take {peer:.2f} s: ratio {(with_clip - without) / peer:.2f}"
    )


PARTS = {"pictures": pictures, "sdfs": sdfs}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
