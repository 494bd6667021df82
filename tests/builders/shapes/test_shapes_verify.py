"""Rules that hold between rows of primitive-shapes: each is broken here with a forged manifest."""

from pathlib import Path

import pytest

from soubench.builders.shapes.build import ShapesOptions, build_shapes, fingerprint, manifest, rows
from soubench.builders.shapes.sampler import SPLITS
from soubench.builders.shapes.targets import FORMATS
from soubench.builders.shapes.verify import verify


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    options = ShapesOptions(pictures=dict.fromkeys(SPLITS, 2))
    return build_shapes("1.0.0", options, tmp_path_factory.mktemp("drawn"))


def tables(built):
    """Config -> split -> rows, as they come out of a file."""
    return {
        name: {
            split: [
                {k: v for k, v in row.items() if k != "image"}
                for row in rows(built, name, split, Path("drawn"))
            ]
            for split in built.configurations
        }
        for name in FORMATS
    }


def found(built, configs):
    """Verify rows against a manifest that was made to fit them, so that only rules can fail."""
    forged = manifest(built)
    md5s = {s: [row["config_md5"] for row in of] for s, of in configs["sentence"].items()}
    forged["pictures"] = {s: ["0" * 64] * len(of) for s, of in md5s.items()}
    forged["fingerprint"] = fingerprint(forged["head"], md5s, forged["pictures"])
    return list(verify(configs, forged, built.questions))


def put(configs, split, index, row):
    """Put a row of another split, under the id of the place, into both configs."""
    for name in configs:
        configs[name][split][index] = row[name] | {"id": f"{split}/{index:06d}"}


def test_what_was_built_is_well_under_its_own_manifest_and_a_forged_one(built):
    assert list(verify(tables(built), manifest(built), built.questions)) == []
    assert found(built, tables(built)) == []


@pytest.mark.parametrize(("split", "index"), [("train", 1), ("test", 0)])
def test_a_configuration_twice_is_seen_within_and_across_splits(built, split, index):
    configs = tables(built)
    put(configs, split, index, {name: configs[name]["train"][0] for name in configs})
    problems = found(built, configs)
    assert {p.row_id for p in problems} == {f"{split}/{index:06d}"}
    assert {p.message for p in problems} == {"the same configuration as train/000000"}


@pytest.mark.parametrize(
    ("source", "split", "said"),
    [
        pytest.param("od_rotation", "train", "rotations", id="rotations of another split"),
        pytest.param("od_spatial", "train", "shapes; the split has", id="too many shapes"),
        pytest.param("od_occlusion", "train", "overlapping shapes", id="too many overlaps"),
        pytest.param("train", "od_composition", "overlapping shapes", id="too few overlaps"),
        pytest.param("train", "od_rotation", "rotations", id="training rotations"),
    ],
)
def test_a_row_that_does_not_belong_to_its_split_is_seen(built, source, split, said):
    configs = tables(built)
    other = next(
        i
        for i, row in enumerate(configs["sentence"][source])
        if any(kind != "Circle" for kind in row["shapes"]["shape"])
    )
    row = {name: configs[name][source].pop(other) for name in configs}
    for name in configs:
        for i, left in enumerate(configs[name][source]):
            left["id"] = f"{source}/{i:06d}"
    put(configs, split, 0, row)
    problems = found(built, configs)
    assert {p.row_id for p in problems} == {f"{split}/000000"}
    assert any(said in p.message for p in problems)
    assert {p.field for p in problems} == {"shapes"}


def test_another_picture_or_a_row_less_changes_the_fingerprint(built):
    forged = manifest(built)
    forged["pictures"]["test"][0] = "f" * 64
    assert {p.field for p in verify(tables(built), forged, None)} == {"fingerprint"}
    configs = tables(built)
    configs["tuple"]["test"].pop()
    (problem,) = verify(configs, manifest(built), None)
    assert (problem.field, "tuple does not have the rows" in problem.message) == ("config", True)
