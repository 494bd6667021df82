"""The little drawings, one function per kind of thing.

Vehicles and ships seen from above are drawn lengthwise, their front at the right (x = 1).
"""

import math
import random

from soubench.builders.demo_scenes.draw import Color, Pen, tint

PAINTS: tuple[Color, ...] = (
    (222, 226, 228), (242, 243, 240), (104, 84, 140), (150, 154, 160), (190, 36, 38),
    (34, 82, 160), (216, 172, 44), (38, 116, 84),
)  # fmt: skip
CLOTHES: tuple[Color, ...] = (
    (200, 48, 52), (40, 90, 180), (236, 196, 60), (70, 74, 84), (240, 240, 236), (60, 140, 90),
    (170, 80, 160),
)  # fmt: skip
GLASS: Color = (36, 52, 66)
LAMP: Color = (255, 240, 170)
TIRE: Color = (24, 24, 26)
SKIN: Color = (226, 178, 142)
WHITE: Color = (248, 248, 246)
STEEL: Color = (176, 182, 188)
RED: Color = (214, 34, 38)
TROUSERS: Color = (44, 50, 70)


def _polar(angle_deg: float, reach: float) -> tuple[float, float]:
    """Return the point at an angle and a reach from the middle of the unit frame."""
    angle = math.radians(angle_deg)
    return 0.5 + reach * math.cos(angle), 0.5 + reach * math.sin(angle)


# --- Seen from the road -------------------------------------------------------------------------


def person(pen: Pen, rng: random.Random) -> None:
    """Draw a standing or walking person."""
    shirt, stride = rng.choice(CLOTHES), rng.uniform(0.1, 0.3)
    pen.line([(0.5, 0.5), (0.5 - stride, 0.98)], TROUSERS, 0.26)
    pen.line([(0.5, 0.5), (0.5 + stride, 0.98)], tint(TROUSERS, 0.8), 0.26)
    pen.line([(0.4, 0.26), (0.08, 0.55)], tint(shirt, 0.8), 0.2)
    pen.line([(0.6, 0.26), (0.92, 0.55)], tint(shirt, 0.8), 0.2)
    pen.rect(0.22, 0.2, 0.78, 0.58, shirt, radius=0.2)
    pen.oval(0.3, 0.0, 0.7, 0.2, SKIN)
    pen.half_oval(0.28, 0.0, 0.72, 0.18, (50, 36, 28))


def seated_person(pen: Pen, rng: random.Random) -> None:
    """Draw a person who sits or rides, seen from the side."""
    shirt = rng.choice(CLOTHES)
    pen.line([(0.32, 0.68), (0.75, 0.68), (0.7, 0.98)], TROUSERS, 0.24)
    pen.line([(0.42, 0.36), (0.95, 0.5)], tint(shirt, 0.8), 0.16)
    pen.line([(0.45, 0.32), (0.28, 0.66)], shirt, 0.4)
    pen.oval(0.34, 0.0, 0.72, 0.3, SKIN)
    pen.half_oval(0.3, 0.0, 0.76, 0.3, rng.choice(PAINTS))


def rider_ahead(pen: Pen, rng: random.Random) -> None:
    """Draw a person with a helmet on a scooter, seen from the front."""
    shirt, paint = rng.choice(CLOTHES), rng.choice((RED, (30, 90, 180), (240, 150, 20)))
    pen.rect(0.4, 0.64, 0.6, 1, TIRE, radius=0.08)
    pen.line([(0.34, 0.5), (0.16, 0.86)], TROUSERS, 0.16)
    pen.line([(0.66, 0.5), (0.84, 0.86)], TROUSERS, 0.16)
    pen.rect(0.24, 0.2, 0.76, 0.58, shirt, radius=0.2)
    pen.poly([(0.3, 0.54), (0.7, 0.54), (0.62, 0.86), (0.38, 0.86)], paint)
    pen.line([(0.26, 0.28), (0.06, 0.5), (0.94, 0.5), (0.74, 0.28)], tint(shirt, 0.8), 0.12)
    pen.oval(0.4, 0.54, 0.6, 0.66, LAMP)
    pen.oval(0.32, 0, 0.68, 0.22, SKIN)
    pen.half_oval(0.28, 0, 0.72, 0.22, rng.choice(PAINTS))


def vehicle_behind(pen: Pen, rng: random.Random) -> None:
    """Draw the back of a car, or of a box van."""
    paint = rng.choice(PAINTS)
    pen.rect(0.06, 0.7, 0.26, 1, TIRE, radius=0.06)
    pen.rect(0.74, 0.7, 0.94, 1, TIRE, radius=0.06)
    if rng.random() < 0.25:
        pen.rect(0.02, 0, 0.98, 0.88, tint(paint, 0.95), radius=0.06)
        pen.rect(0.12, 0.08, 0.88, 0.34, GLASS, radius=0.05)
        pen.line([(0.5, 0.36), (0.5, 0.86)], tint(paint, 0.6), 0.03)
    else:
        pen.poly([(0.2, 0), (0.8, 0), (0.95, 0.45), (0.05, 0.45)], tint(paint, 0.85))
        pen.poly([(0.25, 0.06), (0.75, 0.06), (0.86, 0.4), (0.14, 0.4)], GLASS)
        pen.rect(0, 0.38, 1, 0.88, paint, radius=0.15)
    pen.rect(0.02, 0.46, 0.2, 0.6, RED)
    pen.rect(0.8, 0.46, 0.98, 0.6, RED)
    pen.rect(0.36, 0.6, 0.64, 0.74, WHITE)
    pen.rect(0, 0.8, 1, 0.88, tint(paint, 0.6))


def bicycle_side(pen: Pen, rng: random.Random) -> None:
    """Draw a bicycle from the side."""
    frame = rng.choice((RED, (20, 120, 200), (30, 150, 80), (240, 150, 20)))
    for x in (0.22, 0.78):
        pen.ring(x, 0.66, 0.33, TIRE, 0.1)
    pen.line([(0.22, 0.66), (0.4, 0.24), (0.68, 0.24), (0.48, 0.66), (0.22, 0.66)], frame, 0.1)
    pen.line([(0.48, 0.66), (0.38, 0.12)], frame, 0.1)
    pen.line([(0.78, 0.66), (0.66, 0.06), (0.78, 0.02)], tint(frame, 0.7), 0.1)
    pen.line([(0.28, 0.1), (0.46, 0.1)], TIRE, 0.1)


def motor_side(pen: Pen, rng: random.Random) -> None:
    """Draw a motor scooter from the side."""
    paint = rng.choice((RED, (30, 90, 180), (240, 150, 20), (40, 44, 50)))
    pen.oval(0.04, 0.5, 0.34, 1, TIRE)
    pen.oval(0.68, 0.5, 0.98, 1, TIRE)
    pen.oval(0.13, 0.65, 0.25, 0.85, STEEL)
    pen.oval(0.77, 0.65, 0.89, 0.85, STEEL)
    pen.poly([(0.02, 0.4), (0.45, 0.34), (0.55, 0.72), (0.74, 0.7), (0.72, 0.25), (0.84, 0.25),
              (0.9, 0.62), (0.66, 0.9), (0.34, 0.86), (0.3, 0.58)], paint)  # fmt: skip
    pen.rect(0.05, 0.26, 0.48, 0.4, TIRE, radius=0.1)
    pen.line([(0.78, 0.3), (0.68, 0.04)], TIRE, 0.1)
    pen.rect(0.82, 0.26, 0.96, 0.4, LAMP)


def traffic_sign(pen: Pen, rng: random.Random) -> None:
    """Draw a speed limit, a warning triangle, a blue arrow or a no-entry sign."""
    shape = rng.randrange(4)
    if shape == 0:
        pen.oval(0, 0, 1, 1, RED)
        pen.oval(0.17, 0.17, 0.83, 0.83, WHITE)
        pen.rect(0.3, 0.36, 0.46, 0.64, TIRE)
        pen.rect(0.54, 0.36, 0.7, 0.64, TIRE)
    elif shape == 1:
        pen.poly([(0.5, 0), (1, 1), (0, 1)], RED)
        pen.poly([(0.5, 0.28), (0.8, 0.87), (0.2, 0.87)], (255, 236, 120))
        pen.line([(0.5, 0.45), (0.5, 0.8)], TIRE, 0.12)
    elif shape == 2:
        pen.rect(0, 0, 1, 1, (24, 84, 190), radius=0.12)
        pen.line([(0.5, 0.85), (0.5, 0.3)], WHITE, 0.16)
        pen.poly([(0.5, 0.1), (0.8, 0.46), (0.2, 0.46)], WHITE)
    else:
        pen.oval(0, 0, 1, 1, RED)
        pen.rect(0.15, 0.4, 0.85, 0.6, WHITE)


def traffic_light(pen: Pen, rng: random.Random) -> None:
    """Draw an upright traffic light with one lamp lit."""
    pen.rect(0, 0, 1, 1, (22, 24, 26), radius=0.25)
    lit = rng.randrange(3)
    for lamp, color in enumerate(((255, 40, 40), (255, 196, 30), (40, 230, 90))):
        shown = color if lamp == lit else tint(color, 0.28)
        top = 0.05 + 0.31 * lamp
        pen.oval(0.16, top, 0.84, top + 0.27, shown)


def traffic_camera(pen: Pen, rng: random.Random) -> None:
    """Draw a surveillance camera: a white housing with a dark lens under a sun shield."""
    pen.line([(0.3, 0.5), (0.3, 0.98)], (110, 116, 122), 0.22)
    pen.rect(0.05, 0.22, 0.86, 0.72, tint(WHITE, rng.uniform(0.88, 1)), radius=0.12)
    pen.rect(0, 0.04, 1, 0.26, STEEL, radius=0.08)
    pen.rect(0.72, 0.28, 0.98, 0.68, TIRE, radius=0.12)


def warning_cone(pen: Pen, rng: random.Random) -> None:
    """Draw an orange cone with white bands."""
    orange = (255, rng.randint(96, 124), 20)
    pen.poly([(0.42, 0), (0.58, 0), (0.86, 0.88), (0.14, 0.88)], orange)
    pen.poly([(0.345, 0.26), (0.655, 0.26), (0.72, 0.46), (0.28, 0.46)], WHITE)
    pen.poly([(0.24, 0.6), (0.76, 0.6), (0.81, 0.74), (0.19, 0.74)], WHITE)
    pen.rect(0, 0.86, 1, 1, tint(orange, 0.8))


# --- Seen from above ----------------------------------------------------------------------------


def car_above(pen: Pen, rng: random.Random) -> None:
    """Draw a car."""
    paint = rng.choice(PAINTS)
    pen.rect(0, 0.04, 1, 0.96, paint, radius=0.36)
    pen.rect(0.1, 0.14, 0.78, 0.86, GLASS, radius=0.24)
    pen.rect(0.25, 0.13, 0.58, 0.87, tint(paint, 1.12), radius=0.1)
    pen.rect(0.93, 0.12, 0.99, 0.3, LAMP)
    pen.rect(0.93, 0.7, 0.99, 0.88, LAMP)


def van_above(pen: Pen, rng: random.Random) -> None:
    """Draw a van: one long roof, the windscreen far in front."""
    paint = rng.choice(PAINTS[:4])
    pen.rect(0, 0, 1, 1, tint(paint, 0.9), radius=0.16)
    pen.rect(0.03, 0.1, 0.74, 0.9, tint(paint, 1.1), radius=0.06)
    pen.poly([(0.76, 0.12), (0.9, 0.04), (0.9, 0.96), (0.76, 0.88)], GLASS)
    for x in (0.2, 0.4, 0.58):
        pen.line([(x, 0.14), (x, 0.86)], tint(paint, 0.75), 0.05)


def truck_above(pen: Pen, rng: random.Random) -> None:
    """Draw a truck: cab, gap, and a ribbed cargo box."""
    paint = rng.choice(PAINTS[4:])
    pen.rect(0.68, 0.4, 0.78, 0.6, TIRE)
    pen.rect(0.76, 0.05, 1, 0.95, paint, radius=0.14)
    pen.rect(0.87, 0.14, 0.95, 0.86, GLASS)
    pen.rect(0, 0, 0.7, 1, rng.choice(((226, 226, 220), (118, 130, 140), (160, 120, 84))))
    for step in range(1, 6):
        pen.line([(step * 0.115, 0.05), (step * 0.115, 0.95)], (96, 100, 104), 0.05)


def bus_above(pen: Pen, rng: random.Random) -> None:
    """Draw a bus: long, in a signal color, with hatches on the roof."""
    paint = rng.choice(((246, 178, 28), (216, 56, 40), (36, 140, 196), (70, 168, 84)))
    pen.rect(0, 0, 1, 1, tint(paint, 0.8), radius=0.14)
    pen.rect(0.02, 0.14, 0.94, 0.86, paint, radius=0.08)
    pen.rect(0.94, 0.1, 0.985, 0.9, GLASS)
    for x in (0.16, 0.66):
        pen.rect(x, 0.28, x + 0.16, 0.72, tint(WHITE, 0.94), radius=0.1)
    pen.rect(0.42, 0.32, 0.54, 0.68, tint(paint, 0.6))


def tricycle_above(pen: Pen, rng: random.Random) -> None:
    """Draw an open cargo tricycle: load bed behind, driver and one wheel in front."""
    bed = rng.choice(((60, 120, 190), (190, 60, 50), (80, 150, 90)))
    pen.line([(0.5, 0.5), (0.98, 0.5)], TIRE, 0.16)
    pen.rect(0, 0.02, 0.56, 0.98, bed)
    pen.rect(0.06, 0.14, 0.5, 0.86, rng.choice(((200, 170, 120), (90, 84, 78), (222, 222, 214))))
    pen.line([(0.82, 0.12), (0.78, 0.5), (0.82, 0.88)], STEEL, 0.12)
    pen.oval(0.56, 0.24, 0.76, 0.76, rng.choice(CLOTHES))
    pen.oval(0.61, 0.36, 0.73, 0.64, (50, 36, 28))


def awning_tricycle_above(pen: Pen, rng: random.Random) -> None:
    """Draw a tricycle under a striped awning."""
    cloth = rng.choice((RED, (30, 120, 200), (240, 150, 30), (50, 150, 80)))
    pen.line([(0.7, 0.5), (0.98, 0.5)], TIRE, 0.2)
    pen.line([(0.9, 0.16), (0.86, 0.5), (0.9, 0.84)], STEEL, 0.12)
    pen.rect(0, 0, 0.8, 1, cloth, radius=0.12)
    for x in (0.1, 0.36, 0.62):
        pen.rect(x, 0.03, x + 0.12, 0.97, WHITE)


def bicycle_above(pen: Pen, rng: random.Random) -> None:
    """Draw a bicycle: two thin wheels, a saddle and a handlebar."""
    frame = rng.choice((RED, (20, 120, 200), (30, 150, 80), (240, 190, 40)))
    pen.line([(0.02, 0.5), (0.98, 0.5)], TIRE, 0.18)
    pen.line([(0.28, 0.5), (0.72, 0.5)], frame, 0.26)
    pen.line([(0.72, 0.04), (0.78, 0.5), (0.72, 0.96)], STEEL, 0.16)
    pen.oval(0.2, 0.3, 0.4, 0.7, (70, 44, 30))


def motor_above(pen: Pen, rng: random.Random) -> None:
    """Draw a motorcycle: a fat body, a seat and a wide handlebar."""
    paint = rng.choice((RED, (30, 90, 180), (240, 140, 20), (60, 64, 70)))
    pen.rect(0.02, 0.36, 0.98, 0.64, TIRE, radius=0.12)
    pen.oval(0.16, 0.2, 0.86, 0.8, paint)
    pen.oval(0.14, 0.28, 0.5, 0.72, TIRE)
    pen.line([(0.64, 0.02), (0.72, 0.5), (0.64, 0.98)], STEEL, 0.14)
    pen.oval(0.84, 0.38, 0.96, 0.62, LAMP)


def digger_above(pen: Pen, rng: random.Random) -> None:
    """Draw a tracked digger, a vehicle of no listed category."""
    yellow = (240, rng.randint(170, 190), 30)
    pen.rect(0, 0, 0.62, 0.24, TIRE, radius=0.08)
    pen.rect(0, 0.76, 0.62, 1, TIRE, radius=0.08)
    pen.rect(0.04, 0.18, 0.56, 0.82, yellow, radius=0.1)
    pen.rect(0.3, 0.24, 0.5, 0.52, GLASS)
    pen.line([(0.5, 0.64), (0.92, 0.6)], tint(yellow, 0.8), 0.16)
    pen.rect(0.86, 0.42, 1, 0.78, (90, 92, 94))


def airplane(pen: Pen, rng: random.Random) -> None:
    """Draw an airliner with swept wings and engines."""
    tail = rng.choice((RED, (30, 90, 180), (30, 140, 100), (240, 150, 30)))
    body = tint(WHITE, rng.uniform(0.9, 1))
    pen.poly([(0.66, 0.46), (0.4, 0), (0.28, 0), (0.42, 0.5), (0.28, 1), (0.4, 1), (0.66, 0.54)],
             tint(body, 0.82))  # fmt: skip
    for y in (0.24, 0.68):
        pen.rect(0.46, y, 0.58, y + 0.08, (120, 126, 132), radius=0.03)
    pen.poly([(0.16, 0.5), (0.06, 0.28), (0, 0.28), (0.04, 0.5), (0, 0.72), (0.06, 0.72)], tail)
    pen.rect(0.02, 0.43, 1, 0.57, body, radius=0.07)
    pen.rect(0.92, 0.46, 0.96, 0.54, GLASS)


def helicopter(pen: Pen, rng: random.Random) -> None:
    """Draw a helicopter with a rotor cross and a tail boom."""
    paint = rng.choice((RED, (30, 80, 60), (240, 180, 40), (40, 80, 160)))
    pen.line([(0, 0.5), (0.5, 0.5)], tint(paint, 0.8), 0.09)
    pen.line([(0.04, 0.34), (0.04, 0.66)], TIRE, 0.06)
    pen.oval(0.42, 0.34, 0.94, 0.66, paint)
    pen.oval(0.74, 0.39, 0.9, 0.61, GLASS)
    pen.line([(0.3, 0.08), (0.98, 0.92)], (52, 54, 58), 0.07)
    pen.line([(0.98, 0.08), (0.3, 0.92)], (52, 54, 58), 0.07)


def ship(pen: Pen, rng: random.Random) -> None:
    """Draw a ship: pointed bow, deck, load and a white bridge house."""
    hull = rng.choice(((150, 44, 40), (40, 60, 96), (54, 56, 60), (226, 226, 222)))
    pen.poly([(0, 0.12), (0.72, 0), (1, 0.5), (0.72, 1), (0, 0.88)], hull)
    pen.poly([(0.05, 0.24), (0.7, 0.16), (0.9, 0.5), (0.7, 0.84), (0.05, 0.76)], (196, 176, 140))
    pen.rect(0.1, 0.24, 0.27, 0.76, WHITE)
    pen.rect(0.13, 0.38, 0.2, 0.62, GLASS)
    for x in (0.34, 0.49, 0.64):
        pen.rect(x, 0.3, x + 0.11, 0.7, rng.choice(PAINTS[4:]))


def bridge(pen: Pen, rng: random.Random) -> None:
    """Draw a bridge deck with railings and ramps."""
    deck = tint((208, 198, 180), rng.uniform(0.9, 1.05))
    pen.rect(0, 0.1, 1, 0.9, deck)
    pen.rect(0.04, 0, 0.96, 0.16, (110, 96, 84))
    pen.rect(0.04, 0.84, 0.96, 1, (110, 96, 84))
    for x in (0.25, 0.5, 0.75):
        pen.line([(x, 0.16), (x, 0.84)], tint(deck, 0.8), 0.06)


def storage_tank(pen: Pen, rng: random.Random) -> None:
    """Draw a round tank: rim, lit roof, stairs."""
    roof = tint(rng.choice((WHITE, (214, 206, 188), (180, 190, 196))), rng.uniform(0.92, 1))
    pen.oval(0, 0, 1, 1, tint(roof, 0.66))
    pen.oval(0.08, 0.08, 0.92, 0.92, roof)
    pen.ring(0.5, 0.5, 0.26, tint(roof, 0.78), 0.05)
    pen.line([(0.5, 0.5), _polar(rng.uniform(0, 360), 0.42)], (120, 104, 92), 0.07)


def swimming_pool(pen: Pen, rng: random.Random) -> None:
    """Draw a pool with a pale edge."""
    water = (40, rng.randint(176, 204), 226)
    pen.rect(0, 0, 1, 1, (240, 236, 224), radius=rng.choice((0.06, 0.3, 0.48)))
    pen.rect(0.1, 0.14, 0.9, 0.86, water, radius=rng.choice((0.06, 0.2)))
    pen.line([(0.25, 0.4), (0.45, 0.32), (0.6, 0.42)], tint(water, 1.35), 0.08)


def windmill(pen: Pen, rng: random.Random) -> None:
    """Draw a wind turbine: three white blades round a hub."""
    first = rng.uniform(0, 120)
    for turn in (0, 120, 240):
        tip, root = _polar(first + turn, 0.5), _polar(first + turn + 40, 0.16)
        pen.poly([(0.5, 0.5), root, tip], WHITE)
        pen.line([(0.5, 0.5), tip], tint(WHITE, 0.93), 0.07)
    pen.oval(0.41, 0.41, 0.59, 0.59, (196, 202, 206))


def container(pen: Pen, rng: random.Random) -> None:
    """Draw a ribbed shipping container."""
    paint = rng.choice(((190, 60, 40), (36, 96, 150), (46, 130, 90), (220, 140, 40), (140, 70, 60)))
    pen.rect(0, 0, 1, 1, paint)
    for step in range(1, 8):
        pen.line([(step / 8, 0.08), (step / 8, 0.92)], tint(paint, 0.72), 0.07)


# --- Under water --------------------------------------------------------------------------------


def holothurian(pen: Pen, rng: random.Random) -> None:
    """Draw a sea cucumber: a fat dark worm with pale knobs."""
    skin = tint((92, 62, 44), rng.uniform(0.8, 1.25))
    pen.line([(0.12, 0.6), (0.35, 0.42), (0.62, 0.5), (0.88, 0.4)], tint(skin, 0.7), 0.62)
    for x, y in ((0.12, 0.6), (0.88, 0.4)):
        pen.oval(x - 0.12, y - 0.3, x + 0.12, y + 0.3, tint(skin, 0.7))
    pen.line([(0.14, 0.54), (0.36, 0.37), (0.62, 0.44), (0.86, 0.35)], skin, 0.36)
    for x, y in ((0.16, 0.5), (0.32, 0.4), (0.48, 0.4), (0.64, 0.45), (0.8, 0.38)):
        pen.oval(x - 0.035, y - 0.09, x + 0.035, y + 0.07, (214, 170, 120))


def echinus(pen: Pen, rng: random.Random) -> None:
    """Draw a sea urchin: a dark ball of spines."""
    spine = rng.choice(((34, 20, 44), (30, 24, 28), (70, 24, 56)))
    for turn in range(0, 360, 18):
        pen.line([(0.5, 0.5), _polar(turn + rng.uniform(-5, 5), 0.5)], spine, 0.05)
    pen.oval(0.2, 0.2, 0.8, 0.8, spine)
    pen.oval(0.3, 0.28, 0.62, 0.58, tint(spine, 1.9))


def scallop(pen: Pen, rng: random.Random) -> None:
    """Draw a fan shell with ribs."""
    shell = rng.choice(((236, 190, 160), (240, 216, 190), (216, 130, 110)))
    fan = [_polar(turn, 0.5) for turn in range(200, 345, 18)]
    outline = [(0.38, 0.98), *((x, y + 0.12) for x, y in fan), (0.62, 0.98)]
    pen.poly([(x, max(0.0, y)) for x, y in outline], shell)
    for x, y in fan:
        pen.line([(0.5, 0.92), (x, y + 0.12)], tint(shell, 0.7), 0.035)
    pen.rect(0.3, 0.84, 0.7, 1, tint(shell, 0.85))


def starfish(pen: Pen, rng: random.Random) -> None:
    """Draw a five-armed star."""
    skin = rng.choice(((240, 110, 40), (226, 60, 70), (236, 170, 50), (170, 70, 150)))
    star = [_polar(-90 + 36 * step, 0.5 if step % 2 == 0 else 0.2) for step in range(10)]
    pen.poly(star, skin)
    for step in range(0, 10, 2):
        pen.line([(0.5, 0.5), _polar(-90 + 36 * step, 0.38)], tint(skin, 1.3), 0.05)


def fish(pen: Pen, rng: random.Random) -> None:
    """Draw a fish from the side, its head at the right."""
    skin = rng.choice(((250, 150, 40), (250, 220, 70), (70, 130, 230), (200, 214, 224),
                       (230, 90, 90)))  # fmt: skip
    pen.poly([(0.3, 0.5), (0, 0.08), (0.1, 0.5), (0, 0.92)], tint(skin, 0.75))
    pen.poly([(0.4, 0.3), (0.56, 0), (0.76, 0.24)], tint(skin, 0.8))
    pen.poly([(0.5, 0.72), (0.5, 1), (0.68, 0.8)], tint(skin, 0.8))
    pen.oval(0.2, 0.14, 1, 0.86, skin)
    for x in (0.42, 0.6):
        pen.line([(x, 0.22), (x, 0.78)], tint(skin, 0.6) if skin[0] < 240 else WHITE, 0.12)
    pen.oval(0.78, 0.32, 0.9, 0.5, WHITE)
    pen.oval(0.81, 0.36, 0.89, 0.48, TIRE)


def corals(pen: Pen, rng: random.Random) -> None:
    """Draw a branching coral."""
    flesh = rng.choice(((240, 110, 130), (250, 150, 90), (190, 110, 210), (240, 200, 120)))
    for foot, tip, height in ((0.5, 0.5, 0.02), (0.46, 0.24, 0.12), (0.54, 0.78, 0.1),
                              (0.44, 0.06, 0.38), (0.56, 0.94, 0.36)):  # fmt: skip
        bend = (foot + tip) / 2 + rng.uniform(-0.04, 0.04)
        shade = tint(flesh, rng.uniform(0.8, 1.1))
        pen.line([(0.5, 0.98), (bend, 0.6), (tip, height + 0.06)], shade, 0.13)
        pen.oval(tip - 0.07, height, tip + 0.07, height + 0.14, tint(flesh, 1.2))
    pen.rect(0.34, 0.88, 0.66, 1, tint(flesh, 0.6), radius=0.05)


def diver(pen: Pen, rng: random.Random) -> None:
    """Draw a swimming diver: suit, tank, mask, fins and bubbles."""
    suit, trim = (30, 34, 44), rng.choice((RED, (250, 200, 40), (60, 200, 120)))
    pen.poly([(0, 0.62), (0.16, 0.72), (0.2, 0.84), (0.02, 0.98)], trim)
    pen.line([(0.16, 0.78), (0.38, 0.66), (0.68, 0.56)], suit, 0.24)
    pen.line([(0.62, 0.6), (0.72, 0.86), (0.86, 0.84)], suit, 0.14)
    pen.rect(0.36, 0.36, 0.64, 0.54, (226, 190, 50), radius=0.09)
    pen.oval(0.68, 0.36, 0.9, 0.66, SKIN)
    pen.half_oval(0.66, 0.34, 0.9, 0.68, suit)
    pen.rect(0.8, 0.44, 0.94, 0.56, (120, 200, 240))
    for x, y, size in ((0.88, 0.16, 0.1), (0.8, 0.04, 0.08), (0.94, 0.0, 0.05)):
        pen.oval(x, y, x + size, y + size, (216, 240, 250))


def cuttlefish(pen: Pen, rng: random.Random) -> None:
    """Draw a cuttlefish: striped mantle, wavy fin, eye and arms."""
    skin = rng.choice(((196, 150, 110), (180, 120, 130), (210, 180, 130)))
    for y in (0.34, 0.46, 0.58, 0.7):
        pen.line([(0.68, 0.5), (0.86, y), (1, y + 0.06)], tint(skin, 0.85), 0.11)
    pen.oval(0, 0.04, 0.72, 0.96, tint(skin, 1.25))
    pen.oval(0.04, 0.14, 0.76, 0.86, skin)
    for x in (0.18, 0.3, 0.42, 0.54):
        pen.line([(x, 0.28), (x + 0.03, 0.7)], tint(skin, 0.6), 0.09)
    pen.oval(0.64, 0.34, 0.76, 0.56, WHITE)
    pen.oval(0.68, 0.38, 0.75, 0.52, TIRE)


def turtle(pen: Pen, rng: random.Random) -> None:
    """Draw a sea turtle from above: shell with plates, flippers, head."""
    shell, limb = (96, rng.randint(92, 118), 52), (150, 160, 104)
    pen.poly([(0.68, 0.3), (0.8, 0), (0.62, 0.06), (0.5, 0.3)], limb)
    pen.poly([(0.68, 0.7), (0.8, 1), (0.62, 0.94), (0.5, 0.7)], limb)
    pen.poly([(0.24, 0.34), (0.04, 0.16), (0.12, 0.42)], limb)
    pen.poly([(0.24, 0.66), (0.04, 0.84), (0.12, 0.58)], limb)
    pen.oval(0.76, 0.38, 1, 0.62, limb)
    pen.oval(0.1, 0.18, 0.84, 0.82, tint(shell, 0.6))
    pen.oval(0.14, 0.22, 0.8, 0.78, shell)
    for x in (0.22, 0.4, 0.58):
        pen.oval(x, 0.36, x + 0.15, 0.64, tint(shell, 1.4))


def jellyfish(pen: Pen, rng: random.Random) -> None:
    """Draw a jellyfish: bell and trailing arms."""
    bell = rng.choice(((246, 190, 226), (200, 214, 250), (250, 220, 190)))
    for x in (0.16, 0.34, 0.52, 0.7, 0.86):
        sway = rng.uniform(-0.08, 0.08)
        pen.line([(x, 0.4), (x + sway, 0.68), (x - sway, 0.98)], tint(bell, 0.84), 0.06)
    pen.half_oval(0, 0, 1, 0.9, bell)
    pen.half_oval(0.18, 0.12, 0.82, 0.76, tint(bell, 0.82))
    pen.rect(0, 0.42, 1, 0.5, tint(bell, 0.92), radius=0.04)
