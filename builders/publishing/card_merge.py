"""Put a card of ours into one that is on the Hub, without touching what others wrote there."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import yaml  # type: ignore[import-untyped]  # PyYAML ships no types

from soubench.builders.publishing.export_folder import SECTION

OURS = (
    "<!-- soubench push: written anew by every push; put your own text above or below -->",
    "<!-- /soubench push -->",
)
BY_CONFIG = ("configs", "dataset_info")
"""Parts of the head that have an entry per config."""
DEFAULT_CONFIG = "default"
# Heads of many configs are long: the parser in C takes a tenth of the time, where it is there.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def merge_cards(ours: str, theirs: str, *, computed: Collection[str] = ()) -> str:
    r"""Return the card that a repository should have.

    Of the head, configs are replaced one by one, lists such as ``tags`` are united, and any other
    key that the repository has keeps its value. Of the body, what stands between the marks of
    ``OURS`` is replaced, and where there are none, ours is put below.

    >>> print(merge_cards("---\ntags: [b]\n---\nours", "---\ntags: [a]\n---\ntheirs"))
    ---
    tags:
    - a
    - b
    ---
    theirs
    <BLANKLINE>
    <!-- soubench push: written anew by every push; put your own text above or below -->
    ours
    <!-- /soubench push -->
    <BLANKLINE>

    Args:
        ours: The card to publish, with or without the marks.
        theirs: The card that is there; empty if there is none.
        computed: Keys of the head whose value is always ours.
    """
    head, body = read_card(ours)
    known, text = read_card(theirs)
    merged = dict(known)
    for key, value in head.items():
        if key in BY_CONFIG:
            merged[key] = _by_config(value, known.get(key))
        elif key in known and isinstance(value, list) and isinstance(known[key], list):
            own = [entry for entry in value if entry not in known[key]]
            merged[key] = value if key in computed else known[key] + own
        elif key not in known or key in computed:
            merged[key] = value
    if merged.get("license") != "other":
        # Names and links are for a license that the Hub does not know.
        for key in ("license_name", "license_link"):
            if key not in known:
                merged.pop(key, None)
    # Configs last: of some datasets they are most of the card.
    ordered = {k: v for k, v in merged.items() if k not in BY_CONFIG}
    ordered |= {k: merged[k] for k in BY_CONFIG if merged.get(k)}
    return write_card(ordered, _merge_bodies(body, text))


def read_card(text: str) -> tuple[dict[str, Any], str]:
    """Return the head of a card as data, and its body.

    Raises:
        YAMLError: The head is not YAML.
    """
    # As web editors and other systems may write it.
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n") + "\n"
    if not text.startswith("---\n"):
        return {}, text
    head, _, body = text[4:].partition("\n---\n")
    found = yaml.load(head, Loader=_LOADER)
    return (dict(found) if isinstance(found, Mapping) else {}), body


def write_card(head: Mapping[str, Any], body: str) -> str:
    """Return the text of a card."""
    dumped = yaml.dump(dict(head), Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{dumped}---\n{body}"


def configs_of(card: str) -> dict[str, Mapping[str, Any]]:
    """Return config -> its entry in the head of a card."""
    head, _ = read_card(card)
    return {_name(entry): entry for entry in _entries(head.get("configs"))}


def _by_config(ours: Any, theirs: Any) -> list[Any]:  # noqa: ANN401 - YAML
    entries = _entries(ours)
    names = {_name(entry) for entry in entries}
    return entries + [entry for entry in _entries(theirs) if _name(entry) not in names]


def _entries(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - YAML
    """Return a list of entries; the library writes a single one without the list."""
    if isinstance(value, Mapping):
        return [dict(value)]
    return [dict(entry) for entry in value or () if isinstance(entry, Mapping)]


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("config_name", DEFAULT_CONFIG))


def _merge_bodies(ours: str, theirs: str) -> str:
    block = f"{OURS[0]}\n{ours.strip()}\n{OURS[1]}"
    before, mark, rest = theirs.partition(OURS[0])
    if mark:
        after = rest.partition(OURS[1])[2]
    else:
        # An exported folder that was uploaded by other means has the same text without marks.
        same = (
            SECTION[0] in theirs
            and theirs.partition(SECTION[0])[0] == ours.partition(SECTION[0])[0]
        )
        before, after = ("", "") if same else (theirs, "")
    return _paragraphs((before, block, after))


def _paragraphs(parts: Sequence[str]) -> str:
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"
