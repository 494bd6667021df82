"""Write drawn sites as pictures and records, with every fact that is known of them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from soubench.builders.demo_rrs.draw import draw_site
from soubench.builders.demo_rrs.items import KINDS, Item, Point
from soubench.builders.demo_rrs.sites import SUBTYPES, DemoSite, changed_site, make_site
from soubench.builders.keyed import KeyedRandom
from soubench.builders.rrs.masks import Outline
from soubench.builders.rrs.record import (
    Caption,
    Change,
    Expression,
    Facility,
    FacilityAttribute,
    Measurement,
    Object,
    Orientation,
    Record,
    Scene,
    TemporalFact,
    Usage,
)
from soubench.builders.rrs.taxonomy import ChangeKind

Quad: TypeAlias = tuple[float, float, float, float, float, float, float, float]

JPEG_QUALITY = 92
CHANGES: tuple[ChangeKind, ...] = ("appeared", "disappeared", "moved", "altered")
LICENSE = "CC0-1.0"
PROVENANCE = "drawn by soubench"
SIGNS = {
    "spring": "the trees are in blossom",
    "summer": "the trees and the grass are a full green",
    "autumn": "the leaves of the trees have turned",
    "winter": "snow lies on the ground",
}


def write_demo_records(folder: Path, *, sites: int, pairs: int, seed: int = 0) -> Path:
    """Draw sites and pairs, and write ``records.jsonl`` beside their pictures.

    Args:
        folder: Where ``records.jsonl`` and ``pictures/`` go.
        sites: Number of single pictures; the twelve subtypes take turns.
        pairs: Number of pairs of one place at two times; the changes take turns.
        seed: Seed of everything.

    Returns:
        The file of records.
    """
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    path = folder / "records.jsonl"
    with path.open("wb") as file:
        for number in range(sites):
            file.write(msgspec.json.encode(_write_site(folder, number, seed)) + b"\n")
        for number in range(pairs):
            file.write(msgspec.json.encode(_write_pair(folder, number, seed)) + b"\n")
    return path


def _write_site(folder: Path, number: int, seed: int) -> Record:
    site = make_site(number, seed)
    name = f"{site.subtype.scene.replace(' ', '-')}-{number:04d}"
    # Every third picture is a PNG, as in the sets that people have.
    suffix = "png" if number % 3 == 2 else "jpg"
    image = draw_site(site)
    image.save(folder / "pictures" / f"{name}.{suffix}", quality=JPEG_QUALITY)
    return _record(site, name, f"pictures/{name}.{suffix}", seed)


def _record(site: DemoSite, name: str, image: str, seed: int) -> Record:
    rng = KeyedRandom("demo-rrs", seed, site.number, "record")
    subtype = site.subtype
    ids = [f"{item.kind.replace(' ', '-')}-{i}" for i, item in enumerate(site.items)]
    missing = [kind for kind in KINDS if not site.count(kind)]
    return Record(
        id=name,
        images=[image],
        source="demo",
        license=LICENSE,
        provenance=PROVENANCE,
        human_verified=True,
        gsd_m=site.gsd_m,
        north_deg=site.north_deg,
        scene=Scene(type=subtype.scene, subtype=subtype.name, evidence=subtype.sign),
        captions=[Caption(text=text) for text in _captions(site)],
        objects=[_object(item, own) for item, own in zip(site.items, ids, strict=True)],
        exhaustive=list(KINDS),
        expressions=list(_expressions(site, ids)) if site.number % 2 else [],
        absent=[
            Facility(name=kind, evidence=f"no {kind} is drawn on this site")
            for kind in rng.sample(missing, 2)
        ],
        orientations=list(_orientations(site)),
        measurements=list(_measurements(site)),
        usages=[Usage(target="this facility", value=subtype.usage, evidence=subtype.sign)],
        facility_attributes=[
            FacilityAttribute(
                target="this facility",
                aspect="nature",
                value=subtype.nature,
                evidence=subtype.sign,
            )
        ],
        temporal=[TemporalFact(aspect="season", value=site.season, evidence=SIGNS[site.season])],
    )


def _object(item: Item, own: str) -> Object:
    points = [round(v, 2) for point in item.outline() for v in point]
    corners = [(round(x, 2), round(y, 2)) for x, y in item.corners()]
    box = (min(points[0::2]), min(points[1::2]), max(points[0::2]), max(points[1::2]))
    return Object(
        id=own,
        category=item.kind,
        box_xyxy=box,
        quad_xy8=_quad(corners) if KINDS[item.kind].is_box else None,
        mask=Outline(polygons=[points]),
        attributes={"color": item.color} if len(KINDS[item.kind].colors) > 1 else {},
    )


def _quad(corners: list[Point]) -> Quad:
    (x1, y1), (x2, y2), (x3, y3), (x4, y4) = corners
    return x1, y1, x2, y2, x3, y3, x4, y4


def _expressions(site: DemoSite, ids: list[str]) -> Iterator[Expression]:
    """Name what is alone in its color among its kind."""
    colors = Counter((item.kind, item.color) for item in site.items)
    for item, own in zip(site.items, ids, strict=True):
        if colors[item.kind, item.color] == 1 and site.count(item.kind) > 1:
            yield Expression(
                text=f"the {item.color} {item.kind}",
                object=own,
                evidence=f"only one {item.kind} is {item.color}",
            )
            return


def _orientations(site: DemoSite) -> Iterator[Orientation]:
    for item in site.items:
        if item.kind == "runway":
            # An angle of 0 points to the right, which is a bearing of 90 where north is up.
            bearing = (item.angle_deg + 90 - site.north_deg) % 180
            yield Orientation(
                target="the runway", bearing_deg=bearing, box_xyxy=_object(item, "").box_xyxy
            )


def _measurements(site: DemoSite) -> Iterator[Measurement]:
    for item in site.items:
        if item.kind == "runway":
            yield Measurement(
                kind="length", target="the runway", value=round(item.length * site.gsd_m, 1)
            )


def _captions(site: DemoSite) -> Iterator[str]:
    counts = Counter(item.kind for item in site.items)
    listed = [f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items()]
    shown = ", ".join(listed[:-1]) + (" and " if len(listed) > 1 else "") + listed[-1]
    article = "An" if site.subtype.name[0] in "aeiou" else "A"
    yield f"{article} {site.subtype.name} in {site.season}, with {shown}."
    article = "an" if site.subtype.scene[0] in "aeiou" else "a"
    yield f"The image shows {article} {site.subtype.scene} in {site.season}: {site.subtype.sign}."


def _write_pair(folder: Path, number: int, seed: int) -> Record:
    change = CHANGES[number % len(CHANGES)]
    # Single pictures show other sites.
    base = make_site(len(SUBTYPES) * 1000 + number, seed)
    before, after, kind, item = changed_site(base, seed, change)
    name = f"pair-{number:04d}"
    images = []
    for when, site in (("before", before), ("after", after)):
        images.append(f"pictures/{name}-{when}.jpg")
        draw_site(site).save(folder / images[-1], quality=JPEG_QUALITY)
    box = _object(item, "").box_xyxy
    changes = [
        Change(
            target=f"the {kind}",
            kind=change,
            evidence=f"the {kind} has {change}" if change != "altered" else "its color changed",
            before_box_xyxy=box if change == "disappeared" else None,
            after_box_xyxy=box if change != "disappeared" else None,
        )
    ]
    same = [k for k in dict.fromkeys(i.kind for i in base.items) if base.count(k) == 1]
    if same:
        changes.append(Change(target=f"the {same[0]}", kind="unchanged"))
    return Record(
        id=name,
        images=images,
        source="demo",
        license=LICENSE,
        provenance=PROVENANCE,
        human_verified=True,
        changes=changes,
    )
