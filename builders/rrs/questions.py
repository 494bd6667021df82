"""From one record to the questions that it can carry (004, Sec. III-C).

What an expert said is asked as it was said, every annotation once. Where a record says nothing of a
task, one question is derived from what its objects prove, if they prove any. No draw depends on
another record: distractors that are words come later, from pools that are frozen over all records.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot
from types import MappingProxyType
from typing import TypeAlias

from soubench.builders.keyed import KeyedRandom
from soubench.builders.rrs.geometry import (
    MIN_DISTANCE_SHARE,
    Box,
    Figure,
    Named,
    bearing_deg,
    compass_axis,
    compass_direction,
    count_by_category,
    distance_px,
    named_figures,
    picture_direction,
)
from soubench.builders.rrs.masks import (
    Encoded,
    encode_mask,
    mask_area_px,
    mask_box_xywh,
    mask_json,
)
from soubench.builders.rrs.numbers import count_options, measure_options, measure_text
from soubench.builders.rrs.prompts import Prompts
from soubench.builders.rrs.record import Annotation, Facility, Record
from soubench.builders.rrs.taxonomy import AnswerType, Task
from soubench.builders.scene import normalized

Pool: TypeAlias = tuple[str, ...]
"""Names a pool of words: the task, then what divides it (an aspect, a type of scene)."""

EDGE_PX = 1.0
"""What comes this close to the edge may go on beyond it."""
NORTH_UP_DEG = 0.5
"""North this close to the top edge is said to be at the top."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the answer rests on.

    Attributes:
        text: The annotator's words.
        boxes_xyxy: What must be seen, px of the last picture.
        whole_picture: The scene as a whole is what must be seen.
        provenance: Who or what said so.
        human_verified: A person has checked it.
    """

    text: str = ""
    boxes_xyxy: tuple[tuple[float, ...], ...] = ()
    whole_picture: bool = False
    provenance: str = ""
    human_verified: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """One question without its letter, and without the distractors that come from a pool.

    Attributes:
        task: The leaf task.
        question: What is asked.
        answer_type: What the answer is.
        answer: The text of the right option, ``yes`` or ``no``, a box, a mask, or a caption.
        evidence: What it rests on.
        wrong: Wrong options, where they are numbers.
        pool: The pool of the wrong options, where they are words.
        also_true: Words that are true, too, and no distractors.
        references: All right texts.
        box_xyxy: The right box, and of a mask the box around it.
        mask: The right mask.
        target: What the answer is about: an expression, a category.
    """

    task: Task
    question: str
    answer_type: AnswerType
    answer: str
    evidence: Evidence
    wrong: tuple[str, ...] = ()
    pool: Pool = ()
    also_true: frozenset[str] = frozenset()
    references: tuple[str, ...] = ()
    box_xyxy: tuple[float, ...] = ()
    mask: Encoded | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of one record, and why others are not asked.

    Attributes:
        drafts: In the order of the taxonomy.
        unable: (task, reason) -> how often.
    """

    drafts: tuple[Draft, ...]
    unable: Mapping[tuple[Task, str], int]


@dataclass(slots=True)
class Subject:
    """A record on its way to questions.

    Attributes:
        record: A record that passed all checks.
        size_wh: Width and height of its pictures in px.
        prompts: The words.
        ways: Options of a multiple-choice question.
        key: What draws are keyed by: version and seed.
    """

    record: Record
    size_wh: tuple[int, int]
    prompts: Prompts
    ways: int
    key: tuple[str, int]
    figures: list[Figure] = field(init=False)
    named: list[Named] = field(init=False)
    unable: Counter[tuple[Task, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Measure the objects, and find which of them words can refer to alone."""
        width, height = self.size_wh
        self.figures = [
            Figure(i, o, None if o.mask is None else encode_mask(o.mask, height, width))
            for i, o in enumerate(self.record.objects)
        ]
        self.named = named_figures(
            self.figures,
            self.record.exhaustive,
            self.size_wh,
            lambda key, category: self.prompts.expression(key, shown(category)),
        )
        by_id = {f.object.id: f for f in self.figures if f.object.id is not None}
        self.named += [
            Named(e.text, by_id[e.object]) for e in self.record.expressions if e.object is not None
        ]

    @property
    def whole(self) -> list[Named]:
        """Those that the picture's edge does not cut: of others no length or center is known."""
        width, height = self.size_wh
        return [
            named
            for named in self.named
            if min(named.figure.box_xyxy[:2]) >= EDGE_PX
            and named.figure.box_xyxy[2] <= width - EDGE_PX
            and named.figure.box_xyxy[3] <= height - EDGE_PX
        ]

    def rng(self, task: Task, use: str) -> KeyedRandom:
        """Return the draws of one task of this record."""
        return KeyedRandom(*self.key, self.record.source, self.record.id, task.value, use)

    def cannot(self, task: Task, reason: str) -> None:
        """Count a question that is not asked."""
        self.unable[task, reason] += 1

    def evidence(
        self,
        annotation: Annotation | None = None,
        boxes: Sequence[Box] = (),
        *,
        whole_picture: bool = False,
    ) -> Evidence:
        """Return what an annotation, or labels in general, say of themselves."""
        record = self.record
        verified = annotation.human_verified if annotation is not None else None
        return Evidence(
            text=annotation.evidence if annotation is not None else "",
            boxes_xyxy=tuple(tuple(map(float, box)) for box in boxes),
            whole_picture=whole_picture,
            provenance=(annotation.provenance if annotation is not None else "")
            or record.provenance,
            human_verified=record.human_verified if verified is None else verified,
        )

    def north(self) -> str | None:
        """Return the sentence that says where north is; None where nobody said it."""
        degrees = self.record.north_deg
        if degrees is None:
            return None
        if min(degrees, 360 - degrees) <= NORTH_UP_DEG:
            return self.prompts.words("north_up")
        return self.prompts.words("north", degrees=f"{degrees:g}")

    def scale(self) -> str | None:
        """Return the sentence that says how much ground is shown; None where nobody said it."""
        gsd = self.record.gsd_m
        if gsd is None:
            return None
        # Four digits, and no exponent.
        width, height = (f"{float(f'{side * gsd:.4g}'):.12g}" for side in self.size_wh)
        return self.prompts.words("scale", width=width, height=height)


def shown(category: str) -> str:
    """Return a category as it is written in a sentence.

    >>> shown("storage-tank")
    'storage tank'
    """
    return category.replace("-", " ").replace("_", " ")


def box_text(box: Box) -> str:
    """Return a box as an answer: whole px where they are, else two decimals.

    >>> box_text((1.0, 2.25, 30.126, 4))
    '[1,2.25,30.13,4]'
    >>> box_text((0, 0, 12345.678, 250000.5))
    '[0,0,12345.68,250000.5]'
    """
    return "[" + ",".join(f"{round(v, 2):.12g}" for v in box) + "]"


def ask(subject: Subject) -> Asked:
    """Ask everything that a record carries, in the order of the taxonomy."""
    record = subject.record
    wanted = {Task(t) for t in record.tasks} if record.tasks is not None else set(Task)
    makers = _PAIR_MAKERS if len(record.images) == 2 else _MAKERS
    drafts: list[Draft] = []
    for task in Task:
        if task in makers and task in wanted:
            drafts += makers[task](subject)
    return Asked(tuple(drafts), {k: n for k, n in subject.unable.items() if k[0] in wanted})


def _scene_understanding(s: Subject) -> Iterator[Draft]:
    scene = s.record.scene
    if scene is None:
        return s.cannot(Task.SU, "no_scene_label")
    yield _words(s, Task.SU, "SU", scene.type, scene, ("SU",), whole_picture=True)


def _scene_classification(s: Subject) -> Iterator[Draft]:
    scene = s.record.scene
    if scene is None or scene.subtype is None:
        return s.cannot(Task.SC, "no_scene_subtype")
    yield _words(s, Task.SC, "SC", scene.subtype, scene, ("SC", scene.type), whole_picture=True)


def _captioning(s: Subject) -> Iterator[Draft]:
    captions = s.record.captions
    if not captions:
        return s.cannot(Task.IC, "no_caption")
    texts = tuple(dict.fromkeys(caption.text.strip() for caption in captions))
    yield Draft(
        Task.IC,
        s.prompts.question("IC"),
        "text",
        texts[0],
        s.evidence(captions[0], whole_picture=True),
        references=texts,
    )


def _counting(s: Subject) -> Iterator[Draft]:
    for i, said in enumerate(s.record.counts):
        question = s.prompts.question("OC", target=said.target)
        wrong = count_options(said.count, s.ways - 1, s.rng(Task.OC, f"options {i}"))
        evidence = s.evidence(said, said.boxes_xyxy)
        yield Draft(Task.OC, question, "mcq", str(said.count), evidence, wrong, target=said.target)
    if s.record.counts:
        return
    present = {
        category: members
        for category, members in count_by_category(s.figures).items()
        if category in s.record.exhaustive
    }
    if not present:
        return s.cannot(Task.OC, "no_category_labelled_completely")
    category = s.rng(Task.OC, "target").choice(sorted(present))
    members = present[category]
    wrong = count_options(len(members), s.ways - 1, s.rng(Task.OC, "options"))
    yield Draft(
        Task.OC,
        s.prompts.question("OC_category", target=shown(category)),
        "mcq",
        str(len(members)),
        s.evidence(None, [m.box_xyxy for m in members]),
        wrong,
        target=category,
    )


def _grounding(s: Subject) -> Iterator[Draft]:
    by_id = {o.id: o for o in s.record.objects if o.id is not None}
    said = 0
    for e in s.record.expressions:
        box = by_id[e.object].box_xyxy if e.object is not None else e.box_xyxy
        if box is not None:
            said += 1
            yield _box(s, e.text, box, s.evidence(e, [box]))
    if said:
        return
    if not s.named:
        return s.cannot(Task.VG, "no_object_that_words_refer_to_alone")
    chosen = s.rng(Task.VG, "target").choice(s.named)
    found = chosen.figure.box_xyxy
    yield _box(s, chosen.text, found, s.evidence(chosen.figure.object, [found]))


def _box(s: Subject, text: str, box: Box, evidence: Evidence) -> Draft:
    return Draft(
        Task.VG,
        s.prompts.question("VG", target=text),
        "box",
        box_text(box),
        evidence,
        box_xyxy=tuple(map(float, box)),
        target=text,
    )


def _segmentation(s: Subject) -> Iterator[Draft]:
    width, height = s.size_wh
    by_id = {f.object.id: f for f in s.figures if f.object.id is not None}
    said = 0
    for e in s.record.expressions:
        if e.object is not None:
            mask = by_id[e.object].mask
        else:
            mask = None if e.mask is None else encode_mask(e.mask, height, width)
        if mask is not None:
            said += 1
            yield _mask(s, e.text, mask, s.evidence(e, [_around(mask)]))
    if said:
        return
    masked = [named for named in s.named if named.figure.mask is not None]
    if not masked:
        has_masks = any(f.mask is not None for f in s.figures)
        reason = "no_object_that_words_refer_to_alone" if has_masks else "no_mask"
        return s.cannot(Task.RS, reason)
    chosen = s.rng(Task.RS, "target").choice(masked)
    if chosen.figure.mask is not None:
        found = chosen.figure.mask
        yield _mask(s, chosen.text, found, s.evidence(chosen.figure.object, [_around(found)]))


def _around(mask: Encoded) -> tuple[float, ...]:
    x, y, w, h = mask_box_xywh(mask)
    return x, y, x + w, y + h


def _mask(s: Subject, text: str, mask: Encoded, evidence: Evidence) -> Draft:
    return Draft(
        Task.RS,
        s.prompts.question("RS", target=text),
        "mask",
        mask_json(mask),
        evidence,
        box_xyxy=_around(mask),
        mask=mask,
        target=text,
    )


def _attribute(s: Subject) -> Iterator[Draft]:
    said: list[tuple[Annotation, str, str, str, Box | None]] = [
        (a, a.target, a.aspect, a.value, a.box_xyxy) for a in s.record.attributes
    ]
    derived: list[tuple[Annotation, str, str, str, Box | None]] = [
        (named.figure.object, named.text, aspect, value, named.figure.box_xyxy)
        for named in s.named
        for aspect, value in sorted(named.figure.object.attributes.items())
    ]
    if not said and derived:
        said = [s.rng(Task.AR, "target").choice(derived)]
    if not said:
        return s.cannot(Task.AR, "no_attribute_of_an_object_that_words_refer_to_alone")
    for annotation, target, aspect, value, box in said:
        pool = ("AR", normalized(aspect))
        also = {v for _, t, a, v, _ in (*said, *derived) if (t, normalized(a)) == (target, pool[1])}
        question = s.prompts.question("AR", aspect=aspect, target=target)
        evidence = s.evidence(annotation, [] if box is None else [box])
        yield Draft(
            Task.AR,
            question,
            "mcq",
            value,
            evidence,
            pool=pool,
            also_true=_normal(also),
            target=target,
        )


def _existence(s: Subject) -> Iterator[Draft]:
    yield from _yes_and_no(s, Task.OE)


def _hallucination(s: Subject) -> Iterator[Draft]:
    yield from _yes_and_no(s, Task.HD)


Claim: TypeAlias = tuple[str, Annotation | None, tuple[Box, ...]]
"""Something that is there or is not: its name, who says so if not the labels, and where."""


def _yes_and_no(s: Subject, task: Task) -> Iterator[Draft]:
    """Ask for what is there and for what is not, as often, so that either answer is chance.

    All that annotators named is asked about; labels fill up the shorter side, and give one pair
    where nobody named anything.
    """
    labelled = count_by_category(s.figures)
    there = _named_by_annotators(s.record.present)
    gone = _named_by_annotators(s.record.absent)
    # Labels of a whole set are many, and what an annotator named is the better trap.
    more_there: list[Claim] = [
        (shown(category), None, (max((m.box_xyxy for m in members), key=_area),))
        for category, members in labelled.items()
        if normalized(category) not in there
    ]
    known = {*there, *gone, *map(normalized, labelled)}
    more_gone: list[Claim] = [
        (shown(category), None, ())
        for category in s.record.exhaustive
        if normalized(category) not in known
    ]
    pairs = max(len(there), len(gone), 1)
    yes = _filled_up(there, more_there, pairs, s.rng(task, "yes"))
    no = _filled_up(gone, more_gone, pairs, s.rng(task, "no"))
    for kind, claims in (("there", yes), ("absent", no)):
        if not claims:
            for _ in range(pairs):
                s.cannot(task, f"nothing_known_to_be_{kind}")
            return
    asked = min(len(yes), len(no))
    for claims in (yes, no):
        kept = s.rng(task, "asked").sample(range(len(claims)), asked)
        for _ in range(len(claims) - asked):
            s.cannot(task, "no_question_of_the_other_answer")
        claims[:] = [claims[i] for i in sorted(kept)]
    for one in zip(yes, no, strict=True):
        for answer, (name, annotation, boxes) in zip(("yes", "no"), one, strict=True):
            yield Draft(
                task,
                s.prompts.question(task.value, target=name),
                "yes_no",
                answer,
                s.evidence(annotation, boxes, whole_picture=answer == "no"),
                target=name,
            )


def _named_by_annotators(facilities: Sequence[Facility]) -> dict[str, Claim]:
    """Return what facilities say, each name once, with all places that are said of it."""
    found: dict[str, Claim] = {}
    for facility in facilities:
        key = normalized(facility.name)
        name, annotation, boxes = found.get(key, (facility.name, facility, ()))
        own = () if facility.box_xyxy is None else (facility.box_xyxy,)
        found[key] = (name, annotation, (*boxes, *own))
    return found


def _filled_up(
    named: Mapping[str, Claim], more: Sequence[Claim], wanted: int, rng: KeyedRandom
) -> list[Claim]:
    """Return all that is named, and so many others that there are as many as wanted, if so."""
    lacking = min(len(more), wanted - len(named))
    return [*named.values(), *rng.sample(sorted(more, key=lambda claim: claim[0]), lacking)]


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _absolute_position(s: Subject) -> Iterator[Draft]:
    north, degrees = s.north(), s.record.north_deg
    if north is None or degrees is None:
        return s.cannot(Task.API, "north_not_declared")
    said: list[tuple[Annotation, str, float, Box | None]] = [
        (o, o.target, o.bearing_deg, o.box_xyxy) for o in s.record.orientations
    ]
    if not said:
        derived: list[tuple[Annotation, str, float, Box | None]] = []
        for named in s.whole:
            bearing = bearing_deg(named.figure, degrees)
            if bearing is not None and compass_axis(bearing) is not None:
                derived.append((named.figure.object, named.text, bearing, named.figure.box_xyxy))
        said = [s.rng(Task.API, "target").choice(derived)] if derived else []
        if not said:
            return s.cannot(Task.API, "no_structure_with_a_clear_axis")
    for annotation, target, bearing, box in said:
        axis = compass_axis(bearing)
        if axis is None:
            s.cannot(Task.API, "bearing_near_the_border_of_two_axes")
            continue
        yield Draft(
            Task.API,
            s.prompts.question("API", north=north, target=target),
            "mcq",
            axis,
            s.evidence(annotation, [] if box is None else [box]),
            pool=("API",),
            target=target,
        )


def _absolute_spatial(s: Subject) -> Iterator[Draft]:
    north, degrees = s.north(), s.record.north_deg
    if north is None or degrees is None:
        return s.cannot(Task.ASI, "north_not_declared")
    said = [(r, r.target, r.reference, r.direction) for r in s.record.compass_relations]
    yield from _relation(
        s, Task.ASI, said, lambda a, b: compass_direction(a, b, degrees), north=north
    )


def _relative_spatial(s: Subject) -> Iterator[Draft]:
    said = [(r, r.target, r.reference, r.direction) for r in s.record.picture_relations]
    yield from _relation(s, Task.RSI, said, picture_direction)


def _relation(
    s: Subject,
    task: Task,
    said: Sequence[tuple[Annotation, str, str, str]],
    direction: Callable[[Box, Box], str | None],
    **fields: str,
) -> Iterator[Draft]:
    """Ask for the direction from one object to another."""
    if said:
        for annotation, target, reference, answer in said:
            question = s.prompts.question(task.value, target=target, reference=reference, **fields)
            yield Draft(
                task,
                question,
                "mcq",
                answer,
                s.evidence(annotation),
                pool=(task.value,),
                target=target,
            )
        return
    pairs = list(_pairs(s.named, s.rng(task, "target")))
    for a, b in pairs:
        found = direction(a.figure.box_xyxy, b.figure.box_xyxy)
        if found is not None:
            yield Draft(
                task,
                s.prompts.question(task.value, target=a.text, reference=b.text, **fields),
                "mcq",
                found,
                s.evidence(None, [a.figure.box_xyxy, b.figure.box_xyxy]),
                pool=(task.value,),
                target=a.text,
            )
            return
    reason = "every_direction_near_a_border" if pairs else "no_two_objects_that_words_refer_to"
    return s.cannot(task, reason)


MAX_PAIRS = 200


def _pairs(named: Sequence[Named], rng: KeyedRandom) -> Iterator[tuple[Named, Named]]:
    """Yield pairs of different objects in random order."""
    indices = [
        (i, j)
        for i, a in enumerate(named)
        for j, b in enumerate(named)
        if a.figure.index != b.figure.index
    ]
    rng.shuffle(indices)
    for i, j in indices[:MAX_PAIRS]:
        yield named[i], named[j]


def _distance(s: Subject) -> Iterator[Draft]:
    scale, gsd = s.scale(), s.record.gsd_m
    if scale is None or gsd is None:
        return s.cannot(Task.DC, "gsd_not_given")
    said = [m for m in s.record.measurements if m.kind != "area"]
    for i, m in enumerate(said):
        fields = {"reference": m.reference} if m.reference is not None else {}
        question = s.prompts.question(f"DC_{m.kind}", scale=scale, target=m.target, **fields)
        evidence = s.evidence(m, [] if m.box_xyxy is None else [m.box_xyxy])
        yield _measure(s, Task.DC, question, m.value, "m", evidence, m.target, str(i))
    if said:
        return
    lengths: list[tuple[str, dict[str, str], float, list[Box]]] = []
    for named in s.whole:
        axis = named.figure.axis
        if axis is not None and bearing_deg(named.figure, 0.0) is not None:
            box = named.figure.box_xyxy
            lengths.append(("DC_length", {"target": named.text}, axis.length_px, [box]))
    least = MIN_DISTANCE_SHARE * hypot(*s.size_wh)
    for a, b in _pairs(s.whole, s.rng(Task.DC, "pair")):
        far = distance_px(a.figure, b.figure)
        if far >= least:
            fields = {
                "target": s.prompts.words("center", target=a.text),
                "reference": s.prompts.words("center", target=b.text),
            }
            lengths.append(("DC_distance", fields, far, [a.figure.box_xyxy, b.figure.box_xyxy]))
            break
    if not lengths:
        return s.cannot(Task.DC, "nothing_to_measure")
    key, fields, px, boxes = s.rng(Task.DC, "target").choice(lengths)
    question = s.prompts.question(key, scale=scale, **fields)
    yield _measure(
        s, Task.DC, question, px * gsd, "m", s.evidence(None, boxes), fields["target"], ""
    )


def _area_calculation(s: Subject) -> Iterator[Draft]:
    scale, gsd = s.scale(), s.record.gsd_m
    if scale is None or gsd is None:
        return s.cannot(Task.AC, "gsd_not_given")
    said = [m for m in s.record.measurements if m.kind == "area"]
    for i, m in enumerate(said):
        question = s.prompts.question("AC", scale=scale, target=m.target)
        evidence = s.evidence(m, [] if m.box_xyxy is None else [m.box_xyxy])
        yield _measure(s, Task.AC, question, m.value, "m²", evidence, m.target, str(i))
    if said:
        return
    areas: list[tuple[str, float, Box]] = []
    for named in s.whole:
        figure = named.figure
        if figure.mask is not None:
            areas.append((named.text, float(mask_area_px(figure.mask)), figure.box_xyxy))
        elif figure.axis is not None and figure.quad_area_px is not None:
            # An oriented box proves its own area, not that of what it holds.
            text = s.prompts.words("rectangle", target=named.text)
            areas.append((text, figure.quad_area_px, figure.box_xyxy))
    if not areas:
        return s.cannot(Task.AC, "nothing_to_measure")
    text, px, box = s.rng(Task.AC, "target").choice(areas)
    question = s.prompts.question("AC", scale=scale, target=text)
    yield _measure(s, Task.AC, question, px * gsd * gsd, "m²", s.evidence(None, [box]), text, "")


def _measure(
    s: Subject,
    task: Task,
    question: str,
    value: float,
    unit: str,
    evidence: Evidence,
    target: str,
    use: str,
) -> Draft:
    wrong = measure_options(value, unit, s.ways - 1, s.rng(task, f"options {use}"))
    return Draft(task, question, "mcq", measure_text(value, unit), evidence, wrong, target=target)


def _usage(s: Subject) -> Iterator[Draft]:
    if not s.record.usages:
        return s.cannot(Task.UI, "no_usage")
    for u in s.record.usages:
        also = [o.value for o in s.record.usages if o.target == u.target]
        yield _words(s, Task.UI, "UI", u.value, u, ("UI",), also=also, target=u.target)


def _facility_attribute(s: Subject) -> Iterator[Draft]:
    if not s.record.facility_attributes:
        return s.cannot(Task.AI, "no_facility_attribute")
    for f in s.record.facility_attributes:
        pool = ("AI", normalized(f.aspect))
        also = [
            o.value
            for o in s.record.facility_attributes
            if (o.target, normalized(o.aspect)) == (f.target, pool[1])
        ]
        yield _words(
            s, Task.AI, "AI", f.value, f, pool, also=also, target=f.target, aspect=f.aspect
        )


def _temporal(s: Subject) -> Iterator[Draft]:
    if not s.record.temporal:
        return s.cannot(Task.TAI, "no_temporal_fact")
    for t in s.record.temporal:
        pool = ("TAI", normalized(t.aspect))
        also = [o.value for o in s.record.temporal if normalized(o.aspect) == pool[1]]
        yield _words(s, Task.TAI, "TAI", t.value, t, pool, also=also, aspect=t.aspect)


def _change(s: Subject) -> Iterator[Draft]:
    if not s.record.changes:
        return s.cannot(Task.CI, "no_change_said")
    for c in s.record.changes:
        box = c.after_box_xyxy or c.before_box_xyxy
        yield Draft(
            Task.CI,
            s.prompts.question("CI", target=c.target),
            "mcq",
            c.kind,
            s.evidence(c, [] if box is None else [box]),
            pool=("CI",),
            target=c.target,
        )


def _words(
    s: Subject,
    task: Task,
    key: str,
    answer: str,
    annotation: Annotation,
    pool: Pool,
    *,
    also: Sequence[str] = (),
    whole_picture: bool = False,
    **fields: str,
) -> Draft:
    """Make a question whose options are words."""
    return Draft(
        task,
        s.prompts.question(key, **fields),
        "mcq",
        answer,
        s.evidence(annotation, whole_picture=whole_picture),
        pool=pool,
        also_true=_normal(also),
        target=fields.get("target", ""),
    )


def _normal(texts: Sequence[str] | set[str]) -> frozenset[str]:
    return frozenset(map(normalized, texts))


Make: TypeAlias = Callable[[Subject], Iterator[Draft]]

_MAKERS: Mapping[Task, Make] = MappingProxyType(
    {
        Task.SU: _scene_understanding,
        Task.SC: _scene_classification,
        Task.IC: _captioning,
        Task.OC: _counting,
        Task.VG: _grounding,
        Task.AR: _attribute,
        Task.OE: _existence,
        Task.RS: _segmentation,
        Task.API: _absolute_position,
        Task.ASI: _absolute_spatial,
        Task.RSI: _relative_spatial,
        Task.DC: _distance,
        Task.AC: _area_calculation,
        Task.UI: _usage,
        Task.AI: _facility_attribute,
        Task.TAI: _temporal,
        Task.HD: _hallucination,
    }
)
_PAIR_MAKERS: Mapping[Task, Make] = MappingProxyType({Task.CI: _change})
"""Task -> how it is asked of one picture, and of a pair. NR and OR are made of other rows."""
