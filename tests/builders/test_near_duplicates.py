"""Perceptual hashes are imagehash's; the search finds every pair of near hashes and no other."""

import sys
from hashlib import sha256

import imagehash
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from soubench.builders.demo_scenes import write_demo_source
from soubench.builders.errors import BuildError, PictureError
from soubench.builders.images import load_picture
from soubench.builders.near_duplicates import (
    FLAT,
    hash_picture,
    near_duplicates,
    perceptual_hash,
)
from soubench.builders.publishing.export import pixels_of_file


def noise(seed, size_wh=(80, 60)):
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(small).resize(size_wh, Image.Resampling.BICUBIC)


def brute(hashes_a, hashes_b, max_distance):
    return [
        [i, j, (x ^ y).bit_count()]
        for i, x in enumerate(hashes_a)
        for j, y in enumerate(hashes_b)
        if (x ^ y).bit_count() <= max_distance
    ]


def found(hashes_a, hashes_b, max_distance):
    a, b = (np.array(h, dtype=np.uint64) for h in (hashes_a, hashes_b))
    return near_duplicates(a, b, max_distance).tolist()


any_hash = st.integers(0, 2**64 - 1)
few_bits = st.integers(0, 2**64 - 1).flatmap(
    lambda base: st.lists(
        st.lists(st.integers(0, 63), max_size=7).map(
            lambda bits: base ^ sum(1 << bit for bit in set(bits))
        ),
        max_size=30,
    )
)
"""Hashes around one, so that many are near each other."""


@given(few_bits, few_bits, st.lists(any_hash, max_size=30), st.integers(0, 64))
def test_the_search_finds_what_comparing_all_pairs_finds(near, others, some, max_distance):
    a, b = near + some, some[::2] + others + near[::3]
    assert found(a, b, max_distance) == brute(a, b, max_distance)


@pytest.mark.parametrize("max_distance", [0, 1, 4, 7, 15, 16])
@pytest.mark.parametrize("bits", [64, 12], ids=["random", "much alike"])
def test_large_sets_are_searched_as_exactly(bits, max_distance):
    rng = np.random.default_rng(max_distance)
    a, b = (rng.integers(0, 1 << bits, n, dtype=np.uint64) for n in (1500, 900))
    b[:300] = a[:300]
    for k in range(300):
        flips = rng.choice(64, k % (max_distance + 3), replace=False).astype(np.uint64)
        b[k] ^= np.bitwise_or.reduce(np.uint64(1) << flips, initial=np.uint64(0))
    distance = np.bitwise_count(a[:, None] ^ b)
    i, j = np.nonzero(distance <= max_distance)
    expected = np.column_stack((i, j, distance[i, j]))
    np.testing.assert_array_equal(near_duplicates(a, b, max_distance), expected)
    assert len(expected) >= 300 * (max_distance + 1) // (max_distance + 3)


def test_nothing_is_near_an_empty_set():
    assert found([], [1, 2], 4) == []
    assert found([1, 2], [], 4) == []
    assert near_duplicates(np.array([]), np.array([]), 64).shape == (0, 3)


@pytest.mark.parametrize("distance", [-1, 65])
def test_a_distance_that_cannot_be_is_refused(distance):
    with pytest.raises(ValueError, match="0 to 64 bits"):
        near_duplicates(np.array([1]), np.array([1]), distance)


def test_the_hash_is_that_of_imagehash(tmp_path):
    write_demo_source("visdrone", tmp_path, pictures=3)
    pictures = [load_picture(path) for path in sorted(tmp_path.rglob("*.jpg"))]
    assert pictures
    for image in (*pictures, noise(0), noise(1), noise(2, (31, 32)), noise(3, (32, 32))):
        assert f"{perceptual_hash(image):016x}" == str(imagehash.phash(image))


def test_a_picture_is_known_again_by_file_by_pixels_and_by_look(tmp_path):
    image = noise(0, (160, 120))
    image.save(tmp_path / "a.png")
    image.save(tmp_path / "a.bmp")
    image.save(tmp_path / "a.jpg", quality=60)
    png, bmp, jpg = (hash_picture(tmp_path / f"a.{suffix}") for suffix in ("png", "bmp", "jpg"))
    assert png.sha256 == sha256((tmp_path / "a.png").read_bytes()).hexdigest()
    assert len({png.sha256, bmp.sha256, jpg.sha256}) == 3
    assert png.pixels_sha256 == bmp.pixels_sha256 == pixels_of_file(tmp_path / "a.png")
    assert png.pixels_sha256 != jpg.pixels_sha256
    assert png.phash == bmp.phash
    assert found([png.phash], [jpg.phash], 4)


def test_a_turned_picture_is_hashed_upright(tmp_path):
    image, exif = noise(4), Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / "turned.png", exif=exif)
    image.transpose(Image.Transpose.ROTATE_270).save(tmp_path / "upright.png")
    turned, upright = (hash_picture(tmp_path / f"{n}.png") for n in ("turned", "upright"))
    assert turned[1:] == upright[1:]


@pytest.mark.parametrize("color", ["black", "white", (1, 2, 3)])
def test_pictures_of_one_color_have_no_perceptual_hash(color):
    image = Image.new("RGB", (50, 40), color)
    assert perceptual_hash(image) == FLAT
    image.putpixel((0, 0), (255, 0, 0) if color != "white" else (0, 0, 0))
    assert perceptual_hash(image) != FLAT


def test_a_damaged_picture_is_refused_with_its_reason(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no picture")
    with pytest.raises(PictureError) as caught:
        hash_picture(tmp_path / "a.jpg")
    assert caught.value.reason == "picture_unreadable"


def test_a_base_install_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "imagehash", None)
    with pytest.raises(BuildError, match=r"soubench\[overlap\]"):
        perceptual_hash(noise(0))
