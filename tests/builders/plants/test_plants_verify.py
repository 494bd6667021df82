"""Rules that hold between rows of plant-leaves: each is broken here with a forged manifest."""

import copy
from pathlib import Path

import pytest

from soubench.builders.demo_plants import write_demo_plants
from soubench.builders.plants.build import build, fingerprint, manifest, rows
from soubench.builders.plants.prompt import load_prompt
from soubench.builders.plants.targets import FORMATS
from soubench.builders.plants.verify import verify


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("plants")
    root = write_demo_plants(home / "sources")
    return build(root, "1.0.0", load_prompt(), seed=0, workers=1, pictures_folder=home / "pictures")


@pytest.fixture(scope="module")
def unchanged(built):
    return {
        name: {
            split: [
                {k: v for k, v in row.items() if k != "image"}
                for row in rows(built, name, split, Path("made"))
            ]
            for split in built.splits
        }
        for name in FORMATS
    }


@pytest.fixture
def configs(unchanged):
    """Config -> split -> rows, as they come out of a file; a test may change them."""
    return copy.deepcopy(unchanged)


def found(built, configs):
    """Verify rows against a manifest that was made to fit them, so that only rules can fail."""
    forged = manifest(built)
    emitted = {}
    for name, splits in configs.items():
        for split, of in splits.items():
            for row in of:
                plain = {k: v for k, v in row.items() if k != "target"}
                emitted.setdefault(row["id"], plain | {"split": split})[name] = row["target"]
    forged["fingerprint"] = fingerprint(
        forged["head"],
        (row | {"picture": forged["pictures"][i]["sha256"]} for i, row in emitted.items()),
    )
    return list(verify(configs, forged, built.prompt.question))


def test_what_was_built_is_well_under_its_own_manifest_and_a_forged_one(built, configs):
    assert list(verify(configs, manifest(built), built.prompt.question)) == []
    assert found(built, configs) == []


def test_a_plant_in_two_splits_is_seen(built, configs):
    for splits in configs.values():
        splits["test"].insert(0, splits["train"].pop())
    moved = configs["tuple"]["test"][0]["id"]
    problems = found(built, configs)
    assert {p.field for p in problems} == {"plant_id"}
    assert moved in {p.row_id for p in problems}
    assert {p.message for p in problems} == {"this plant is in train, too"}


def test_a_subset_in_a_split_that_is_not_made_of_it_is_seen(built, configs):
    for splits in configs.values():
        splits["train"] += splits["strong_od_test"]
        splits["strong_od_test"] = []
    assert {p.field for p in found(built, configs)} == {"subset"}


def test_centers_out_of_order_and_targets_of_others_are_seen(built, configs):
    for splits in configs.values():
        row = splits["train"][0]
        row["centers_xy"].reverse()
    assert {p.field for p in found(built, configs)} == {"centers_xy", "target"}


def test_a_row_twice_or_not_there_is_seen(built, configs):
    for splits in configs.values():
        splits["train"].append(splits["train"][0])
    assert {p.field for p in found(built, configs)} == {"id"}
    for splits in configs.values():
        splits["train"] = splits["train"][1:-1]
    assert {p.message for p in found(built, configs)} == {"the rows are not those of the manifest"}
