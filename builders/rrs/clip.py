"""Cosines of pictures and options by a CLIP model of ``transformers``, stored for ever after.

What a build needs of CLIP is small: for each picture the cosines with the options of its pools.
They are kept with the build, so that building again, and verifying, need no model.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from soubench.builders.errors import BuildError
from soubench.builders.rrs.distractors import SIMILARITY_DIGITS

if TYPE_CHECKING:
    import torch

DEFAULT_MODEL = "openai/clip-vit-base-patch32"
BATCH_SIZE = 32
SIMILARITIES_FILE = "similarities.json"


@dataclass(slots=True)
class Similarities:
    """Rounded cosines.

    Attributes:
        model: The model's name, without the folder that it lay in.
        by_picture: SHA-256 of a picture file -> option -> cosine.
    """

    model: str
    by_picture: dict[str, dict[str, float]] = field(default_factory=dict)

    def of(self, picture: str) -> Callable[[str], float]:
        """Return option -> cosine with one picture.

        Raises:
            BuildError: Later, when an option is asked for that was never compared.
        """
        found = self.by_picture.get(picture, {})

        def similarity(option: str) -> float:
            try:
                return found[option]
            except KeyError:
                raise BuildError(
                    f"the stored similarities know nothing of the option {option!r} and the "
                    f"picture {picture[:16]}..: the records have changed since they were made. "
                    "Build with --clip MODEL instead of --similarities."
                ) from None

        return similarity

    def digest(self) -> str:
        """Return the SHA-256 of all cosines."""
        return sha256(json.dumps(self.by_picture, sort_keys=True).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write them as JSON."""
        data = {"model": self.model, "similarities": dict(sorted(self.by_picture.items()))}
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Similarities":
        """Read what `save` wrote.

        Raises:
            BuildError: It is not such a file.
        """
        file = path / SIMILARITIES_FILE if path.is_dir() else path
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            return cls(
                str(data["model"]),
                {
                    picture: {option: float(cosine) for option, cosine in found.items()}
                    for picture, found in data["similarities"].items()
                },
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BuildError(
                f"{file}: expected the {SIMILARITIES_FILE} of an earlier build, but it cannot be "
                f"read ({error!r:.200})."
            ) from error


class Clip:
    """A CLIP model that embeds each picture and each text once."""

    def __init__(self, name: str, *, batch_size: int = BATCH_SIZE) -> None:
        """Load a model.

        Args:
            name: Name on the Hub, or a local folder.
            batch_size: Pictures or texts at a time; changes no ranking.

        Raises:
            BuildError: The libraries or the model are not there.
        """
        try:
            import torch
            from transformers import AutoModel, AutoProcessor
        except ImportError as error:
            raise BuildError(
                f"filtering distractors needs torch and transformers ({error.name} is missing): "
                'pip install "soubench[models]", or build with --distractors random.'
            ) from error
        try:
            self._model: Any = AutoModel.from_pretrained(name).eval()
            load: Any = AutoProcessor.from_pretrained  # without types
            self._processor: Any = load(name)
            # Every model of the CLIP family has these two.
            self._embed_images, self._embed_texts = (
                self._model.get_image_features,
                self._model.get_text_features,
            )
        except (OSError, ValueError, KeyError, AttributeError, ImportError) as error:
            first = str(error).strip().partition("\n")[0]
            raise BuildError(
                f"filtering distractors needs a CLIP model, and {name!r} cannot be loaded as one "
                f"({first:.300}). Give --clip the name of a model on the Hub or a local folder, "
                "--similarities FILE of an earlier build, or build with --distractors random."
            ) from error
        self.name = Path(name).name if Path(name).is_dir() else name
        self._torch = torch
        self._batch_size = batch_size
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model.to(self._device)
        self._texts: dict[str, torch.Tensor] = {}

    def similarities(
        self,
        pictures: Sequence[str],
        load: Callable[[str], Image.Image],
        options: Mapping[str, Sequence[str]],
    ) -> Iterator[tuple[str, dict[str, float]]]:
        """Compare pictures with options.

        Args:
            pictures: Keys of the pictures.
            load: Returns the picture of a key, 8-bit RGB; called once for each.
            options: Key of a picture -> what it is compared with.

        Yields:
            Key, and option -> rounded cosine, in the order of ``pictures``.
        """
        torch = self._torch
        self._add_texts(sorted({o for found in options.values() for o in found}))
        for start in range(0, len(pictures), self._batch_size):
            keys = pictures[start : start + self._batch_size]
            batch = self._processor(images=[load(key) for key in keys], return_tensors="pt")
            with torch.inference_mode():
                found = self._embed_images(pixel_values=batch["pixel_values"].to(self._device))
            for key, image in zip(keys, self._unit(found), strict=True):
                names = list(options[key])
                cosines = torch.stack([self._texts[name] for name in names]) @ image
                rounded = [round(c, SIMILARITY_DIGITS) for c in cosines.tolist()]
                yield key, dict(zip(names, rounded, strict=True))

    def _add_texts(self, texts: Sequence[str]) -> None:
        new = [text for text in texts if text not in self._texts]
        for start in range(0, len(new), self._batch_size):
            some = new[start : start + self._batch_size]
            batch = self._processor(
                text=list(some), return_tensors="pt", padding=True, truncation=True
            )
            with self._torch.inference_mode():
                found = self._embed_texts(**batch.to(self._device))
            self._texts |= dict(zip(some, self._unit(found), strict=True))

    def _unit(self, found: Any) -> "torch.Tensor":  # noqa: ANN401 - a tensor, or an output around it
        """Return embeddings of length 1, in double precision on the CPU."""
        vectors = getattr(found, "pooler_output", found)
        return self._torch.nn.functional.normalize(vectors.double(), dim=-1).cpu()
