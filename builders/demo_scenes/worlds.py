"""The five demo sources: what they show, and how one picture of them is drawn."""

import hashlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from types import MappingProxyType

from PIL import Image

from soubench.builders.demo_scenes import sprites
from soubench.builders.demo_scenes.draw import Drawing, Sprite, render
from soubench.builders.demo_scenes.grounds import (
    Ground,
    RoadView,
    SizeWh,
    Spot,
    Standing,
    paint_sea,
    paint_town,
)
from soubench.builders.scene import Quad

PxBox = tuple[int, int, int, int]
MIN_SIZE_WH = (400, 300)
EDGE_PX = 2
GAP_PX = 3
TRIES = 60
LONERS = 2
LONER_CLEARANCE = 3  # sides; DESIGN: the regions of object location are up to 6 sides wide
FAINT = 0.55


@dataclass(frozen=True, slots=True)
class Kind:
    """How the objects of one category look and where they are.

    Attributes:
        drawing: Draws one.
        standing: Its home on the background, its real height and mount in a road view.
        length_px: Smallest and largest width of the drawing.
        aspect: Height over width of the drawing.
        weight: How common it is.
        large_px: Width of the few larger ones; None where there are none.
        rider: Category of a person who may sit on it, and overlaps it on purpose.
    """

    drawing: Drawing
    standing: Standing
    length_px: tuple[float, float]
    aspect: float = 1.0
    weight: float = 1.0
    large_px: tuple[float, float] | None = None
    rider: str | None = None


@dataclass(frozen=True, slots=True)
class DemoObject:
    """One drawn object, as it is labelled.

    Attributes:
        category: Name of the source's category.
        box_xyxy: Tight box of the drawn pixels, right and bottom edge exclusive.
        quad_xy8: The object's own turned rectangle.
        route: Why it does not count: ``flag`` (the record says so), ``region`` (an area of the
            source's own ignore class), ``covered`` (most of it lies in such an area), ``other``
            (a class that is not evaluated); None if it counts.
    """

    category: str
    box_xyxy: PxBox
    quad_xy8: Quad
    route: str | None = None


@dataclass(frozen=True, slots=True)
class DemoPicture:
    """One drawn picture and everything that is known about it."""

    image: Image.Image
    objects: tuple[DemoObject, ...]


@dataclass(frozen=True, slots=True)
class World:
    """One demo source.

    Attributes:
        categories: All categories in the source's order, those that do not count included.
        size_wh: Size of a picture in px.
        paint: Draws the background, given the homes that are needed.
        kinds: Category to look, for the categories that count.
        staple: Category of every picture.
        foreground: Larger objects of the staple category a picture.
        frames: Pictures in a row that share a background.
        flagged: Objects a picture that are drawn faint and flagged as not counting.
        region: Name of the ignore class, the category that crowds in its areas, and where.
        covered: Objects of that crowd that have a record of their own.
        other: Kind, by name, of a class that is never evaluated.
        water: Color laid over everything.
    """

    categories: tuple[str, ...]
    size_wh: SizeWh
    paint: Callable[[SizeWh, random.Random, Sequence[str]], Ground]
    kinds: Mapping[str, Kind]
    staple: str
    foreground: int = 0
    frames: int = 1
    flagged: int = 0
    region: tuple[str, str, Standing] | None = None
    covered: int = 0
    other: Mapping[str, Kind] = field(default_factory=lambda: MappingProxyType({}))
    water: tuple[int, int, int] | None = None


def _paint_road(size_wh: SizeWh, rng: random.Random, homes: Sequence[str]) -> Ground:
    return RoadView(size_wh, rng)


def _paint_sea(size_wh: SizeWh, rng: random.Random, homes: Sequence[str]) -> Ground:
    return paint_sea(size_wh, rng)


LANE, DRIVE, FIELD, YARD = (Standing(home) for home in ("lane", "drive", "field", "yard"))
WATER, FLOOR, PLAZA, PARK = (Standing(home) for home in ("water", "floor", "plaza", "park"))
APRON, DEPOT, HOUSES, CANAL = (Standing(home) for home in ("apron", "depot", "houses", "canal"))

WORLDS: dict[str, World] = {
    "soda-d": World(
        categories=("people", "rider", "bicycle", "motor", "vehicle", "traffic-sign",
                    "traffic-light", "traffic-camera", "warning-cone", "ignore"),
        size_wh=(1280, 720),
        paint=_paint_road,
        kinds={
            "people": Kind(sprites.person, Standing("walk", 1.7), (7, 14), 2.2, 1.4, (22, 30)),
            "rider": Kind(sprites.rider_ahead, Standing("lane", 1.7), (9, 16), 1.9, 0.6),
            "bicycle": Kind(sprites.bicycle_side, Standing("lane", 1.05), (16, 28), 0.62, 0.8,
                            rider="rider"),
            "motor": Kind(sprites.motor_side, Standing("lane", 1.1), (15, 28), 0.7, 0.8,
                          rider="rider"),
            "vehicle": Kind(sprites.vehicle_behind, Standing("lane", 1.6), (12, 32), 0.85, 4.0,
                            (56, 150)),
            "traffic-sign": Kind(sprites.traffic_sign, Standing("pole", 0.8, (2.2, 7.5)), (9, 22),
                                 1.0, 1.2, (36, 46)),
            "traffic-light": Kind(sprites.traffic_light, Standing("pole", 1.1, (3.0, 7.0)), (6, 13),
                                  2.5, 1.0),
            "traffic-camera": Kind(sprites.traffic_camera, Standing("pole", 0.5, (5.0, 7.5)),
                                   (10, 18), 0.7, 0.6),
            "warning-cone": Kind(sprites.warning_cone, Standing("lane", 0.8), (8, 18), 1.1, 1.2),
        },
        staple="vehicle",
        foreground=3,
        flagged=2,
        region=("ignore", "people", Standing("walk", 1.7)),
    ),
    "visdrone": World(
        categories=("ignored-regions", "pedestrian", "people", "bicycle", "car", "van", "truck",
                    "tricycle", "awning-tricycle", "bus", "motor", "others"),
        size_wh=(960, 540),
        paint=partial(paint_town, roads_xy=(2, 1), lanes=4, lane_px=24, decor=("park", "houses")),
        kinds={
            "pedestrian": Kind(sprites.person, PLAZA, (6, 10), 2.2, 1.6),
            "people": Kind(sprites.seated_person, PLAZA, (10, 14), 1.4, 0.8),
            "bicycle": Kind(sprites.bicycle_above, LANE, (20, 27), 0.36, 0.6),
            "car": Kind(sprites.car_above, LANE, (29, 38), 0.46, 2.4),
            "van": Kind(sprites.van_above, LANE, (36, 43), 0.42, 0.8),
            "truck": Kind(sprites.truck_above, LANE, (42, 48), 0.38, 0.7, (64, 80)),
            "tricycle": Kind(sprites.tricycle_above, LANE, (24, 30), 0.5, 0.5),
            "awning-tricycle": Kind(sprites.awning_tricycle_above, LANE, (24, 30), 0.5, 0.5),
            "bus": Kind(sprites.bus_above, LANE, (48, 56), 0.3, 0.6, (80, 96)),
            "motor": Kind(sprites.motor_above, LANE, (18, 25), 0.44, 1.0),
        },
        staple="car",
        frames=3,
        flagged=1,
        region=("ignored-regions", "car", YARD),
        covered=3,
        other={"others": Kind(sprites.digger_above, LANE, (30, 38), 0.55)},
    ),
    "ai-tod": World(
        categories=("airplane", "bridge", "storage-tank", "ship", "swimming-pool", "vehicle",
                    "person", "wind-mill"),
        size_wh=(800, 800),
        paint=partial(paint_town, roads_xy=(2, 2), lanes=2, lane_px=14),
        kinds={
            "airplane": Kind(sprites.airplane, APRON, (22, 32), 1.0, 1.0, (44, 60)),
            "bridge": Kind(sprites.bridge, CANAL, (24, 30), 0.42, 0.3),
            "storage-tank": Kind(sprites.storage_tank, DEPOT, (10, 22), 1.0, 1.0, (36, 46)),
            "ship": Kind(sprites.ship, WATER, (16, 32), 0.34, 1.2),
            "swimming-pool": Kind(sprites.swimming_pool, HOUSES, (10, 17), 0.66, 1.0),
            "vehicle": Kind(sprites.car_above, LANE, (12, 18), 0.48, 3.0),
            "person": Kind(sprites.person, PARK, (4, 7), 2.0, 1.0),
            "wind-mill": Kind(sprites.windmill, FIELD, (18, 30), 1.0, 0.6),
        },
        staple="vehicle",
    ),
    "soda-a": World(
        categories=("airplane", "helicopter", "small-vehicle", "large-vehicle", "ship",
                    "container", "storage-tank", "swimming-pool", "windmill", "ignore"),
        size_wh=(1200, 900),
        paint=partial(paint_town, roads_xy=(2, 2), lanes=4, lane_px=17),
        kinds={
            "airplane": Kind(sprites.airplane, APRON, (26, 32), 1.0, 1.0, (44, 64)),
            "helicopter": Kind(sprites.helicopter, APRON, (22, 30), 1.0, 0.8),
            "small-vehicle": Kind(sprites.car_above, DRIVE, (18, 25), 0.48, 2.6),
            "large-vehicle": Kind(sprites.truck_above, LANE, (30, 42), 0.34, 1.2),
            "ship": Kind(sprites.ship, WATER, (20, 44), 0.34, 1.2, (60, 76)),
            "container": Kind(sprites.container, DEPOT, (22, 32), 0.4, 1.2),
            "storage-tank": Kind(sprites.storage_tank, DEPOT, (14, 28), 1.0, 1.0, (38, 50)),
            "swimming-pool": Kind(sprites.swimming_pool, HOUSES, (12, 18), 0.66, 1.0),
            "windmill": Kind(sprites.windmill, FIELD, (22, 30), 1.0, 0.6),
        },
        staple="small-vehicle",
        region=("ignore", "small-vehicle", YARD),
    ),
    "ruod": World(
        categories=("holothurian", "echinus", "scallop", "starfish", "fish", "corals", "diver",
                    "cuttlefish", "turtle", "jellyfish"),
        size_wh=(960, 720),
        paint=_paint_sea,
        kinds={
            "holothurian": Kind(sprites.holothurian, FLOOR, (30, 52), 0.5),
            "echinus": Kind(sprites.echinus, FLOOR, (22, 44), 1.0, 1.4),
            "scallop": Kind(sprites.scallop, FLOOR, (22, 38), 1.0),
            "starfish": Kind(sprites.starfish, FLOOR, (24, 46), 1.0, 1.4),
            "fish": Kind(sprites.fish, WATER, (24, 56), 0.55, 2.6, (64, 84)),
            "corals": Kind(sprites.corals, FLOOR, (36, 56), 1.0),
            "diver": Kind(sprites.diver, WATER, (56, 84), 0.6, 0.4),
            "cuttlefish": Kind(sprites.cuttlefish, WATER, (40, 66), 0.55, 0.7),
            "turtle": Kind(sprites.turtle, WATER, (44, 70), 0.8, 0.6),
            "jellyfish": Kind(sprites.jellyfish, WATER, (26, 46), 1.1, 1.2),
        },
        staple="fish",
        water=(30, 120, 140),
    ),
}  # fmt: skip


def rng_for(*key: str | int) -> random.Random:
    """Return an rng that depends on the key alone, the same on every machine."""
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return random.Random(int.from_bytes(digest))


def draw_picture(
    source: str, index: int, *, seed: int = 0, size_wh: SizeWh | None = None
) -> DemoPicture:
    """Draw picture ``index`` of a source; it depends on the arguments alone.

    Args:
        source: Key of ``WORLDS``.
        index: Number of the picture, from 0.
        seed: Another seed gives other pictures.
        size_wh: Size in px, at least 400 × 300; None for the source's own. Objects keep their
            size, so a smaller picture holds fewer of them.

    Raises:
        ValueError: The size is too small to hold a scene.
    """
    world = WORLDS[source]
    size_wh = size_wh or world.size_wh
    if size_wh[0] < MIN_SIZE_WH[0] or size_wh[1] < MIN_SIZE_WH[1]:
        raise ValueError(
            f"expected a picture of at least {MIN_SIZE_WH[0]} x {MIN_SIZE_WH[1]} px, got "
            f"{size_wh[0]} x {size_wh[1]}; ask for a larger size_wh"
        )
    rng = rng_for("demo", seed, source, index)
    cast = _choose_cast(world, index, rng)
    # Frames of a sequence show the same place.
    place = rng_for("demo-place", seed, source, index // world.frames)
    homes = [world.kinds[category].standing.home for category in cast]
    if world.region:
        homes.append(world.region[2].home)
    ground = world.paint(size_wh, place, list(dict.fromkeys(homes)))
    return _Stage(world, ground, rng).play(cast)


def _choose_cast(world: World, index: int, rng: random.Random) -> list[str]:
    """Choose the categories of a picture; two of them go round, so that all have a turn."""
    names = list(world.kinds)
    turn = [names[2 * index % len(names)], names[(2 * index + 1) % len(names)]]
    always = [*turn, *({world.staple} - {*turn})]
    others = [name for name in names if name not in always]
    return always + rng.sample(others, rng.randint(0, len(others) - 1))


class _Stage:
    """Puts objects on one background, one after the other, and keeps the books."""

    def __init__(self, world: World, ground: Ground, rng: random.Random) -> None:
        self._world = world
        self._ground = ground
        self._rng = rng
        self._objects: list[DemoObject] = []
        self._sprites: list[tuple[Sprite, PxBox, Spot]] = []
        self._reserved: list[PxBox] = []

    def play(self, cast: Sequence[str]) -> DemoPicture:
        """Place what needs most room first, then the many, and draw them all."""
        world, rng = self._world, self._rng
        count = 5 + round(35 * rng.random() ** 1.6)
        if world.region:
            self._place_region(*world.region)
        for category in rng.sample(list(cast), min(LONERS, len(cast))):
            kind = world.kinds[category]
            self._place(category, kind, kind.length_px[0], clearance=LONER_CLEARANCE)
        for _ in range(world.foreground):
            kind = world.kinds[world.staple]
            self._place(world.staple, kind, rng.uniform(*(kind.large_px or kind.length_px)))
        for category, kind in world.other.items():
            self._place(category, kind, rng.uniform(*kind.length_px), route="other")
        weights = list(accumulate(world.kinds[category].weight for category in cast))
        wanted = [*cast, *rng.choices(cast, cum_weights=weights, k=max(0, count - len(cast)))]
        for nth, category in enumerate(wanted):
            kind = world.kinds[category]
            route = "flag" if len(cast) <= nth < len(cast) + world.flagged else None
            large = kind.large_px if rng.random() < 0.12 else None
            self._place(category, kind, rng.uniform(*(large or kind.length_px)), route=route)
        return DemoPicture(self._paint(), tuple(self._objects))

    def _place(
        self, category: str, kind: Kind, length: float, *, route: str | None = None,
        clearance: int = 0,
    ) -> None:  # fmt: skip
        """Find room for one object; after too many tries it is left out."""
        size_wh = (length, length * kind.aspect)
        for _ in range(TRIES):
            spot = self._ground.spot(kind.standing, size_wh, self._rng)
            if not self._may_fit(size_wh, spot, clearance):
                continue
            sprite = self._render(kind, size_wh, spot, route)
            box = _centered(sprite, spot)
            reach = clearance * max(box[2] - box[0], box[3] - box[1])
            if self._fits(box, max(GAP_PX, reach)):
                if reach:
                    self._reserved.append(_grown(box, reach))
                self._add(category, sprite, box, spot, route)
                if kind.rider and not reach and self._rng.random() < 0.6:
                    self._seat(kind.rider, box, spot)
                return

    def _render(
        self, kind: Kind, size_wh: tuple[float, float], spot: Spot, route: str | None
    ) -> Sprite:
        mirror = self._rng.random() < 0.5
        opacity = FAINT if route == "flag" else 1.0
        return render(kind.drawing, size_wh, self._rng, heading_deg=spot.heading_deg,
                      mirror=mirror, opacity=opacity)  # fmt: skip

    def _seat(self, category: str, box: PxBox, spot: Spot) -> None:
        """Put a rider on a two-wheeler: the only counted objects that overlap."""
        x1, y1, x2, y2 = box
        wide = (x2 - x1) * 0.62
        tall = wide * 1.4
        seat = Spot(((x1 + x2) / 2, y1 + (y2 - y1) * 0.62 - tall / 2), 0.0)
        sprite = render(sprites.seated_person, (wide, tall), self._rng)
        rider = _centered(sprite, seat)
        if self._fits(rider, GAP_PX, but=box):
            self._add(category, sprite, rider, seat._replace(foot_y=spot.foot_y), None)

    def _place_region(self, name: str, category: str, standing: Standing) -> None:
        """Crowd objects into an area that does not count; a few get records of their own."""
        kind, rng = self._world.kinds[category], self._rng
        wide = kind.length_px[1]
        tall = wide * kind.aspect
        upright = tall > wide
        columns, rows = (7, 2) if upright else (4, 4)
        step_x, step_y = wide * 0.85, tall * (0.6 if upright else 1.15)
        for _ in range(TRIES):
            spot = self._ground.spot(standing, (wide, tall), rng)
            left = round(spot.center_xy[0] - step_x * columns / 2)
            top = round(spot.center_xy[1] - step_y * rows / 2)
            outer = (left, top, round(left + step_x * (columns + 1)),
                     round(top + step_y * (rows + 1)))  # fmt: skip
            if self._fits(outer, 2 * GAP_PX):
                break
        else:
            return
        crowd: list[DemoObject] = []
        for row in range(rows):
            for column in range(columns):
                x = left + (column + 0.6 + rng.uniform(-0.12, 0.12)) * step_x
                y = top + (row + 0.6 + rng.uniform(-0.08, 0.08)) * step_y
                foot_y = None if spot.foot_y is None else y + tall / 2
                seat = Spot((x, y), rng.uniform(-3, 3), spot.shadow_xy, foot_y)
                sprite = self._render(kind, (wide, tall), seat, None)
                box = _centered(sprite, seat)
                self._sprites.append((sprite, box, seat))
                crowd.append(DemoObject(category, box, _moved(sprite.quad_xy8, box), "covered"))
        labelled = crowd[len(crowd) - self._world.covered :]
        hull_x1, hull_y1, hull_x2, hull_y2 = (
            pick(extent)
            for pick, extent in zip(
                (min, min, max, max),
                zip(*(made.box_xyxy for made in crowd), strict=True),
                strict=True,
            )
        )
        self._reserved.append((hull_x1, hull_y1, hull_x2, hull_y2))
        # Those at the right edge stick out of the area, but most of each lies in it.
        right = hull_x2 - round(wide * 0.2) if labelled else hull_x2
        area = (hull_x1, hull_y1, right, hull_y2)
        self._objects.append(DemoObject(name, area, _corners(area), "region"))
        self._objects += labelled

    def _may_fit(self, size_wh: tuple[float, float], spot: Spot, clearance: int) -> bool:
        """Guess from the size alone whether an object is worth drawing."""
        turn = math.radians(spot.heading_deg)
        cos, sin = abs(math.cos(turn)), abs(math.sin(turn))
        half_w = 0.4 * (size_wh[0] * cos + size_wh[1] * sin)
        half_h = 0.4 * (size_wh[0] * sin + size_wh[1] * cos)
        x, y = spot.center_xy
        guess = (round(x - half_w), round(y - half_h), round(x + half_w), round(y + half_h))
        gap = max(GAP_PX, round(clearance * 2 * max(half_w, half_h)))
        return self._is_clear(guess, gap)

    def _is_clear(self, box: PxBox, gap: int, *, but: PxBox | None = None) -> bool:
        """Tell whether a box lies in the picture, away from all others ``but`` one."""
        width, height = self._ground.image.size
        inside = (
            box[0] >= EDGE_PX and box[1] >= EDGE_PX
            and box[2] <= width - EDGE_PX and box[3] <= height - EDGE_PX
        )  # fmt: skip
        wide = _grown(box, gap)
        taken = [*(made.box_xyxy for made in self._objects), *self._reserved]
        return inside and not any(_touch(wide, other) for other in taken if other != but)

    def _fits(self, box: PxBox, gap: int, *, but: PxBox | None = None) -> bool:
        return self._is_clear(box, gap, but=but) and not self._ties(box)

    def _ties(self, box: PxBox) -> bool:
        """Tell whether a box would share the leftmost, topmost, .. place with another."""
        made = [made.box_xyxy for made in self._objects if made.route is None]
        for one, others in zip(_extents(box), zip(*map(_extents, made), strict=True), strict=False):
            if one in (min(others), max(others)):
                return True
        return False

    def _add(
        self, category: str, sprite: Sprite, box: PxBox, spot: Spot, route: str | None
    ) -> None:
        self._sprites.append((sprite, box, spot))
        self._objects.append(DemoObject(category, box, _moved(sprite.quad_xy8, box), route))

    def _paint(self) -> Image.Image:
        for sprite, box, spot in self._sprites:
            self._ground.shade(sprite.image.getchannel("A"), box, spot)
        image = self._ground.image
        # What stands nearer comes last; what is seen from above never overlaps.
        for sprite, box, _ in sorted(self._sprites, key=lambda item: item[2].foot_y or item[1][3]):
            image.paste(sprite.image, box[:2], sprite.image)
        if self._world.water:
            image = Image.blend(image, Image.new("RGB", image.size, self._world.water), 0.16)
        return image


def _centered(sprite: Sprite, spot: Spot) -> PxBox:
    width, height = sprite.image.size
    x, y = round(spot.center_xy[0] - width / 2), round(spot.center_xy[1] - height / 2)
    return x, y, x + width, y + height


def _grown(box: PxBox, gap: int) -> PxBox:
    return box[0] - gap, box[1] - gap, box[2] + gap, box[3] + gap


def _touch(one: PxBox, other: PxBox) -> bool:
    across = one[0] < other[2] and other[0] < one[2]
    return across and one[1] < other[3] and other[1] < one[3]


def _extents(box: PxBox) -> tuple[int, ...]:
    x1, y1, x2, y2 = box
    return x1, y1, x2, y2, x1 + x2, y1 + y2


def _corners(box: PxBox) -> Quad:
    x1, y1, x2, y2 = box
    return x1, y1, x2, y1, x2, y2, x1, y2


def _moved(quad: Quad, box: PxBox) -> Quad:
    x1, y1, x2, y2, x3, y3, x4, y4 = quad
    left, top = box[:2]
    return x1 + left, y1 + top, x2 + left, y2 + top, x3 + left, y3 + top, x4 + left, y4 + top
