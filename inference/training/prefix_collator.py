"""Batches for models that look at their whole prompt at once (PaliGemma)."""

from collections.abc import Mapping, Sequence
from typing import Any

from soubench.inference.training.rows import chat_of

PREFIX_ATTENTION = frozenset({"paligemma"})
"""Types of such models. They have to be told which tokens are the reply."""


class PrefixCollator:
    """Writes prompts and replies as the model's own processor does for fine-tuning.

    Every token of the prompt sees all of it, every token of the reply what comes before. Which is
    which stands in ``token_type_ids``: 0 for the prompt, 1 for the reply. TRL's collator has the
    processor write the reply as another prompt: of type 0, so that it sees itself and the loss
    falls without anything learnt.

    Args:
        processor: The model's, with a chat template.
    """

    def __init__(self, processor: Any) -> None:  # noqa: ANN401  # transformers: no types
        self._processor = processor

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401
        """Return the inputs of the model, padded behind, with ``labels`` of the replies only."""
        chats = [chat_of(row) for row in rows]
        pictures = [
            [part["image"] for turn in chat for part in turn["content"] if part["type"] == "image"]
            for chat in chats
        ]
        return self._processor(
            images=pictures,
            text=[
                self._processor.apply_chat_template(
                    chat, tokenize=False, add_generation_prompt=True
                )
                for chat in chats
            ],
            # It ends a reply with <eos> itself.
            suffix=[row["completion"][0]["content"] for row in rows],
            padding=True,
            padding_side="right",
            return_tensors="pt",
        )
