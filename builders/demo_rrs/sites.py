"""Sites as data: what stands where, in which season, and which facts hold.

Every draw is keyed by seed and number of the site. Things never overlap, so that counts, masks and
directions are exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot
from types import MappingProxyType

from soubench.builders.demo_rrs.items import KINDS, Item
from soubench.builders.keyed import KeyedRandom
from soubench.builders.rrs.taxonomy import ChangeKind, SceneType

SIZE_WH = (640, 480)
MARGIN_PX = 12.0
GAP_PX = 10.0
TRIES = 400
MOVED_PX = 120.0
"""What has moved, has moved at least this far."""
SEASONS = ("spring", "summer", "autumn", "winter")


@dataclass(frozen=True, slots=True)
class Subtype:
    """One subtype of a scene type.

    Attributes:
        scene: The scene type.
        name: Name of the subtype.
        plan: (kind, least number, largest number), the large ones first.
        usage: Main use.
        nature: ``military``, ``civilian`` or ``dual-use``.
        sign: What shows the use.
        ground: What the ground looks like: ``water``, ``apron``, ``clearing``, ``roads``,
            ``yard`` or ``track``.
        fence: There is a fence around it.
    """

    scene: SceneType
    name: str
    plan: tuple[tuple[str, int, int], ...]
    usage: str
    nature: str
    sign: str
    ground: str
    fence: bool = True


SUBTYPES: tuple[Subtype, ...] = (
    Subtype(
        "port",
        "naval base",
        (("pier", 1, 3), ("ship", 2, 5), ("crane", 0, 2), ("building", 1, 2), ("vehicle", 0, 3)),
        "maritime operations",
        "military",
        "warships lie at piers behind a fence",
        "water",
    ),
    Subtype(
        "port",
        "oil terminal",
        (("pier", 1, 1), ("ship", 1, 2), ("storage tank", 4, 8), ("building", 1, 1)),
        "fuel supply",
        "civilian",
        "storage tanks stand beside a tanker's pier, and there is no fence",
        "water",
        fence=False,
    ),
    Subtype(
        "airport",
        "air base",
        (("runway", 1, 1), ("hangar", 2, 4), ("plane", 2, 6), ("vehicle", 0, 3)),
        "air operations",
        "military",
        "planes stand before hangars beside a runway, behind a fence",
        "apron",
    ),
    Subtype(
        "airport",
        "heliport",
        (("hangar", 1, 2), ("helipad", 3, 6), ("building", 1, 1), ("vehicle", 1, 4)),
        "passenger transport",
        "dual-use",
        "helipads lie in the open, and there is no runway",
        "apron",
        fence=False,
    ),
    Subtype(
        "radar facility",
        "early-warning radar",
        (("phased-array building", 1, 1), ("building", 1, 2), ("radome", 0, 2), ("vehicle", 0, 2)),
        "long-range surveillance",
        "military",
        "the slanted face of a large building carries an array",
        "clearing",
    ),
    Subtype(
        "radar facility",
        "antenna field",
        (("building", 1, 1), ("dish antenna", 4, 8), ("radome", 1, 3), ("watchtower", 0, 2)),
        "reconnaissance by signals",
        "military",
        "many dish antennas point to the sky",
        "clearing",
    ),
    Subtype(
        "launch site",
        "mobile launcher site",
        (("launch pad", 1, 1), ("launcher", 3, 8), ("vehicle", 1, 4), ("radome", 0, 1)),
        "firepower strike",
        "military",
        "launchers stand around a pad",
        "roads",
    ),
    Subtype(
        "launch site",
        "silo field",
        (("silo", 4, 8), ("building", 1, 1), ("watchtower", 1, 2), ("vehicle", 0, 2)),
        "strategic deterrence",
        "military",
        "silo lids lie far apart behind a fence",
        "roads",
    ),
    Subtype(
        "barracks",
        "garrison",
        (("building", 4, 7), ("vehicle", 1, 5), ("watchtower", 1, 3)),
        "housing of troops",
        "military",
        "long roofs stand around a yard with watchtowers",
        "yard",
    ),
    Subtype(
        "barracks",
        "vehicle depot",
        (("hangar", 2, 3), ("vehicle", 6, 12), ("battle tank", 1, 4), ("building", 1, 1)),
        "logistics support",
        "military",
        "many vehicles are parked beside halls",
        "yard",
    ),
    Subtype(
        "training ground",
        "firing range",
        (("target", 3, 7), ("battle tank", 1, 4), ("building", 1, 1), ("watchtower", 0, 1)),
        "firing practice",
        "military",
        "rings of targets lie before tanks",
        "track",
        fence=False,
    ),
    Subtype(
        "training ground",
        "obstacle course",
        (("obstacle", 5, 9), ("vehicle", 1, 3), ("building", 1, 1)),
        "fitness training",
        "military",
        "obstacles stand along a track",
        "track",
        fence=False,
    ),
)

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DemoSite:
    """One site at one time.

    Attributes:
        number: Its number.
        subtype: What it is.
        season: When it is seen.
        items: What stands there; nothing overlaps.
        trees: (x, y, radius) in px.
        angle_deg: Direction that most things follow.
        gsd_m: m per px.
        north_deg: Where north is, degrees clockwise from the top.
        texture: Seed of the ground's texture.
    """

    number: int
    subtype: Subtype
    season: str
    items: tuple[Item, ...]
    trees: tuple[tuple[float, float, float], ...]
    angle_deg: float
    gsd_m: float
    north_deg: float
    texture: int

    def count(self, kind: str) -> int:
        """Return how many items of a kind there are."""
        return sum(item.kind == kind for item in self.items)


def make_site(number: int, seed: int) -> DemoSite:
    """Make a site; its subtype follows from its number."""
    rng = KeyedRandom("demo-rrs", seed, number)
    subtype = SUBTYPES[number % len(SUBTYPES)]
    angle = float(rng.choice((0, 0, 8, -8, 15)))
    items: list[Item] = []
    for kind, least, most in subtype.plan:
        for _ in range(rng.integer(least, most)):
            item = _place(kind, items, subtype, angle, rng)
            if item is not None:
                items.append(item)
    trees = _trees(items, subtype, rng)
    return DemoSite(
        number=number,
        subtype=subtype,
        season=rng.choice(SEASONS),
        items=tuple(items),
        trees=trees,
        angle_deg=angle,
        gsd_m=rng.choice((0.3, 0.5, 0.8, 1.0)),
        north_deg=float(rng.choice((0, 0, 0, 30, 90, 145, 270))),
        texture=rng.below(1 << 30),
    )


def changed_site(
    site: DemoSite, seed: int, change: ChangeKind
) -> tuple[DemoSite, DemoSite, str, Item]:
    """Return a site before and after a change of one thing that is alone of its kind.

    Args:
        site: Where it happens.
        seed: Seed of the draws.
        change: ``appeared``, ``disappeared``, ``moved`` or ``altered``.

    Returns:
        Before, after, the kind, and the thing as it is last seen.
    """
    rng = KeyedRandom("demo-rrs", seed, site.number, "change", change)
    new = [kind for kind in ("radome", "hangar", "storage tank", "helipad") if not site.count(kind)]
    kind = rng.choice(new)
    there = _placed(kind, site.items, site.subtype, rng)
    before = replace(site, items=(*site.items, there), trees=_clear(site, there))
    gone = replace(site, trees=before.trees)
    if change == "appeared":
        return gone, before, kind, there
    if change == "disappeared":
        return before, gone, kind, there
    if change == "moved":
        away = _moved(there, before.items, site.subtype, rng)
        after = replace(site, items=(*site.items, away), trees=_clear(before, away))
        return replace(before, trees=after.trees), after, kind, away
    colors = [color for color in KINDS[kind].colors if color != there.color]
    other = replace(there, color=rng.choice(colors))
    return before, replace(before, items=(*site.items, other)), kind, other


def _placed(kind: str, items: Sequence[Item], subtype: Subtype, rng: KeyedRandom) -> Item:
    for shrink in range(6):
        item = _place(kind, items, subtype, 0.0, rng, scale=0.85**shrink)
        if item is not None:
            return item
    raise ValueError(f"no room for a {kind}")


def _moved(item: Item, items: Sequence[Item], subtype: Subtype, rng: KeyedRandom) -> Item:
    """Return the same thing far from where it was, and from everything else."""
    width, height = SIZE_WH
    low, high = _band(item.kind, subtype)
    for _ in range(TRIES * 10):
        x = round(rng.uniform(MARGIN_PX, width - MARGIN_PX), 1)
        y = round(rng.uniform(low * height, high * height), 1)
        away = replace(item, x=x, y=y)
        far = hypot(x - item.x, y - item.y) >= MOVED_PX
        if far and _inside(away, low * height, high * height) and not _collides(away, items):
            return away
    raise ValueError(f"no room to move a {item.kind}")


def _place(
    kind: str,
    items: Sequence[Item],
    subtype: Subtype,
    angle: float,
    rng: KeyedRandom,
    *,
    scale: float = 1.0,
) -> Item | None:
    rule = KINDS[kind]
    width, height = SIZE_WH
    color = rng.choice(rule.colors)
    length = scale * rng.uniform(*rule.length)
    for _ in range(TRIES):
        turn = angle + rng.choice((0, 90)) if kind not in ("runway", "pier") else angle
        if kind in ("plane", "dish antenna", "battle tank"):
            turn = rng.uniform(0, 360)
        if kind == "pier":
            turn = 90.0
        low, high = _band(kind, subtype)
        item = Item(
            kind,
            round(rng.uniform(MARGIN_PX, width - MARGIN_PX), 1),
            round(rng.uniform(low * height, high * height), 1),
            round(length, 1),
            round(length * rule.width, 1),
            turn,
            color,
        )
        if kind == "pier":
            # Piers start at the quay.
            item = replace(item, y=WATER_FROM * height + item.length / 2)
        if _inside(item, low * height, high * height) and not _collides(item, items):
            return item
    return None


WATER_FROM = 0.5
"""The lower part of a port is water."""
ON_WATER = ("ship", "pier")


def _band(kind: str, subtype: Subtype) -> tuple[float, float]:
    """Return which part of the height a kind stands in."""
    if subtype.ground == "water":
        return (WATER_FROM, 1.0) if kind in ON_WATER else (0.0, WATER_FROM - 0.04)
    return 0.0, 1.0


def _inside(item: Item, top: float, bottom: float) -> bool:
    x1, y1, x2, y2 = item.box_xyxy()
    width, height = SIZE_WH
    low = max(MARGIN_PX, top if item.kind == "pier" else top + GAP_PX)
    high = min(height - MARGIN_PX, bottom)
    return x1 >= MARGIN_PX and x2 <= width - MARGIN_PX and y1 >= low and y2 <= high


def _collides(item: Item, others: Sequence[Item]) -> bool:
    x1, y1, x2, y2 = item.box_xyxy()
    for other in others:
        a1, b1, a2, b2 = other.box_xyxy()
        if x1 < a2 + GAP_PX and a1 < x2 + GAP_PX and y1 < b2 + GAP_PX and b1 < y2 + GAP_PX:
            return True
    return False


def _trees(
    items: Sequence[Item], subtype: Subtype, rng: KeyedRandom
) -> tuple[tuple[float, float, float], ...]:
    width, height = SIZE_WH
    found: list[tuple[float, float, float]] = []
    lowest = WATER_FROM - 0.06 if subtype.ground == "water" else 1.0
    for _ in range(60):
        r = rng.uniform(4, 9)
        x, y = rng.uniform(0, width), rng.uniform(0, height * lowest)
        if not any(_near(x, y, r, item) for item in items):
            found.append((round(x, 1), round(y, 1), round(r, 1)))
    return tuple(found)


def _near(x: float, y: float, r: float, item: Item) -> bool:
    x1, y1, x2, y2 = item.box_xyxy()
    r += GAP_PX
    return x1 - r < x < x2 + r and y1 - r < y < y2 + r


def _clear(site: DemoSite, item: Item) -> tuple[tuple[float, float, float], ...]:
    return tuple(tree for tree in site.trees if not _near(*tree, item))
