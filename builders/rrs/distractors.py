"""Wrong options that are words: pools, the similarity-based filter, and seeded draws.

SDFS (004, Sec. III-B3): the pool of a question is ranked by the cosine of CLIP's embeddings of the
picture and of each option; a quarter is cut at either end, the easiest and the most confusable
ones; what is wrong among the rest is drawn from. CLIP ranks only: the right option is the
annotation's.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias, get_args

from soubench.builders.keyed import KeyedRandom
from soubench.builders.rrs.questions import Draft, Pool
from soubench.builders.rrs.taxonomy import (
    CHANGES,
    COMPASS_AXES,
    COMPASS_DIRECTIONS,
    PICTURE_DIRECTIONS,
    SCENE_TYPES,
    Task,
)
from soubench.builders.scene import normalized

Distractors: TypeAlias = Literal["sdfs", "random"]
DISTRACTORS: tuple[Distractors, ...] = get_args(Distractors)

CUT_SHARE = 0.25
SIMILARITY_DIGITS = 3
"""Similarities are rounded, so that a machine's last bits do not change a ranking."""

CLOSED_POOLS: Mapping[Pool, tuple[str, ...]] = {
    ("SU",): SCENE_TYPES,
    ("API",): COMPASS_AXES,
    ("ASI",): COMPASS_DIRECTIONS,
    ("RSI",): PICTURE_DIRECTIONS,
    ("CI",): CHANGES,
}
"""Pools that the taxonomy itself gives; all others hold the words that the records use."""

Similarity: TypeAlias = Callable[[str], float]
"""Option -> cosine with the picture at hand."""


class Filtered(NamedTuple):
    """What SDFS leaves of a pool.

    Attributes:
        kept: Wrong options to draw from, in the order of the ranking.
        cut: Options cut at either end.
        shrunk: The cut is smaller than the rule says, since too few would be left.
    """

    kept: tuple[str, ...]
    cut: int
    shrunk: bool


def sdfs(answer: str, wrong: Sequence[str], similarity: Similarity, needed: int) -> Filtered:
    """Filter the wrong options of a question by their similarity to the picture.

    Of the ranked pool, the right option among them, a quarter is cut at either end, at least one.
    The right option always stays: where it lies in a cut, the nearest wrong one on that side goes
    in its place, so that the number removed is the same.

    Args:
        answer: The right option.
        wrong: The wrong options, all different.
        similarity: Cosine of an option and the picture.
        needed: Wrong options that the question needs.
    """
    scored = {o: round(similarity(o), SIMILARITY_DIGITS) for o in (answer, *wrong)}
    ranked = sorted(wrong, key=lambda option: (-scored[option], option))
    rule = max(1, int(CUT_SHARE * (len(wrong) + 1)))
    # Cutting the ranking of all and giving the right option's place in a cut to its neighbor leaves
    # the same as cutting the ranking of the wrong ones.
    cut = max(0, min(rule, (len(ranked) - needed) // 2))
    return Filtered(tuple(ranked[cut : len(ranked) - cut]), cut, cut < rule)


@dataclass(slots=True)
class Pools:
    """The option pools, frozen over all records of a build.

    Attributes:
        words: Pool -> its options, sorted; different after normalization.
    """

    words: Mapping[Pool, tuple[str, ...]]

    @classmethod
    def freeze(
        cls, drafts: Iterable[Draft], own: Mapping[str, Mapping[str, Sequence[str]]]
    ) -> "Pools":
        """Collect the words that the records use.

        Args:
            drafts: All questions of the build.
            own: Task -> aspect or type (empty for tasks without) -> further options.
        """
        spellings: dict[Pool, Counter[str]] = {}
        for draft in drafts:
            if draft.pool:
                spellings.setdefault(draft.pool, Counter())[draft.answer] += 1
                if draft.pool[0] == "SC":
                    spellings.setdefault(("SC",), Counter())[draft.answer] += 1
        pool: Pool
        for task, parts in own.items():
            for part, words in parts.items():
                pool = (task, part) if part else (task,)
                spellings.setdefault(pool, Counter()).update(words)
        # One spelling for all pools of a task: subtypes are drawn from two of them.
        by_task: dict[str, Counter[str]] = {}
        for pool, counts in spellings.items():
            by_task.setdefault(pool[0], Counter()).update(counts)
        chosen = {task: _one_spelling(counts) for task, counts in by_task.items()}
        found = dict(CLOSED_POOLS)
        for pool, counts in spellings.items():
            if pool not in CLOSED_POOLS:
                found[pool] = tuple(sorted({chosen[pool[0]][normalized(word)] for word in counts}))
        return cls(found)

    def spelled(self, draft: Draft) -> Draft:
        """Give the right option its pool's spelling, or it would stand out by its own."""
        same = normalized(draft.answer)
        words = self.words.get(draft.pool, ())
        answer = next((word for word in words if normalized(word) == same), draft.answer)
        return draft if answer == draft.answer else replace(draft, answer=answer)

    def wrong(self, draft: Draft, needed: int) -> tuple[str, ...]:
        """Return all options of a question's pool that are wrong; see `candidates`."""
        return self.candidates(draft.pool, draft.answer, draft.also_true, needed)

    def candidates(
        self, pool: Pool, answer: str, also_true: Iterable[str], needed: int
    ) -> tuple[str, ...]:
        """Return all options of a pool that are wrong.

        Subtypes come from the scene's own type; from all types where that has too few.

        Args:
            pool: The pool.
            answer: The right option.
            also_true: What is true besides, normalized.
            needed: Options that are needed.
        """
        pools = [pool, pool[:1]] if pool[0] == Task.SC else [pool]
        true = {*also_true, normalized(answer)}
        found: tuple[str, ...] = ()
        for one in pools:
            found = tuple(w for w in self.words.get(one, ()) if normalized(w) not in true)
            if len(found) >= needed:
                break
        return found

    def as_dict(self) -> dict[str, list[str]]:
        """Return plain data for the fingerprint and the card."""
        return {"/".join(pool): list(words) for pool, words in sorted(self.words.items())}


def _one_spelling(counts: Mapping[str, int]) -> dict[str, str]:
    """Return normalized word -> its most frequent spelling."""
    chosen: dict[str, str] = {}
    for word in sorted(counts, key=lambda w: (-counts[w], w)):
        chosen.setdefault(normalized(word), word)
    return chosen


@dataclass(slots=True)
class Choices:
    """Counts what the draws of a build met.

    Attributes:
        fewer: Task -> questions with fewer options than asked for.
        shrunk: Task -> questions whose cut is smaller than the rule says.
        filtered: Task -> questions whose pool was filtered.
    """

    fewer: Counter[Task] = field(default_factory=Counter)
    shrunk: Counter[Task] = field(default_factory=Counter)
    filtered: Counter[Task] = field(default_factory=Counter)


def draw_wrong(
    draft: Draft,
    pools: Pools,
    ways: int,
    rng: KeyedRandom,
    similarity: Similarity | None,
    choices: Choices,
) -> tuple[str, ...]:
    """Draw the wrong options of a multiple-choice question; none where its pool has none.

    Args:
        draft: The question.
        pools: All pools.
        ways: Options wanted, the right one included.
        rng: Draws of this question.
        similarity: Cosine of an option and the picture; None for random draws.
        choices: Counts what happened.
    """
    if not draft.pool:
        return draft.wrong
    wrong = pools.wrong(draft, ways - 1)
    needed = min(ways - 1, len(wrong))
    if needed < ways - 1 and needed:
        choices.fewer[draft.task] += 1
    kept = wrong
    if similarity is not None and needed:
        found = sdfs(draft.answer, wrong, similarity, needed)
        choices.filtered[draft.task] += 1
        choices.shrunk[draft.task] += found.shrunk
        kept = found.kept
    return tuple(rng.sample(kept, needed))
