"""Drop what a model thought before it answered; every metric of replies uses it.

A leaf module: the metric's script imports it and it imports nothing beside it, because `evaluate`
copies only the files that the script names.
"""

import re

_THOUGHT_NAMES = "think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|cot|seed:think"
_THOUGHT = re.compile(
    rf"(?P<open><(?:{_THOUGHT_NAMES})>|◁think▷|\[THINK\]|<\|begin_of_thought\|>|<unused94>"
    r"|<\|?channel\|?>\s?(?:analysis|thought))"
    rf"|(?P<close></(?:{_THOUGHT_NAMES})>|◁/think▷|\[/THINK\]|<\|end_of_thought\|>|<unused95>"
    r"|<\|channel\|>\s?final\s?(?:<\|message\|>)?|<channel\|>|assistantfinal)",
    re.IGNORECASE,
)


def without_thought(reply: str) -> str:
    """Return what follows the last thought; nothing if the last thought never ends (R2)."""
    if "<" not in reply and "◁" not in reply and "[" not in reply and "assistantfinal" not in reply:
        return reply
    start = 0
    is_open = False
    for found in _THOUGHT.finditer(reply):
        is_open = found.lastgroup == "open"
        start = found.end()
    return "" if is_open else reply[start:]
