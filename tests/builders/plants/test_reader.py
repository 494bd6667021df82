"""The plant reader: right centers and counts, and every fault by name."""

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image
from plant_files import NAME, RECTANGLES, label_of, rows_of, save_label, write_plant

from soubench.builders.errors import FormatError
from soubench.builders.plants.labels import read_leaf_boxes, read_leaf_counts, read_metadata
from soubench.builders.plants.reader import read
from soubench.builders.plants.report import REASONS
from soubench.builders.scene import ReadReport


def read_all(root):
    report = ReadReport()
    pictures = list(read(root, report))
    assert not {*report.dropped, *report.repaired} - {*REASONS}
    return pictures, report


def test_counts_and_centers_come_from_the_boxes_less_one(tmp_path):
    write_plant(tmp_path)
    (picture,), report = read_all(tmp_path)
    # (4 + 13) / 2 = 8.5 -> 9, (6 + 10) / 2 = 8; (20 + 22) / 2 = 21, (2 + 30) / 2 = 16
    assert {leaf.leaf_id: tuple(leaf.center) for leaf in picture.leaves} == {1: (9, 8), 3: (21, 16)}
    assert (picture.width, picture.height) == (40, 36)
    assert (report.pictures, report.objects) == (1, 2)
    assert not report.dropped
    assert not report.repaired


@pytest.mark.parametrize("given", [".", "..", "Plant", "Plant/Ara2012"])
@pytest.mark.parametrize("above", ["", "Set", "Set/Set"])
def test_the_root_may_be_nested_or_any_folder_of_the_set(tmp_path, given, above):
    root = tmp_path / "here" / above
    write_plant(root)
    assert len(read_all(root / given)[0]) == 1


def test_rotated_boxes_may_reach_outside_and_keep_their_middle(tmp_path):
    path = tmp_path / "x_bbox.csv"
    path.write_text("2,-3,11,-3,25,31,25,31,11\n7,1,11,11,21,21,11,11,1\n")
    leaves, notices = read_leaf_boxes(path, "x")
    # ((-3 - 3 + 31 + 31) / 4 - 1, (11 + 25 + 25 + 11) / 4 - 1) = (13, 17); (44/4 - 1, 44/4 - 1)
    assert [tuple(leaf.center) for leaf in leaves] == [(13, 17), (10, 10)]
    assert leaves[0].quad_xy8 == (-4, 10, -4, 24, 30, 24, 30, 10)
    assert not notices


def test_bad_rows_are_dropped_by_reason_and_line(tmp_path):
    path = tmp_path / "x_bbox.csv"
    path.write_bytes(
        b"\xef\xbb\xbf 1, 60,20,20,50,44,82,84,52\r\n\r\n"
        b"27,88,41,88,59,101,59,101,41\r\n5,50,50,50,50,50,50,50,50\r\n6,10,20,30\r\n"
        b"27,60,60,60,70,70,70,70,60\r\n8,1,2,x,4,5,6,7,8\r\n0,1,1,1,9,9,9,9,1\r\n"
        b"21,41,21,51,34,51,34,41\r\n22,1e308,1e308,-1e308,1e308,-1e308,-1e308,1e308,-1e308\r\n"
        b"23,1,1,1,1000001,9,1000001,9,1\r\n4294967296,1,1,1,9,9,9,9,1\r\n"
        b"24,nan,1,1,9,9,9,9,1\r\n25,1,1,1,inf,9,9,9,1\r\n26,1,1,1,1e999,9,9,9,1\r\n"
    )
    leaves, notices = read_leaf_boxes(path, "x")
    assert [leaf.leaf_id for leaf in leaves] == [1, 27]
    assert tuple(leaves[1].center) == (94, 49)
    assert [(n.reason, n.where) for n in notices] == [
        ("box_without_area", "x:4"),
        ("row_not_9_columns", "x:5"),
        ("leaf_id_repeated", "x:6"),
        ("row_not_numbers", "x:7"),
        ("row_not_numbers", "x:8"),
        ("row_of_tray_plant", "x:9"),
        ("row_out_of_range", "x:10"),
        ("row_out_of_range", "x:11"),
        ("row_out_of_range", "x:12"),
        ("row_not_numbers", "x:13"),
        ("row_not_numbers", "x:14"),
        ("row_not_numbers", "x:15"),
    ]


def _add(folder, row):
    with (folder / f"{NAME}_bbox.csv").open("a") as file:
        file.write(row + "\n")


def _resave(folder, kind, change):
    path = folder / f"{NAME}_{kind}.png"
    with Image.open(path) as image:
        changed = change(image)
    changed.save(path)


def _cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _write_boxes(folder, rectangles):
    (folder / f"{NAME}_bbox.csv").write_text("\n".join(rows_of(rectangles)))


def _shift(folder, dx, dy):
    moved = {i: (x1 + dx, y1 + dy, x2 + dx, y2 + dy) for i, (x1, y1, x2, y2) in RECTANGLES.items()}
    _write_boxes(folder, moved)


DROPS = [
    pytest.param(
        lambda f: (f / f"{NAME}_rgb.png").unlink(), "picture_missing", id="labels without a picture"
    ),
    pytest.param(
        lambda f: (f / f"{NAME}_rgb.png").write_bytes(b""), "picture_empty", id="no bytes"
    ),
    pytest.param(lambda f: _cut(f / f"{NAME}_rgb.png"), "picture_truncated", id="cut picture"),
    pytest.param(lambda f: (f / f"{NAME}_bbox.csv").unlink(), "bbox_missing", id="no boxes"),
    pytest.param(lambda f: (f / f"{NAME}_label.png").unlink(), "label_missing", id="no label"),
    pytest.param(lambda f: _cut(f / f"{NAME}_label.png"), "label_truncated", id="cut label"),
    pytest.param(
        lambda f: _resave(f, "rgb", lambda i: i.resize((36, 40))), "label_size_differs", id="size"
    ),
    pytest.param(
        lambda f: _write_boxes(f, {1: RECTANGLES[1]}), "label_and_boxes_disagree", id="a box short"
    ),
    pytest.param(
        lambda f: _add(f, "9,1,1,1,3,3,3,3,1"), "label_and_boxes_disagree", id="a box too many"
    ),
    pytest.param(
        lambda f: _write_boxes(f, {1: RECTANGLES[3], 3: RECTANGLES[1]}),
        "box_off_its_leaf",
        id="ids swapped",
    ),
    pytest.param(
        lambda f: _write_boxes(f, dict.fromkeys(RECTANGLES, (0, 0, 39, 35))),
        "box_too_large",
        id="boxes of the whole picture",
    ),
    *(
        pytest.param(
            lambda f, dx=dx, dy=dy: _shift(f, dx, dy), "box_off_its_leaf", id=f"shifted {dx},{dy}"
        )
        for dx, dy in [(1, 0), (0, 1), (-1, 0), (0, -1), (2, 2), (3, 0), (0, -3)]
    ),
    pytest.param(
        lambda f: _write_boxes(f, RECTANGLES | {3: (-60, 2, 22, 30)}),
        "box_too_large",
        id="center outside the picture",
    ),
    pytest.param(
        lambda f: (f / "Leaf_counts.csv").write_text(f"{NAME},  3\n"),
        "leaf_counts_disagree",
        id="counted otherwise",
    ),
    pytest.param(
        lambda f: (f / f"{NAME}_bbox.csv").write_text("21,41,21,51,34,51,34,41\n"),
        "row_of_tray_plant",
        id="boxes of a tray",
    ),
]


@pytest.mark.parametrize(("spoil", "reason"), DROPS)
def test_sources_that_disagree_leave_the_picture_out(tmp_path, spoil, reason):
    folder = write_plant(tmp_path)
    write_plant(tmp_path, name="ara2012_plant002")
    spoil(folder)
    pictures, report = read_all(tmp_path)
    assert [picture.name for picture in pictures] == ["ara2012_plant002"]
    assert report.dropped[reason] == 1
    assert NAME in report.examples[reason][0]


def test_a_row_of_huge_numbers_is_counted_and_the_others_count(tmp_path):
    folder = write_plant(tmp_path)
    _add(folder, "7,1e308,1e308,-1e308,1e308,-1e308,-1e308,1e308,-1e308")
    pictures, report = read_all(tmp_path)
    assert [len(picture.leaves) for picture in pictures] == [2]
    assert report.dropped == {"row_out_of_range": 1}


def test_a_label_broken_in_the_middle_is_dropped(tmp_path):
    folder = write_plant(tmp_path)
    path = folder / f"{NAME}_label.png"
    rng = np.random.default_rng(0)
    save_label(rng.integers(0, 200, (36, 40), dtype=np.uint8), path)
    data = bytearray(path.read_bytes())
    data[-200] ^= 0xFF
    path.write_bytes(data)
    assert read_all(tmp_path)[1].dropped == {"label_unreadable": 1}


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA"])
def test_a_label_in_colors_is_an_error_that_says_what_it_must_be(tmp_path, mode):
    folder = write_plant(tmp_path)
    _resave(folder, "label", lambda image: image.convert(mode))
    with pytest.raises(FormatError, match=f"{NAME}_label.png: expected an index image"):
        read_all(tmp_path)


def test_a_gray_label_is_an_index_image_too(tmp_path):
    folder = write_plant(tmp_path)
    Image.fromarray(label_of(RECTANGLES)).save(folder / f"{NAME}_label.png")
    assert len(read_all(tmp_path)[0]) == 1


def test_a_missing_center_point_is_a_notice(tmp_path):
    folder = write_plant(tmp_path)
    points = np.zeros((36, 40), dtype=np.uint8)
    points[8, 8] = 1
    save_label(points, folder / f"{NAME}_centers.png")
    pictures, report = read_all(tmp_path)
    assert len(pictures[0].leaves) == 2
    assert report.repaired == {"center_points_differ": 1}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(_cut, "cut short", id="cut"),
        pytest.param(lambda path: path.write_bytes(b""), "no bytes", id="empty"),
        pytest.param(lambda path: path.write_bytes(b"GIF89a"), "cannot be read", id="no PNG"),
        pytest.param(
            lambda path: Image.new("RGB", (40, 36)).save(path), "expected an index", id="colors"
        ),
    ],
)
def test_a_broken_centers_picture_is_a_notice_that_names_it(tmp_path, spoil, why):
    folder = write_plant(tmp_path)
    points = np.random.default_rng(0).integers(0, 2, (36, 40), dtype=np.uint8)
    save_label(points, folder / f"{NAME}_centers.png")
    spoil(folder / f"{NAME}_centers.png")
    pictures, report = read_all(tmp_path)
    assert len(pictures) == 1
    assert report.repaired == {"centers_unreadable": 1}
    (example,) = report.examples["centers_unreadable"]
    assert example.startswith(f"ara2012/{NAME}: {NAME}_centers.png: ")
    assert why in example
    assert "label" not in example


def test_a_label_without_leaves_and_boxes_is_a_picture_without_leaves(tmp_path):
    folder = write_plant(tmp_path)
    _resave(folder, "label", lambda image: image.point([0] * 256))
    (folder / f"{NAME}_bbox.csv").write_text("")
    assert [picture.leaves for picture in read_all(tmp_path)[0]] == [()]


values = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.text(max_size=4),
    st.sampled_from(("1e308", "-1e308", "1e-320", "0x1", "1_0", "٣", "9" * 400)),
)
FUZZED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _read_or_refuse(tmp_path, kind, data):
    """Read a plant with other bytes in one file: its one true picture, a drop or our error."""
    folder = tmp_path / "Plant/Ara2012"
    if not folder.exists():
        write_plant(tmp_path)
    path = folder / (f"{NAME}_bbox.csv" if kind == "bbox" else f"{kind}.csv")
    path.write_bytes(data)
    try:
        pictures, report = read_all(tmp_path)
    except FormatError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert str(path) in refused
        return
    assert len(pictures) == 1 or report.dropped
    for picture in pictures:
        # Where the boxes fit the label to half a px, the centers do too.
        assert {leaf.leaf_id for leaf in picture.leaves} == set(RECTANGLES)
        for leaf in picture.leaves:
            x1, y1, x2, y2 = RECTANGLES[leaf.leaf_id]
            assert abs(leaf.center.x - (x1 + x2) / 2) <= 1.5
            assert abs(leaf.center.y - (y1 + y2) / 2) <= 1.5


@FUZZED
@given(row=st.integers(0, 1), column=st.integers(0, 8), value=values)
@example(row=0, column=3, value="1e308")
@example(row=1, column=0, value="1e308")
def test_any_value_in_a_box_is_reported_or_refused(tmp_path, row, column, value):
    lines = [line.split(",") for line in rows_of(RECTANGLES)]
    lines[row][column] = value
    text = "\n".join(map(",".join, lines))
    _read_or_refuse(tmp_path, "bbox", text.encode("utf-8", "surrogatepass"))


@FUZZED
@given(
    kind=st.sampled_from(("bbox", "Leaf_counts")),
    place=st.integers(0, 60),
    data=st.binary(max_size=3),
)
def test_any_bytes_in_a_table_are_reported_or_refused(tmp_path, kind, place, data):
    whole = "\n".join(rows_of(RECTANGLES) if kind == "bbox" else [f"{NAME}, 2"]).encode()
    (tmp_path / "Plant/Ara2012/Leaf_counts.csv").unlink(missing_ok=True)
    if kind != "bbox" and (tmp_path / "Plant").exists():
        write_plant(tmp_path)
    _read_or_refuse(tmp_path, kind, whole[:place] + data + whole[place + len(data) :])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a, 15\nb,  4\n\na, 15\n", {"a": 15, "b": 4}, id="padding, blank, repeat"),
        pytest.param("a, 15\nc,\n", ":2: expected a plant and its number", id="empty count"),
        pytest.param("a, 15\n\na, 14\n", ":3: a has 15 leaves", id="two counts"),
        pytest.param("a, 15, 3\n", ":1: expected a plant", id="three fields"),
        pytest.param("a, many\n", ":1: expected a plant", id="no number"),
    ],
)
def test_leaf_counts(tmp_path, text, expected):
    path = tmp_path / "Leaf_counts.csv"
    path.write_text(text)
    if isinstance(expected, dict):
        assert read_leaf_counts(path) == expected
    else:
        with pytest.raises(FormatError, match=expected):
            read_leaf_counts(path)


def test_a_counted_plant_without_files_is_a_notice(tmp_path):
    folder = write_plant(tmp_path)
    (folder / "Leaf_counts.csv").write_text(f"{NAME},  2\nara2012_plant999, 7\n")
    pictures, report = read_all(tmp_path)
    assert len(pictures) == 1
    assert report.repaired == {"counted_plant_without_files": 1}


def test_metadata_is_trimmed_and_contradictions_are_errors(tmp_path):
    path = tmp_path / "Metadata.csv"
    path.write_text("p1,  mutA, No, 400\nt1, Genus species cv. Name,  T1 100,   8\n")
    assert read_metadata(path)["p1"] == ("mutA", "No", "400")
    assert read_metadata(path)["t1"].treatment == "T1 100"
    path.write_text("p1, mutA, No, 400\np1, mutB, No, 400\n")
    with pytest.raises(FormatError, match=":2: p1 is described differently"):
        read_metadata(path)
    path.write_text("p1, mutA\n")
    with pytest.raises(FormatError, match="found 2 fields"):
        read_metadata(path)


def test_plants_are_told_apart_by_genotype_treatment_and_stack(tmp_path):
    folder = write_plant(tmp_path, "Plant/Ara2013-Canon", "ara2013_plant001")
    write_plant(tmp_path, "Plant/Ara2013-Canon", "ara2013_plant002")
    (folder / "Metadata.csv").write_text("ara2013_plant001, ein2, No, 392\n")
    folder = write_plant(tmp_path, "Plant/Tobacco", "tobacco_plant001")
    (folder / "Metadata.csv").write_text("tobacco_plant001, N. tabacum cv. S,  T7 933,   6\n")
    write_plant(tmp_path, "Stacks/Ara2012/stack_02", "ara2012_plant02_frame01")
    pictures, report = read_all(tmp_path)
    assert [picture.plant_id for picture in pictures] == [
        "ara2013-canon/ein2",
        "tobacco/T7 933",
        "stacks-ara2012/stack_02",
    ]
    assert report.dropped == {"plant_without_genotype": 1}


def test_genotypes_are_needed(tmp_path):
    write_plant(tmp_path, "Plant/Ara2013-Canon", "ara2013_plant001")
    with pytest.raises(FormatError, match=r"Plant/Ara2013-Canon: expected Metadata\.csv"):
        read_all(tmp_path)


def test_pictures_without_leaf_labels_are_counted(tmp_path):
    write_plant(tmp_path)
    for place in ("Plant/Ara2013-RPi/ara2013_plant001", "Tray/Ara2012/ara2012_tray01"):
        path = tmp_path / f"{place}_rgb.png"
        path.parent.mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(path)
    _, report = read_all(tmp_path)
    assert report.dropped == {"rpi_picture_without_labels": 1, "tray_picture": 1}


def test_wrong_folders_are_named(tmp_path):
    with pytest.raises(FormatError, match="no such folder"):
        read_all(tmp_path / "none")
    with pytest.raises(FormatError, match="expected Plant/Ara2012"):
        read_all(tmp_path)
    write_plant(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(FormatError, match="twice"):
        read_all(tmp_path)
