"""What a processor's chat template can do, and one for models that come without."""

from typing import Any

from jinja2 import TemplateError

SENTINEL = "soubench"
PALIGEMMA = (
    "{% if messages | length != 1 or messages[0]['role'] != 'user' %}"
    "{{ raise_exception('PaliGemma answers one question: it knows no system role and no turns') }}"
    "{% endif %}"
    "{% for part in messages[0]['content'] if part['type'] == 'image' %}<image>{% endfor %}"
    "{% for part in messages[0]['content'] if part['type'] == 'text' %}{{ part['text'] }}"
    "{% endfor %}"
)
"""Pictures, then the text; the processor puts ``<bos>`` between them and a new line at the end."""
TEMPLATES = {"PaliGemmaProcessor": PALIGEMMA}
"""Class of a processor -> its chat template, for models that were published without one."""


def ensure_chat_template(processor: Any) -> bool:  # noqa: ANN401  # transformers: no types
    """Say whether a processor has a chat template, after giving it the one known for its class."""
    if getattr(processor, "chat_template", None) is None:
        processor.chat_template = TEMPLATES.get(type(processor).__name__)
    return processor.chat_template is not None


def has_system_role(processor: Any) -> bool:  # noqa: ANN401  # as above
    """Find out whether a chat template says what stands in the system role."""
    chat = [
        {"role": role, "content": [{"type": "text", "text": text}]}
        for role, text in (("system", SENTINEL), ("user", "?"))
    ]
    try:
        return SENTINEL in str(processor.apply_chat_template(chat, tokenize=False))
    except (TemplateError, ValueError, TypeError, KeyError, AttributeError):
        # Templates say that they do not know the role by an error of their own, or stumble over it.
        return False
