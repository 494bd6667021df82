"""Cards are merged without a loss: what others wrote stays, and what is ours is there once."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from soubench.builders.publishing.card_merge import OURS, configs_of, merge_cards, read_card

TEXT = st.text("ab#\n -`<!é", max_size=40).map(lambda text: f"{text}\n")
NAMES = st.sampled_from(["all", "aerial", "default", "mine"])
VALUES = st.one_of(st.sampled_from(["mit", "other"]), st.lists(st.sampled_from("abc"), unique=True))


@st.composite
def cards(draw):
    head = draw(st.dictionaries(st.sampled_from(["license", "tags", "pretty_name"]), VALUES))
    configs = draw(st.lists(NAMES, unique=True))
    if configs:
        head["configs"] = [
            {"config_name": name, "data_files": draw(st.sampled_from(["a", "b"]))}
            for name in configs
        ]
        infos = [{"config_name": name, "dataset_size": draw(st.integers(0, 9))} for name in configs]
        # The library leaves the list out where there is one entry.
        head["dataset_info"] = infos[0] if len(infos) == 1 else infos
    return f"---\n{yaml.safe_dump(head)}---\n{draw(TEXT)}"


@given(cards(), cards(), TEXT, TEXT)
def test_everything_of_theirs_stays_and_ours_is_there_once(ours, theirs, above, below):
    merged = merge_cards(ours, theirs)
    head, body = read_card(merged)
    their_head, their_body = read_card(theirs)
    our_head, our_body = read_card(ours)
    assert body.startswith(their_body.strip("\n")) or not their_body.strip()
    assert body.count(OURS[0]) == body.count(OURS[1]) == 1
    assert our_body.strip() in body
    for key, value in their_head.items():
        if key in ("configs", "dataset_info"):
            continue
        if isinstance(value, list):
            assert head[key][: len(value)] == value
        else:
            assert head[key] == value
    assert configs_of(merged) == configs_of(theirs) | configs_of(ours)
    assert set(our_head) <= set(head)
    assert merge_cards(ours, merged) == merged


@given(cards(), cards(), TEXT)
def test_a_later_push_replaces_only_what_an_earlier_one_wrote(first, second, below):
    before = merge_cards(first, "Mine.\n") + below
    after = merge_cards(second, before)
    _, text = read_card(after)
    start, _, rest = text.partition(OURS[0])
    ours, _, end = rest.partition(OURS[1])
    assert start.strip() == "Mine."
    assert end.strip("\n") == below.strip("\n")
    assert ours.strip() == read_card(second)[1].strip()


def test_cards_as_web_editors_write_them():
    theirs = "\ufeff---\r\nlicense: mit\r\n---\r\n# Mine\r\n"
    head, body = read_card(merge_cards("---\nlicense: other\ntags: [a]\n---\nours\n", theirs))
    assert head == {"license": "mit", "tags": ["a"]}
    assert body.startswith("# Mine\n\n<!-- soubench push")
    assert read_card("---\nlicense: mit\n---") == ({"license": "mit"}, "")
