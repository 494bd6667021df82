"""What can answer: a transformers pipeline, a server, a baseline."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from soubench.inference.chat import Picture, Request
from soubench.inference.questions import Question
from soubench.inference.run_folder import Reply, ReplyError, Size

MESSAGE_CHARACTERS = 500
OUT_OF_MEMORY = "out of memory"
"""Kind of the error of a request that does not fit into memory even alone."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What ``run.json`` says of a back end.

    Attributes:
        model: ``name``, ``backend``, ``revision``, ``parameters``, ``dtype``, ``context``.
        decoding: How replies are made.
        machine: What may differ between shards of one run: the device, the batch size.
        libraries: Distributions whose versions matter.
    """

    model: Mapping[str, Any]
    decoding: Mapping[str, Any]
    machine: Mapping[str, Any] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()


class Backend(Protocol):
    """Answers requests."""

    @property
    def facts(self) -> Facts:
        """Return what pins the model and its settings."""

    def fed_size(self, picture: Picture) -> Size | None:
        """Return width and height in px that the whole picture is fed at; None if unknowable."""

    def replies(self, requests: Iterator[Request]) -> Generator[Reply]:
        """Answer every request, in any order.

        Requests are taken when they can be worked on. A reply counts as delivered when the next
        one is asked for.

        Raises:
            RunError: Nothing can be answered: wrong key, no such model.
        """


def failed(question: Question, kind: str, message: str, *, permanent: bool) -> Reply:
    """Return a reply that says why there is none."""
    error = ReplyError(kind, " ".join(message.split())[:MESSAGE_CHARACTERS], permanent)
    return Reply(question.id, question.rotation, error=error)
