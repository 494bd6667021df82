"""The taxonomy of RRS-10K (004, Sec. III-C): dimensions, sub-dimensions and 20 leaf tasks, as data.

The one place that configs, questions, scoring and cards take it from. The paper counts six
sub-dimensions; its lists and tables give the seven that stand here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, get_args

AnswerType = Literal["mcq", "yes_no", "box", "mask", "text"]
ANSWER_TYPES: tuple[AnswerType, ...] = get_args(AnswerType)


class Task(StrEnum):
    """The leaf tasks, in the order of the paper's text."""

    SU = "SU"
    SC = "SC"
    IC = "IC"
    OC = "OC"
    VG = "VG"
    AR = "AR"
    OE = "OE"
    RS = "RS"
    API = "API"
    ASI = "ASI"
    RSI = "RSI"
    DC = "DC"
    AC = "AC"
    UI = "UI"
    AI = "AI"
    TAI = "TAI"
    CI = "CI"
    NR = "NR"
    OR = "OR"
    HD = "HD"


@dataclass(frozen=True, slots=True)
class SubDimension:
    """One sub-dimension.

    Attributes:
        name: Its config, and the column ``sub_dimension``.
        dimension: ``perception``, ``reasoning`` or ``robustness``.
        title: Its name in the paper.
        column: Its column in the paper's Table 3; empty where the table has none.
    """

    name: str
    dimension: str
    title: str
    column: str


@dataclass(frozen=True, slots=True)
class LeafTask:
    """One leaf task.

    Attributes:
        task: The paper's code.
        title: Its name in the paper.
        sub_dimension: Where it belongs.
        answer_types: What its answers are. NR and OR rows are answered as the clean rows that they
            are made from.
        column: Its column in the paper's tables; empty where they have none.
        asks: What its questions are about.
    """

    task: Task
    title: str
    sub_dimension: SubDimension
    answer_types: tuple[AnswerType, ...]
    column: str
    asks: str

    @property
    def config(self) -> str:
        """Name of its config: the code in lower case."""
        return self.task.lower()


@dataclass(frozen=True, slots=True)
class Scoring:
    """How one kind of answer is scored.

    Attributes:
        metric: What to give to ``evaluate.load``.
        measure: The key of its result that stands in the tables.
    """

    metric: str
    measure: str


SCORINGS: Mapping[AnswerType, Scoring] = MappingProxyType(
    {
        "mcq": Scoring("option_match", "accuracy"),
        "yes_no": Scoring("option_match", "accuracy"),
        "box": Scoring("acc_at_iou", "acc@0.5"),
        "mask": Scoring("mask_iou", "mean_iou"),
        "text": Scoring("caption_scores", "bertscore_f1"),
    }
)
"""Kind of answer -> its metric (004, Sec. IV-B)."""

_IMAGE = SubDimension("perception-image", "perception", "Image-level Understanding", "ILU")
_OBJECT = SubDimension("perception-object", "perception", "Object-level Recognition", "OLR")
_PIXEL = SubDimension("perception-pixel", "perception", "Pixel-level Segmentation", "")
_GEOMETRIC = SubDimension("reasoning-geometric", "reasoning", "Geometric-Spatial Reasoning", "GSI")
_FUNCTIONAL = SubDimension(
    "reasoning-functional", "reasoning", "Functional Assessment Reasoning", "FA"
)
_TEMPORAL = SubDimension(
    "reasoning-temporal", "reasoning", "Spatio-temporal Evolution Reasoning", "STE"
)
_ROBUSTNESS = SubDimension("robustness", "robustness", "Robustness", "RB")

SUB_DIMENSIONS: Mapping[str, SubDimension] = MappingProxyType(
    {
        sub.name: sub
        for sub in (_IMAGE, _OBJECT, _PIXEL, _GEOMETRIC, _FUNCTIONAL, _TEMPORAL, _ROBUSTNESS)
    }
)
"""Name -> sub-dimension, in the order of the paper's text."""

_AS_CLEAN: tuple[AnswerType, ...] = ("mcq", "yes_no")

LEAF_TASKS: Mapping[Task, LeafTask] = MappingProxyType(
    {
        leaf.task: leaf
        for leaf in (
            LeafTask(
                Task.SU, "Scene Understanding", _IMAGE, ("mcq",), "SU", "the type of the scene"
            ),
            LeafTask(
                Task.SC, "Scene Classification", _IMAGE, ("mcq",), "SC", "the scene's subtype"
            ),
            # The papers' column ID is the F1 of BERTScore of the captions.
            LeafTask(Task.IC, "Image Captioning", _IMAGE, ("text",), "ID", "a caption"),
            LeafTask(
                Task.OC, "Object Counting", _OBJECT, ("mcq",), "OC", "how many objects there are"
            ),
            LeafTask(
                Task.VG,
                "Visual Grounding",
                _OBJECT,
                ("box",),
                "VG",
                "the box of the one object that an expression refers to",
            ),
            LeafTask(
                Task.AR, "Attribute Identification", _OBJECT, ("mcq",), "AR", "an object's look"
            ),
            LeafTask(
                Task.OE,
                "Object Existence",
                _OBJECT,
                ("yes_no",),
                "OE",
                "whether something is there",
            ),
            LeafTask(
                Task.RS,
                "Referring Segmentation",
                _PIXEL,
                ("mask",),
                "",
                "the mask of the one object that an expression refers to",
            ),
            LeafTask(
                Task.API,
                "Absolute Position Reasoning",
                _GEOMETRIC,
                ("mcq",),
                "API",
                "along which compass axis a structure lies",
            ),
            LeafTask(
                Task.ASI,
                "Absolute Spatial Reasoning",
                _GEOMETRIC,
                ("mcq",),
                "ASI",
                "the compass direction from one object to another",
            ),
            LeafTask(
                Task.RSI,
                "Relative Spatial Reasoning",
                _GEOMETRIC,
                ("mcq",),
                "RSI",
                "where in the picture one object lies of another",
            ),
            LeafTask(
                Task.DC,
                "Distance Calculation",
                _GEOMETRIC,
                ("mcq",),
                "DC",
                "a length, interval or diameter on the ground",
            ),
            LeafTask(
                Task.AC, "Area Calculation", _GEOMETRIC, ("mcq",), "AC", "an area on the ground"
            ),
            LeafTask(
                Task.UI, "Usage Reasoning", _FUNCTIONAL, ("mcq",), "UI", "a facility's main use"
            ),
            LeafTask(
                Task.AI,
                "Attribute Reasoning",
                _FUNCTIONAL,
                ("mcq",),
                "AI",
                "what a facility's layout says of it, such as military or civilian",
            ),
            LeafTask(
                Task.TAI,
                "Temporal Attribute Reasoning",
                _TEMPORAL,
                ("mcq",),
                "TAI",
                "the season or another sign of when the picture was taken",
            ),
            LeafTask(
                Task.CI,
                "Change Reasoning",
                _TEMPORAL,
                ("mcq",),
                "CI",
                "what has changed between two pictures",
            ),
            LeafTask(
                Task.NR,
                "Noise Robustness",
                _ROBUSTNESS,
                _AS_CLEAN,
                "NR",
                "the same as a clean row, with noise on the picture",
            ),
            LeafTask(
                Task.OR,
                "Occlusion Robustness",
                _ROBUSTNESS,
                _AS_CLEAN,
                "OR",
                "the same as a clean row, with a part of the picture covered",
            ),
            LeafTask(
                Task.HD,
                "Hallucination Detection",
                _ROBUSTNESS,
                ("yes_no",),
                "HD",
                "whether a facility that is spoken of is really there",
            ),
        )
    }
)
"""Code -> leaf task, in the order of the paper's text."""

ALL = "all"


def configs() -> dict[str, tuple[Task, ...]]:
    """Return name of a config -> its leaf tasks: 20 leaf tasks, 7 sub-dimensions, ``all``."""
    named: dict[str, tuple[Task, ...]] = {leaf.config: (leaf.task,) for leaf in LEAF_TASKS.values()}
    for name, sub in SUB_DIMENSIONS.items():
        named[name] = tuple(t for t, leaf in LEAF_TASKS.items() if leaf.sub_dimension is sub)
    return {**named, ALL: tuple(Task)}


SceneType = Literal[
    "launch site", "training ground", "radar facility", "port", "barracks", "airport"
]
"""The types of scene of SU (004, Sec. III-C1); subtypes are open."""
PictureDirection = Literal[
    "above", "upper right", "right", "lower right", "below", "lower left", "left", "upper left"
]
"""Clockwise from the top, 45 degrees each."""
CompassDirection = Literal[
    "north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest"
]
"""Clockwise from north, 45 degrees each."""
CompassAxis = Literal["north-south", "northeast-southwest", "east-west", "northwest-southeast"]
"""Clockwise from north, 45 degrees each."""
ChangeKind = Literal["appeared", "disappeared", "moved", "altered", "unchanged"]
"""What can have happened to a target of CI."""

SCENE_TYPES: tuple[str, ...] = get_args(SceneType)
PICTURE_DIRECTIONS: tuple[str, ...] = get_args(PictureDirection)
COMPASS_DIRECTIONS: tuple[str, ...] = get_args(CompassDirection)
COMPASS_AXES: tuple[str, ...] = get_args(CompassAxis)
CHANGES: tuple[str, ...] = get_args(ChangeKind)
