"""The table of sources, and what no label file may do to any reader."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soubench.builders.errors import SoubenchError
from soubench.builders.sources import SOURCES
from tests.data import coco_document, draw_picture, read_all, record

COCO_LIKE = ("soda-d", "ai-tod", "ruod", "coco")
NUMBERS = st.floats() | st.integers() | st.floats(-10, 80) | st.integers(-3, 70)
"""Any number, and as often one that is near the picture."""
FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def test_table_lists_the_formats_and_their_splits() -> None:
    assert {name: (s.name, s.test_split, s.train_split) for name, s in SOURCES.items()} == {
        "soda-d": ("soda-d", "val", "train"),
        "visdrone": ("visdrone", "val", "train"),
        "ai-tod": ("ai-tod", "val", "train"),
        "soda-a": ("soda-a", "val", "train"),
        "ruod": ("ruod", "test", "train"),
        "coco": ("coco", "val", "train"),
        "yolo": ("yolo", "val", "train"),
        "voc": ("voc", "val", "train"),
        "dota": ("dota", "val", "train"),
    }
    counts = {name: len(source.categories or ()) for name, source in SOURCES.items()}
    assert counts == {
        "soda-d": 9,
        "visdrone": 10,
        "ai-tod": 8,
        "soda-a": 9,
        "ruod": 10,
        "coco": 0,
        "yolo": 0,
        "voc": 0,
        "dota": 0,
    }


def test_importing_the_table_stays_light() -> None:
    code = (
        "import sys; import soubench.builders.sources; "
        "print(sorted({'torch', 'datasets', 'shapely', 'pandas', 'requests'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _coco_like(name: str) -> dict:
    names = SOURCES[name].categories or ("ship", "car")
    more = {"segmentation": [[2, 2, 6, 2, 6, 5]]} if name == "coco" else {}
    return coco_document(
        names,
        images=[
            {"id": 1, "file_name": "a.jpg", "width": 64, "height": 48},
            {"id": 2, "file_name": "sub/b.jpg", "width": 64, "height": 48},
        ],
        annotations=[
            record(1, [1, 2, 30.5, 4], iscrowd=0, ignore=0, **more),
            record(2, [50, 2, 30, 4], image=2, category=2),
            record(
                3,
                [0, 0, 2, 48],
                category=2,
                segmentation={"counts": [0, 96, 2976], "size": [48, 64]},
            ),
        ],
    )


def _soda_a(_: str) -> dict:
    names = SOURCES["soda-a"].categories or ()
    return {
        "images": {"width": 64, "height": 48},
        "categories": [{"id": i, "name": name} for i, name in enumerate((*names, "ignore"))],
        "annotations": [
            {"id": 0, "category_id": 2, "poly": [1, 1, 20, 1, 20, 30.5, 1, 30], "ignore": 0},
            {"id": 1, "category_id": "9", "poly": [5, 5, 70, 5, 30, 60]},
            {"id": 2, "category_id": 3, "poly": [50, 40, 70, 40, 70, 60, 50, 60]},
        ],
    }


def _lay_out(folder: Path, name: str, content: bytes) -> Path:
    """Put a label file where its reader finds it; return what to point the reader at."""
    for picture in ("a.jpg", "sub/b.jpg"):
        if not (folder / "val" / "images" / picture).exists():
            draw_picture(folder / "val" / "images" / picture)
    suffix = ".txt" if name == "visdrone" else ".json"
    label = folder / "val" / "annotations" / f"a{suffix}"
    label.parent.mkdir(parents=True, exist_ok=True)
    label.write_bytes(content)
    return label if name in COCO_LIKE else folder / "val"


def _read_or_refuse(folder: Path, name: str, content: bytes) -> None:
    """Read; whatever the file holds, the outcome is consistent scenes or an error of ours."""
    try:
        scenes, report = read_all(name, _lay_out(folder, name, content))
    except SoubenchError:
        return
    assert report.objects == sum(len(scene.objects) for scene in scenes)
    assert report.pictures == len(scenes)
    json.dumps(report.as_dict())
    for scene in scenes:
        for found in scene.objects:
            assert found.ignore or found.category in report.categories
            box = found.box_xyxy
            assert 0 <= box.x1 < box.x2 <= scene.width
            assert 0 <= box.y1 < box.y2 <= scene.height
            assert 0 < found.area_px <= scene.width * scene.height


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(),
    st.floats(-10, 80),
    st.sampled_from(["", "1", "nan", "1e999", "a.jpg", "../../a.jpg", "\ud800", "🚢", "x" * 300]),
    st.sampled_from([10**400, -(10**400), 1e308, -0.0]),
    st.lists(st.integers(-99, 99), max_size=9),
    st.lists(st.floats(), min_size=4, max_size=8),
    st.recursive(
        st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=4,
    ),
)


def _places(value: object, path: tuple = ()) -> list[tuple]:
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


def _put(document: object, place: tuple, value: object) -> object:
    if not place:
        return value
    changed = copy.deepcopy(document)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


@FUZZ
@pytest.mark.parametrize("name", [*COCO_LIKE, "soda-a"])
@given(data=st.data())
def test_any_json_value_gives_scenes_or_our_error(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    document: object = (_soda_a if name == "soda-a" else _coco_like)(name)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(_places(document)))
        document = _put(document, place, data.draw(_VALUES))
    _read_or_refuse(tmp_path, name, json.dumps(document).encode())


VISDRONE = b"0,0,30,40,0,0,0,0\n1,2,30,4,1,4,0,1\n10,20,9,9,1,10,1,2,\n50,30,90,90,0,5,0,0\n"


@FUZZ
@pytest.mark.parametrize("name", [*COCO_LIKE, "soda-a", "visdrone"])
@given(data=st.data())
def test_any_changed_bytes_give_scenes_or_our_error(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    content = bytearray(VISDRONE)
    if name != "visdrone":
        content = bytearray(
            json.dumps((_soda_a if name == "soda-a" else _coco_like)(name)).encode()
        )
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        content = content or bytearray(b" ")
    _read_or_refuse(tmp_path, name, bytes(content))


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 7), NUMBERS), min_size=1, max_size=3))
def test_any_number_in_a_visdrone_row_gives_a_scene_or_our_error(
    tmp_path: Path, changes: list[tuple[int, float]]
) -> None:
    fields: list[float] = [10, 20, 9, 9, 1, 4, 0, 0]
    for place, number in changes:
        fields[place] = number
    row = ",".join(map(str, fields))
    _read_or_refuse(tmp_path, "visdrone", f"0,0,9,40,0,0,0,0\n{row}\n".encode())
