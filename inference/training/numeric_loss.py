"""Scaling the loss of numeric tokens (001, Sec. 3.6), as a trainer."""

import re
from importlib.metadata import version
from math import isfinite
from typing import Any

import torch
from trl import SFTTrainer

from soubench.builders.errors import TrainError

_DIGITS = re.compile(r"\s*[0-9]+")


def numeric_token_ids(tokenizer: Any) -> list[int]:  # noqa: ANN401  # transformers: no types
    """Return the ids of the tokens that are digits only, a space in front aside.

    They are found in the vocabulary, not in texts: Qwen's has the ten digits, LLaMA-3's all numbers
    of up to three digits, a SentencePiece vocabulary that splits digits ten. Signs, points and
    special or added tokens (location tokens, say) are none.

    Args:
        tokenizer: A tokenizer of transformers.
    """
    skipped = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    found = []
    for i, token in enumerate(tokens):
        if i in skipped or token is None or re.fullmatch(r"<0x[0-9A-Fa-f]{2}>", token):
            continue
        text = tokenizer.convert_tokens_to_string([token]).replace("\u2581", " ")
        if _DIGITS.fullmatch(text):
            found.append(i)
    return found


class NumericSFTTrainer(SFTTrainer):  # type: ignore[misc]  # trl ships no types
    """TRL's trainer with a factor on the loss of numeric tokens.

    The sum of the scaled losses is divided by the number of labelled tokens, as the plain loss is,
    so that batches may be split at will. Evaluation is not scaled. With the factor 1 the loss is
    the plain trainer's, bit by bit. ``plain_loss`` and ``numeric_loss`` (means over labelled and
    over numeric tokens, not scaled) are logged whatever the factor, so that runs can be compared.

    Args:
        numeric_scale: The factor.

    Raises:
        TrainError: The loss is not the negative log-likelihood, no token is numeric, or, while it
            trains, the loss is not finite any more.
    """

    def __init__(self, *args: Any, numeric_scale: float = 1.0, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        if self.args.loss_type != "nll":
            raise TrainError(f"numeric_scale goes with the loss nll, not {self.args.loss_type!r}.")
        tokenizer: Any = getattr(self.processing_class, "tokenizer", self.processing_class)
        ids = numeric_token_ids(tokenizer)
        if not ids and numeric_scale != 1.0:
            raise TrainError(
                "numeric_scale: the vocabulary has no token that is a number. Set it to 1."
            )
        size = max(len(tokenizer), self.model.config.get_text_config().vocab_size)
        self.numeric_scale = numeric_scale
        self._is_numeric = torch.zeros(size, dtype=torch.bool)
        self._is_numeric[ids] = True
        self._noted: dict[str, tuple[float, int]] = {}

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, D102
        # A run's own card is written at its end.
        pass

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, D102
        means = {name: total / n for name, (total, n) in self._noted.items() if n}
        self._noted.clear()
        super().log(logs | means, *args, **kwargs)

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401, D102
        if not self.model.training:
            return super().compute_loss(model, inputs, *args, **kwargs)
        targets = inputs["labels"][:, 1:]
        labelled = targets != -100
        numeric = self._is_numeric.to(targets.device)[targets.clamp(min=0)] & labelled

        def scaled(**given: Any) -> Any:  # noqa: ANN401  # what the model takes and gives
            outputs = model(**given)
            # Log-likelihoods per token, 0 where there is no label.
            log_probs = getattr(outputs, "log_probs", None)
            if log_probs is None:
                raise TrainError(
                    f"trl {version('trl')} makes its loss in another way than numeric_scale and "
                    "the losses that are logged need. Install trl 1.16."
                )
            self._note("plain_loss", log_probs.detach(), labelled)
            self._note("numeric_loss", log_probs.detach(), numeric)
            if self.numeric_scale != 1.0:
                factors = torch.where(numeric, self.numeric_scale, 1.0)
                outputs.log_probs = log_probs * factors.to(log_probs.dtype)
            return outputs

        return super().compute_loss(scaled, inputs, *args, **kwargs)

    def _note(self, name: str, log_probs: torch.Tensor, wanted: torch.Tensor) -> None:
        """Add up what is logged next, over all processes."""
        sums = torch.stack([-(log_probs * wanted).sum().double(), wanted.sum().double()])
        total, n = self.accelerator.reduce(sums, reduction="sum").tolist()
        if not isfinite(total):
            raise TrainError(
                f"step {self.state.global_step + 1}: the loss is {total}, so the training has "
                "diverged. Lower learning_rate or numeric_scale, or set precision to float32."
            )
        before = self._noted.get(name, (0.0, 0))
        self._noted[name] = before[0] + total, before[1] + int(n)
