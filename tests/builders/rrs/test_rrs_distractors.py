"""SDFS: its properties on any ranking, and with a CLIP made on the spot."""

import json
from itertools import pairwise

import datasets
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

from soubench.builders.demo_rrs import write_demo_records
from soubench.builders.keyed import KeyedRandom
from soubench.builders.rrs.build import load_pools
from soubench.builders.rrs.clip import Clip
from soubench.builders.rrs.distractors import (
    CLOSED_POOLS,
    Choices,
    Pools,
    draw_wrong,
    sdfs,
)
from soubench.builders.rrs.numbers import count_options, measure_options, measure_text
from soubench.builders.rrs.questions import Draft, Evidence
from soubench.builders.rrs.taxonomy import Task
from soubench.cli import main
from tests.builders.rrs.tiny_clip import write_tiny_clip

RANKINGS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=5), st.floats(-1, 1), min_size=2, max_size=24
)


def as_the_paper_says(answer, cosines, needed):
    """Cut both ends of the ranking of all options; keep the right one, and give its place on.

    Where too few would be left, both cuts shrink alike.
    """
    ranked = sorted(cosines, key=lambda o: (-round(cosines[o], 3), o))
    cut = max(1, int(0.25 * len(ranked)))
    while True:
        removed = []
        for end in (ranked, ranked[::-1]):
            gone = [o for o in end[:cut] if o != answer]
            if len(gone) < cut and len(end) > cut:
                gone.append(end[cut])  # the nearest one on that side
            removed += gone
        kept = [o for o in ranked if o not in removed and o != answer]
        if len(kept) >= needed or cut == 0:
            return kept, cut
        cut -= 1


@given(RANKINGS, st.data())
def test_sdfs_cuts_as_the_paper_says(cosines, data):
    answer = data.draw(st.sampled_from(sorted(cosines)))
    wrong = sorted(set(cosines) - {answer})
    needed = data.draw(st.integers(1, min(4, len(wrong))))
    found = sdfs(answer, wrong, cosines.__getitem__, needed)
    kept, cut = as_the_paper_says(answer, cosines, needed)
    assert list(found.kept) == kept
    assert found.cut == cut
    assert found.shrunk == (cut < max(1, len(cosines) // 4))


@given(RANKINGS, st.data())
def test_no_extreme_wrong_option_survives_and_as_many_go_at_either_end(cosines, data):
    answer = data.draw(st.sampled_from(sorted(cosines)))
    wrong = sorted(set(cosines) - {answer})
    found = sdfs(answer, wrong, cosines.__getitem__, 1)
    assert len(found.kept) == len(wrong) - 2 * found.cut
    assume(found.cut)
    ranked = sorted(wrong, key=lambda o: (-round(cosines[o], 3), o))
    assert not set(found.kept) & {*ranked[: found.cut], *ranked[-found.cut :]}


def test_ties_and_last_digits_are_decided_by_the_text():
    cosines = {"d": 0.3004, "c": 0.3001, "b": 0.2996, "a": 0.3, "e": 0.2}
    # 0.300 all but e: a, b, c, d, e; with e right, one of a..d goes at either end
    assert sdfs("e", list("abcd"), cosines.__getitem__, 1).kept == ("b", "c")


def draft(answer, pool, also=()):
    return Draft(
        Task(pool[0]), "?", "mcq", answer, Evidence(), pool=pool, also_true=frozenset(also)
    )


def frozen(*words, pool=("UI",)):
    return Pools.freeze([draft(word, pool) for word in words], {})


def draw(made, pools, ways=4, similarity=None, key=0):
    choices = Choices()
    return draw_wrong(made, pools, ways, KeyedRandom(key), similarity, choices), choices


@given(st.integers(2, 5), st.integers(0, 10_000), st.booleans())
def test_options_are_of_the_pool_different_and_wrong(ways, key, filtered):
    pools = frozen("supply", "training", "Training", "watch", "strike", "transport", "repair")
    similarity = (lambda word: len(word) / 10) if filtered else None
    made = draft("training", ("UI",), also={"watch"})
    wrong, _ = draw(made, pools, ways, similarity, key)
    assert len(set(wrong)) == len(wrong) == min(ways - 1, 4)
    assert set(wrong) <= {"supply", "strike", "transport", "repair"}


def test_every_option_of_the_middle_is_drawn_as_often():
    pools = frozen(*"abcdefgh")
    counts = {}
    for key in range(600):
        wrong, _ = draw(draft("a", ("UI",)), pools, 3, lambda word: ord(word) / 1000, key)
        for option in wrong:
            counts[option] = counts.get(option, 0) + 1
    # b..h without the two most and the two least like it: d, e, f; two of three each time
    assert sorted(counts) == ["d", "e", "f"]
    assert all(340 < n < 460 for n in counts.values())


def test_small_pools_give_fewer_options_and_are_counted():
    wrong, choices = draw(draft("a", ("UI",)), frozen("a", "b"), similarity=lambda word: 0.0)
    assert wrong == ("b",)
    assert choices.fewer == {Task.UI: 1}
    assert choices.shrunk == {Task.UI: 1}
    assert draw(draft("a", ("UI",)), frozen("a"))[0] == ()


def test_subtypes_come_from_their_own_type_while_it_has_enough():
    port = [draft(w, ("SC", "port")) for w in ("a", "b", "c", "d")]
    other = [draft(w, ("SC", "airport")) for w in ("x", "y")]
    pools = Pools.freeze([*port, *other], {})
    assert set(draw(port[0], pools)[0]) == {"b", "c", "d"}
    assert set(pools.wrong(other[0], 3)) == {"a", "b", "c", "d", "y"}


def test_the_taxonomys_own_pools_are_closed():
    pools = Pools.freeze([draft("port", ("SU",))], {})
    assert pools.words[("SU",)] == CLOSED_POOLS[("SU",)]
    assert len(pools.words[("SU",)]) == 6


@given(st.integers(0, 400), st.integers(1, 4), st.integers(0, 9999))
def test_counts_are_different_and_none_is_negative(count, wrong, key):
    found = [int(v) for v in count_options(count, wrong, KeyedRandom(key))]
    assert len({*found, count}) == wrong + 1
    assert min(found) >= 0


@given(st.floats(0.05, 1e7), st.integers(1, 4), st.integers(0, 9999))
def test_lengths_are_different_and_a_third_apart(value, wrong, key):
    found = measure_options(value, "m", wrong, KeyedRandom(key))
    numbers = sorted(float(t.removesuffix(" m")) for t in (*found, measure_text(value, "m")))
    assert len(numbers) == wrong + 1
    # 1.35 apart before rounding to two digits, which may take 5 % off at either end
    assert all(b / a > 1.2 for a, b in pairwise(numbers))


def test_the_place_of_the_right_number_says_nothing():
    places = {i: 0 for i in range(4)}
    for key in range(1000):
        found = measure_options(120.0, "m", 3, KeyedRandom("m", key))
        places[sum(float(t.removesuffix(" m")) < 120 for t in found)] += 1
    assert all(200 < n < 300 for n in places.values())


# With a model.


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory):
    return write_tiny_clip(tmp_path_factory.mktemp("clip") / "tiny")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return write_demo_records(tmp_path_factory.mktemp("sites"), sites=12, pairs=2)


def build(records, cache, *arguments):
    datasets.config.HF_DATASETS_CACHE = cache
    command = ["build", "rrs", f"--records={records}", "--workers=1", *map(str, arguments)]
    return main(command)


def home_of(cache):
    (folder,) = (cache / "soubench" / "rrs").iterdir()
    return folder


@pytest.fixture(scope="module")
def built(records, clip_folder, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    assert build(records, cache, f"--clip={clip_folder}") == 0
    return cache


def test_similarities_are_the_cosines_of_the_models_own_embeddings(clip_folder):
    import torch
    from transformers import CLIPModel, CLIPProcessor

    model, processor = (c.from_pretrained(clip_folder) for c in (CLIPModel, CLIPProcessor))
    pictures = {
        "noise": Image.effect_noise((50, 40), 60).convert("RGB"),
        "red": Image.new("RGB", (30, 60), "red"),
    }
    options = ["winter", "summer", "a naval base"]
    found = dict(
        Clip(str(clip_folder)).similarities(
            list(pictures), pictures.__getitem__, dict.fromkeys(pictures, options)
        )
    )
    for name, picture in pictures.items():
        for option in options:
            batch = processor(text=[option], images=[picture], return_tensors="pt")
            with torch.no_grad():
                out = model(**batch)
            cosine = float(out.text_embeds[0] @ out.image_embeds[0])
            assert found[name][option] == pytest.approx(cosine, abs=0.000501)
    assert len({v for row in found.values() for v in row.values()}) >= 5


def test_batches_change_nothing_and_each_picture_and_text_is_embedded_once(clip_folder):
    pictures = {
        f"p{i}": Image.effect_noise((40 + i, 50), 20 + 9 * i).convert("RGB") for i in range(7)
    }
    options = {key: ["winter", "summer", "port", f"only {key}"] for key in pictures}
    results, calls = [], []
    for size in (1, 3, 32):
        clip = Clip(str(clip_folder), batch_size=size)
        images, texts, loaded = [], [], []
        embed_images, embed_texts = clip._embed_images, clip._embed_texts
        clip._embed_images = lambda f=embed_images, n=images, **k: (
            n.append(len(k["pixel_values"])) or f(**k)
        )
        clip._embed_texts = lambda f=embed_texts, n=texts, **k: (
            n.append(len(k["input_ids"])) or f(**k)
        )

        def load(key, loaded=loaded):
            loaded.append(key)
            return pictures[key]

        results.append(dict(clip.similarities(list(pictures), load, options)))
        calls.append((sum(images), sum(texts), loaded))
    assert results[0] == results[1] == results[2]
    assert calls == [(7, 3 + 7, list(pictures))] * 3


def test_sdfs_rows_have_no_extreme_option_and_the_right_one(built):
    stored = json.loads((home_of(built) / "similarities.json").read_text())
    assert stored["model"] == "tiny"
    manifest = json.loads((home_of(built) / "manifest.json").read_text())
    report = json.loads((home_of(built) / "report.json").read_text())
    rows = datasets.load_dataset("rrs", "all", split="test", cache_dir=str(built))
    checked = 0
    for row in rows.remove_columns("images"):
        if row["task"] not in ("SU", "SC", "UI"):
            continue
        pool = report["pools"][row["task"]]
        record = row["id"].rpartition("/")[0]
        cosines = stored["similarities"][manifest["pictures"][record][-1]["sha256"]]
        right = row["options"][row["answer_index"]]
        kept, cut = as_the_paper_says(right, {o: cosines[o] for o in pool}, 3)
        assert cut >= 1
        assert set(row["options"]) <= {right, *kept}
        checked += 1
    assert checked == 36
    assert report["distractor_counts"]["filtered"] > checked
    # Three words leave nothing to cut.
    assert report["distractor_counts"]["cut_smaller_than_the_rule"]["AI"] == 12


def test_a_stored_ranking_builds_the_same_without_a_model(built, records, tmp_path):
    stored = home_of(built) / "similarities.json"
    assert build(records, tmp_path, f"--similarities={stored}") == 0
    assert home_of(tmp_path).name == home_of(built).name
    assert (home_of(tmp_path) / "similarities.json").read_bytes() == stored.read_bytes()


def test_a_stored_ranking_of_other_pictures_is_refused(built, records, tmp_path, capsys):
    stored = json.loads((home_of(built) / "similarities.json").read_text())
    stored["similarities"].popitem()
    path = tmp_path / "similarities.json"
    path.write_text(json.dumps(stored))
    assert build(records, tmp_path / "cache", f"--similarities={path}") == 2
    assert "--clip MODEL" in capsys.readouterr().err
    path.write_text("[]")
    assert build(records, tmp_path / "cache", f"--similarities={path}") == 2
    assert "similarities.json" in capsys.readouterr().err


def test_another_model_is_another_dataset(built, records, tmp_path):
    other = write_tiny_clip(tmp_path / "other", seed=1)
    assert build(records, tmp_path / "cache", f"--clip={other}") == 0
    assert home_of(tmp_path / "cache").name != home_of(built).name


def test_a_model_that_is_no_clip_is_refused(records, tmp_path, capsys):
    from transformers import BertConfig, BertModel

    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = BertConfig(vocab_size=9, intermediate_size=8, **small)
    BertModel(config).save_pretrained(tmp_path / "bert")
    assert build(records, tmp_path / "cache", f"--clip={tmp_path / 'bert'}") == 2
    assert "CLIP model" in capsys.readouterr().err


def test_own_pools_add_options(records, tmp_path, capsys):
    path = tmp_path / "pools.toml"
    path.write_text('UI = ["disaster relief"]\n[AI]\nnature = ["humanitarian"]\n')
    assert load_pools(path) == {"UI": {"": ["disaster relief"]}, "AI": {"nature": ["humanitarian"]}}
    assert build(records, tmp_path / "c", "--distractors=random", f"--pools={path}") == 0
    rows = datasets.load_dataset("rrs", "ai", split="test")
    assert {len(options) for options in rows["options"][:]} == {4}
    for wrong in ("SU = ['farm']", "[UI]\nx = 3", "UI = 4", "UI = ["):
        path.write_text(wrong)
        assert build(records, tmp_path / "d", "--distractors=random", f"--pools={path}") == 2
        assert "pools.toml" in capsys.readouterr().err
