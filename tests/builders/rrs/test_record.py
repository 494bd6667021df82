"""The record format: its schema, its reader, and everything that can be wrong with a record."""

import json
from importlib.resources import files

import datasets
import jsonschema
import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco

from soubench.builders.errors import FormatError
from soubench.builders.rrs.record import SCHEMA_FILE, read_records, write_schema
from soubench.cli import main
from tests.data import draw_picture

SIZE_WH = (64, 48)
GOOD = {
    "id": "a",
    "images": ["a.png"],
    "scene": {"type": "port", "subtype": "naval base"},
    "objects": [
        {"id": "s", "category": "ship", "box_xyxy": [4, 4, 20, 10], "attributes": {"color": "red"}}
    ],
    "exhaustive": ["ship", "crane"],
    "expressions": [{"text": "the red ship", "object": "s"}],
    "absent": [{"name": "helipad"}],
}
PAIR = {
    "id": "p",
    "images": ["a.png", "b.png"],
    "changes": [{"target": "the pier", "kind": "appeared"}],
}


def rle(array):
    return {
        "size": list(array.shape),
        "counts": coco.encode(np.asfortranarray(array))["counts"].decode(),
    }


def block(shape_hw, box):
    array = np.zeros(shape_hw, np.uint8)
    x1, y1, x2, y2 = box
    array[y1:y2, x1:x2] = 1
    return array


SHIP = block((48, 64), (4, 4, 20, 10))


def changed(**fields):
    return GOOD | fields


def with_object(**fields):
    return changed(objects=[GOOD["objects"][0] | fields])


BAD = [
    pytest.param("[]", "malformed_record", "the record", id="no object"),
    pytest.param('{"id": "a",', "not_json", "JSON", id="cut short"),
    pytest.param('{"id": "a", "images": ["\udcff"]}', "not_json", "JSON", id="not UTF-8"),
    pytest.param("[" * 100_000, "not_json", "JSON", id="nested without end"),
    pytest.param({"images": ["a.png"]}, "malformed_record", "`id`", id="no id"),
    pytest.param(changed(id=3), "malformed_record", "id: expected `str`", id="id of another type"),
    pytest.param(changed(id=" "), "malformed_record", "id", id="blank id"),
    pytest.param(changed(images=[]), "malformed_record", "images", id="no picture"),
    pytest.param(changed(images=["a.png"] * 3), "malformed_record", "images", id="three pictures"),
    pytest.param(changed(secne={}), "malformed_record", "secne", id="misspelled field"),
    pytest.param(
        changed(scene={"type": "farm"}), "malformed_record", "scene.type", id="unknown scene type"
    ),
    pytest.param(
        with_object(box_xyxy=[1, 2, 3]),
        "malformed_record",
        "objects[0].box_xyxy",
        id="three numbers",
    ),
    pytest.param(
        changed(counts=[{"target": "x", "count": -1}]),
        "malformed_record",
        "counts[0].count",
        id="negative count",
    ),
    pytest.param(changed(gsd_m=0), "malformed_record", "gsd_m", id="pixels without size"),
    pytest.param(
        changed(north_deg=360), "malformed_record", "north_deg", id="north past the circle"
    ),
    pytest.param(changed(tasks=["VG", "XY"]), "unknown_task", "tasks[1]", id="unknown task"),
    pytest.param(
        PAIR | {"scene": {"type": "port"}}, "annotation_of_pair", "scene", id="scene of a pair"
    ),
    pytest.param(
        changed(changes=PAIR["changes"]),
        "change_without_pair",
        "changes",
        id="change of one picture",
    ),
    pytest.param(
        with_object(box_xyxy=[20, 4, 4, 10]),
        "empty_box",
        "objects[0].box_xyxy",
        id="swapped corners",
    ),
    pytest.param(
        with_object(box_xyxy=[4, 4, 20, 49]), "box_outside", "objects[0].box_xyxy", id="box too low"
    ),
    pytest.param(
        with_object(box_xyxy=[-1, 4, 20, 10]),
        "box_outside",
        "objects[0].box_xyxy",
        id="box too far left",
    ),
    pytest.param(
        with_object(box_xyxy=[4, 4, 20, 48], quad_xy8=[4, 4, 20, 4, 20, 48.5, 4, 10]),
        "quad_outside",
        "objects[0].quad_xy8",
        id="corner outside",
    ),
    pytest.param(
        with_object(quad_xy8=[4, 4, 20, 10, 20, 4, 4, 10]),
        "quad_malformed",
        "objects[0].quad_xy8: expected four corners in order",
        id="corners crosswise",
    ),
    pytest.param(
        with_object(quad_xy8=[4, 4, 20, 4, 20, 4, 4, 4]),
        "quad_malformed",
        "objects[0].quad_xy8: expected four corners in order",
        id="corners on a line",
    ),
    pytest.param(
        with_object(quad_xy8=[4, 4, 40, 4, 40, 10, 4, 10]),
        "quad_off_its_box",
        "out of the box [4.0, 4.0, 20.0, 10.0]",
        id="corners off the box",
    ),
    pytest.param(
        with_object(mask=rle(SHIP[:, :32])),
        "mask_size",
        "objects[0].mask",
        id="mask of another size",
    ),
    pytest.param(
        with_object(mask={"polygons": [[4, 4, 70, 4, 20, 10]]}),
        "mask_outside",
        "objects[0].mask",
        id="polygon outside",
    ),
    pytest.param(
        with_object(mask=rle(SHIP * 0)), "mask_empty", "objects[0].mask", id="mask without pixels"
    ),
    pytest.param(
        with_object(mask={"size": [48, 64], "counts": "zz"}),
        "mask_malformed",
        "objects[0].mask",
        id="damaged run lengths",
    ),
    pytest.param(
        with_object(mask={"size": [48, 64], "counts": [10, 10]}),
        "mask_malformed",
        "3072",
        id="run lengths that do not add up",
    ),
    pytest.param(
        with_object(mask={"polygons": [[4, 4, 20, 4, 20]] * 2 + [[4, 4, 9, 9, 1, 1]]}),
        "malformed_record",
        "objects[0].mask.polygons[0]",
        id="polygon of two points",
    ),
    pytest.param(
        with_object(mask={"polygons": [[4, 4, 20, 4, 20, 9, 7]]}),
        "mask_malformed",
        "objects[0].mask",
        id="odd polygon",
    ),
    pytest.param(
        with_object(mask=rle(SHIP) | {"polygons": [[4, 4, 20, 4, 20, 10]]}),
        "mask_malformed",
        "either",
        id="two masks in one",
    ),
    pytest.param(
        with_object(mask=rle(block((48, 64), (4, 4, 30, 10)))),
        "mask_off_its_box",
        "objects[0].mask",
        id="mask out of its box",
    ),
    pytest.param(
        changed(objects=GOOD["objects"] * 2), "object_id", "objects", id="two objects of one id"
    ),
    pytest.param(
        changed(expressions=[{"text": "it", "object": "z"}]),
        "expression_target",
        "expressions[0]",
        id="expression of nothing",
    ),
    pytest.param(
        changed(expressions=[{"text": "it"}]), "expression_target", "expressions[0]", id="no target"
    ),
    pytest.param(
        changed(expressions=[{"text": "it", "object": "s", "box_xyxy": [1, 1, 2, 2]}]),
        "expression_target",
        "not both",
        id="two targets",
    ),
    pytest.param(
        changed(measurements=[{"kind": "distance", "target": "it", "value": 3}]),
        "measurement_reference",
        "measurements[0]",
        id="distance to nowhere",
    ),
    pytest.param(
        changed(absent=[{"name": "Ship"}]), "contradiction", "absent[0]", id="absent but labelled"
    ),
    pytest.param(
        changed(counts=[{"target": "piers", "count": 2}, {"target": "Piers", "count": 3}]),
        "contradiction",
        "counts",
        id="two counts of one thing",
    ),
    pytest.param(
        changed(
            orientations=[
                {"target": "the quay", "bearing_deg": 0},
                {"target": "The quay", "bearing_deg": 90},
            ]
        ),
        "contradiction",
        "orientations: the quay is both '0°' and '90°'",
        id="two axes of one thing",
    ),
    pytest.param(
        changed(
            measurements=[
                {"kind": "length", "target": "the quay", "value": 123},
                {"kind": "length", "target": "the quay", "value": 999},
            ]
        ),
        "contradiction",
        "'123' and '999'",
        id="two lengths of one thing",
    ),
    pytest.param(
        changed(
            expressions=[
                {"text": "the pier", "box_xyxy": [1, 1, 5, 5]},
                {"text": "the pier", "box_xyxy": [2, 2, 9, 9]},
            ]
        ),
        "contradiction",
        "expressions: the pier",
        id="one expression of two boxes",
    ),
    pytest.param(
        changed(
            picture_relations=[
                {"target": "the pier", "reference": "the ship", "direction": "left"},
                {"target": "the ship", "reference": "the pier", "direction": "below"},
            ]
        ),
        "contradiction",
        "the ship of the pier is both 'right' and 'below'",
        id="relations that do not mirror each other",
    ),
    pytest.param(
        changed(scene={"type": "airfield"}),
        "malformed_record",
        "expected one of airport, barracks, launch site, port, radar facility, training ground",
        id="another type of scene",
    ),
    pytest.param(changed(images=["c.png"]), "picture_missing", "c.png", id="no such picture"),
    pytest.param(changed(images=["cut.png"]), "picture_truncated", "cut.png", id="cut picture"),
    pytest.param(
        PAIR | {"images": ["a.png", "./A.png"]},
        "pair_same_picture",
        "a.png twice",
        id="pair of one picture",
    ),
    pytest.param(
        PAIR | {"images": ["a.png", "tall.png"]},
        "pair_sizes_differ",
        "images",
        id="pair of two sizes",
    ),
]
SAID_BY_SCHEMA = ("malformed_record",)


@pytest.fixture
def folder(tmp_path):
    """Pictures that records may name; ``cut.png`` is cut short."""
    for name in ("a.png", "b.png"):
        draw_picture(tmp_path / name, SIZE_WH)
    draw_picture(tmp_path / "tall.png", SIZE_WH[::-1])
    noise = np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "cut.png")
    data = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(data[: len(data) // 2])
    datasets.config.HF_DATASETS_CACHE = tmp_path / "cache"
    return tmp_path


def write(folder, *records):
    path = folder / "records.jsonl"
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    return path


def build(path, *arguments):
    return main(
        ["build", "rrs", f"--records={path}", "--distractors=random", "--workers=1", *arguments]
    )


def report_in(folder):
    (path,) = folder.glob("cache/soubench/rrs/*/report.json")
    return json.loads(path.read_text())


def test_the_schema_file_is_that_of_the_structs(tmp_path):
    write_schema(tmp_path / "schema.json")
    shipped = (files("soubench.builders.rrs") / SCHEMA_FILE).read_text(encoding="utf-8")
    assert shipped == (tmp_path / "schema.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(shipped))


@pytest.mark.parametrize(("bad", "reason", "says"), BAD)
def test_the_schema_refuses_what_the_reader_calls_malformed(bad, reason, says):
    try:
        record = json.loads(bad) if isinstance(bad, str) else bad
    except (ValueError, RecursionError):
        return  # no JSON at all: a schema has nothing to say
    schema = json.loads((files("soubench.builders.rrs") / SCHEMA_FILE).read_text())
    valid = jsonschema.Draft202012Validator(schema).is_valid(record)
    assert valid == (reason != "malformed_record")


@pytest.mark.parametrize(("bad", "reason", "says"), BAD)
def test_a_bad_record_is_left_out_and_named(folder, bad, reason, says, capsys):
    good = [GOOD | {"id": "good"}, PAIR | {"id": "good pair"}]
    assert build(write(folder, good[0], bad, good[1])) == 0
    report = report_in(folder)["records"]
    assert (report["read"], report["used"], report["left_out"]) == (3, 2, {reason: 1})
    (told,) = report["bad"]
    assert says in told["message"]
    assert "records.jsonl:2" in told["message"]
    if isinstance(bad, dict) and isinstance(bad.get("id"), str):
        assert told["record"] == bad["id"]
    assert told["message"] in capsys.readouterr().out


@pytest.mark.parametrize(("bad", "reason", "says"), BAD)
def test_strict_stops_at_a_bad_record(folder, bad, reason, says, capsys):
    assert build(write(folder, GOOD | {"id": "good"}, bad), "--strict") == 2
    error = capsys.readouterr().err
    assert says in error
    assert "records.jsonl:2" in error
    assert "Traceback" not in error
    assert not list(folder.glob("cache/rrs/*"))


def test_an_id_that_is_repeated_is_told_with_its_first_place(folder, capsys):
    assert build(write(folder, GOOD, PAIR, GOOD)) == 0
    report = report_in(folder)["records"]
    assert report["left_out"] == {"duplicate_id": 1}
    assert "records.jsonl:1" in report["bad"][0]["message"]


def test_nothing_but_bad_records_is_an_error_that_shows_some(folder, capsys):
    assert build(write(folder, "[]", {"id": "x"})) == 2
    error = capsys.readouterr().err
    assert "2 read" in error
    assert "malformed_record" in error


def test_folders_blank_lines_and_a_byte_order_mark_are_read(folder):
    below = folder / "more"
    below.mkdir()
    draw_picture(below / "a.png", SIZE_WH)
    (below / "one.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n")
    write(folder, PAIR)
    refused = []
    found = list(read_records(folder, lambda *told: refused.append(told)))
    assert [f.record.id for f in found] == ["a", "p"]
    # Pictures are looked for from the folder of their own file.
    assert found[0].pictures == (below / "a.png",)
    assert not refused
    (folder / "empty").mkdir()
    for path, says in ((folder / "empty", "jsonl"), (folder / "nowhere", "nowhere")):
        with pytest.raises(FormatError, match=says):
            list(read_records(path, lambda *_: None))


@pytest.mark.parametrize(
    "mask",
    [
        pytest.param(rle(SHIP), id="compressed"),
        pytest.param(
            {"size": [48, 64], "counts": [4 * 48 + 4, *[6, 42] * 15, 6, 48 * 44 + 38]}, id="runs"
        ),
        pytest.param({"polygons": [[4, 4, 20, 4, 20, 10, 4, 10]]}, id="polygon"),
    ],
)
def test_the_three_ways_to_write_a_mask_are_one(folder, mask):
    assert build(write(folder, with_object(mask=mask), PAIR)) == 0
    rows = datasets.load_dataset("rrs", "rs", split="test")
    assert rows[0]["question"] == "Segment the red ship in this image."
    decoded = coco.decode(json.loads(rows[0]["mask_rle"]))
    assert (decoded == SHIP).all()
    assert rows[0]["answer"] == rows[0]["mask_rle"]
    assert rows[0]["box_xyxy"] == [4, 4, 20, 10]


def test_turned_gray_and_transparent_pictures_are_asked_about_as_upright_rgb(folder):
    draw_picture(folder / "turned.jpg", SIZE_WH, orientation=6)
    Image.new("L", (48, 64), 90).save(folder / "gray.png")
    Image.new("RGBA", (48, 64), (9, 9, 9, 0)).save(folder / "clear.png")
    ship = {"category": "ship", "box_xyxy": [4, 4, 20, 60]}
    records = [
        {"id": name, "images": [name], "objects": [ship], "exhaustive": ["ship", "crane"]}
        for name in ("turned.jpg", "gray.png", "clear.png")
    ]
    assert build(write(folder, *records)) == 0
    rows = datasets.load_dataset("rrs", "vg", split="test")
    assert rows["size_hw"][:] == [[64, 48]] * 3
    for row in rows:
        (image,) = row["images"]
        assert (image.mode, image.size, image.format) == ("RGB", (48, 64), "PNG")


def test_pictures_are_found_by_names_of_another_case_if_one_file_can_be_meant(folder):
    draw_picture(folder / "Sub" / "Site.PNG", SIZE_WH)
    for name in ("two.png", "Two.png"):
        draw_picture(folder / name, SIZE_WH)
    names = ["sub\\site.png", "SUB/Site.png", "two.png", "TWO.PNG", "none/site.png"]
    records = [{"id": str(i), "images": [name]} for i, name in enumerate(names)]
    found = read_records(write(folder, *records), lambda *_: None)
    site = folder / "Sub" / "Site.PNG"
    expected = [site, site, *(folder / name for name in names[2:])]
    assert [f.pictures for f in found] == [(path,) for path in expected]


def test_texts_are_one_line_each(folder):
    record = {
        "id": " a\t1 ",
        "images": ["a.png"],
        "license": " ",
        "scene": {"type": "port", "subtype": "RADAR  STATION "},
        "captions": [{"text": "A port.\r\n\r\nTwo  ships."}],
        "objects": [
            {
                "category": " patrol\u00a0 boat",
                "box_xyxy": [4, 4, 20, 10],
                "attributes": {"a ": "b\n"},
            }
        ],
        "exhaustive": ["patrol boat "],
        "usages": [{"target": "it\n", "value": "fuel\ndepot", "evidence": "tanks,\npipes"}],
    }
    (found,) = read_records(write(folder, record), lambda *_: None)
    read = found.record
    assert (read.id, read.license, read.scene.subtype) == ("a 1", "", "RADAR STATION")
    assert read.captions[0].text == "A port. Two ships."
    assert read.objects[0].category == read.exhaustive[0] == "patrol boat"
    assert read.objects[0].attributes == {"a": "b"}
    (usage,) = read.usages
    assert (usage.target, usage.value, usage.evidence) == ("it", "fuel depot", "tanks, pipes")


def test_the_right_option_is_spelled_as_it_is_where_it_is_wrong(folder):
    """Else its spelling would give it away."""
    said = ["Naval Base", "naval-base", "naval base ", "naval base"]
    types = ["port", "port", "port", "barracks"]
    records = [
        {"id": f"{i}", "images": ["a.png"], "scene": {"type": kind, "subtype": subtype}}
        for i, (kind, subtype) in enumerate(zip(types, said, strict=True))
    ]
    others = [
        {"id": f"x{i}", "images": ["a.png"], "scene": {"type": "port", "subtype": f"harbor {i}"}}
        for i in range(3)
    ]
    assert build(write(folder, *records, *others)) == 0
    rows = datasets.load_dataset("rrs", "sc", split="test")
    words = {option for row in rows for option in row["options"]}
    assert words == {"naval base", "harbor 0", "harbor 1", "harbor 2"}
    right = {row["id"]: row["options"][row["answer_index"]] for row in rows}
    assert [right[f"{i}/sc"] for i in range(4)] == ["naval base"] * 4
    assert main(["verify", "rrs"]) == 0


def test_authors_can_print_the_schema(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["build", "rrs", "--print-schema"])
    assert stopped.value.code == 0
    shipped = (files("soubench.builders.rrs") / SCHEMA_FILE).read_text(encoding="utf-8")
    assert capsys.readouterr().out == shipped
