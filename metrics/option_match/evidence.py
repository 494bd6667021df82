"""Weigh what a reply says about each option it mentions, and decide.

Works on mentions of letters and of option texts alike. A leaf module (see ``reply.py``).
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

LEFT_CHARS = 90
MAX_GROUPS = 400


class Mention(Protocol):
    """A span of text that stands for one option."""

    @property
    def start(self) -> int:
        """First character."""

    @property
    def end(self) -> int:
        """One past the last character."""

    @property
    def letter(self) -> str:
        """The option's letter."""


class Weight(IntEnum):
    """How far a mention commits the reply."""

    DENIED = 0
    NAMED = 1
    FAVORED = 2
    ANSWERED = 3


class Group(NamedTuple):
    """Mentions joined by "and", "or" or commas, weighed together.

    Attributes:
        letters: Distinct letters, in order.
        weight: What the words around them say.
        start: First character.
    """

    letters: tuple[str, ...]
    weight: Weight
    start: int


_FILLER = (
    r"(?:[\s\"'(\[:=*>-]|\b(?:options?|choices?|letters?|alternatives?|answer|number|the|an?"
    r"|either|both"
    r"|probably|likely|possibly|perhaps|maybe|most|definitely|clearly|certainly|still|simply|just"
    r"|about"
    r"|approximately|indeed|actually|therefore|thus|be|closest|to|category|class|la|le|el|die|der"
    r"|das|opci[oó]n"
    r"|opção|opzione|буква|вариант)\b)*$"
)
_ANSWER_NOUN = (
    r"(?:answers?|ans|solution|conclusion|verdict|antwort|lösung|richtig|r[ée]ponse|respuesta"
    r"|resposta"
    r"|risposta|ответ|cevap|odpowied[zź]|antwoord|jawaban|svar|svaret|đáp án|الإجابة|الجواب|उत्तर"
    r"|vastaus)"
)
_CHOICE_NOUN = (
    r"(?:result|response|prediction|choice|selection|pick|guess|bet|estimate|option|correct one"
    r"|right one|correct|right)"
)
_BE = (
    r"(?:is|was|are|would be|should be|must be|has to be|will be|be|ist|lautet|est|es|é|è|jest"
    r"|adalah|là)"
)
_ANSWERED_BEFORE = re.compile(
    rf"\b{_ANSWER_NOUN}\b(?:[^.;!?\n]{{0,40}}?(?:\b{_BE}\b|[:=]|->|-)|\s{{0,3}}(?=[\"'(\[\n]"
    rf"|$))\s{{0,3}}{_FILLER}"
    rf"|\b{_CHOICE_NOUN}\b[^.;!?\n]{{0,40}}?(?:\b{_BE}\b|[:=]|->)\s{{0,3}}{_FILLER}"
    r"|\b(?:choose|chose|choosing|pick|picked|picking|select|selected|selecting|(?:go|going"
    r"|went)\s(?:with|for)"
    r"|vote for|settle on|settled on|opt for|conclude(?: that)?(?: it is)?|i(?:'d| would|'ll"
    r"| will)? say|i(?:'d| would) guess|i guess"
    r"|i answer|mark|marking|wähle|elijo|escojo|selecciono|je choisis|scelgo|escolho"
    rf"|выбираю)\b\s{{0,3}}{_FILLER}"
    rf"|\b(?:leaves|leaving|left with|remaining option is|which is)\b\s{{0,3}}{_FILLER}"
    r"|(?:答案|正确选项|正確選項|正解|答え|回答|解答|정답|답)[^.;,\n]{0,12}$"
    r"|(?:选择|選擇|应选|應選|故选|故選|选|選|選ぶ|選びます)(?:项|項|的是|了|择"
    r"|擇)?[\s:是为為\"'(\[]{0,4}(?:选项|選項|option )?[\s\"'(\[]{0,2}$",
)
_FAVORED_BEFORE = re.compile(
    r"(?:\b(?:so|therefore|thus|hence|finally|overall|consequently|also|daher|donc|luego)\b|->"
    rf"|=>)[\s,:]{{0,3}}{_FILLER}"
    r"|\b(?:it|that|this|which|object|one|thing|item|there|he|she)(?:'s|\s(?:is|are|was|must be"
    r"|should be|has to be|looks like|seems(?: to be)?"
    rf"|appears(?: to be)?|looks to be|would be))\b\s{{0,3}}{_FILLER}"
    r"|\b(?:lean(?:ing)?(?: more)?(?: towards?| to)?|prefer|favou?r|guess|trust|points? to"
    rf"|believe(?: it is| it's)?)\b\s{{0,3}}{_FILLER}"
    rf"|\b(?:most|more)\s(?:likely|probable|probably|plausible|plausibly)\b[\s,:]{{0,3}}{_FILLER}"
    rf"|\b(?:probably|likely)\b[\s,:]{{0,3}}{_FILLER}",
)
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|scratch that|on second thought|sorry|or rather|hmm|no|instead"
    r"|let me correct"
    r"|i meant?|corrected|revised|change my answer|reconsider\w*|looking again|looking closer"
    r"|however)\b",
)
_CORRECTED_BEFORE = re.compile(
    r"\b(?:wait|actually|correction|scratch that|sorry|or rather|no(?=[,.:-])|i meant?"
    rf"|make that)[\s,.:-]{{1,3}}"
    rf"(?:it(?:'s| is)\s|that(?:'s| is)\s)?{_FILLER}",
)
_ADVERBS = (
    r"(?:the|an?|my|our|most|more|very|clearly|probably|likely|also|still|definitely|indeed"
    r"|certainly|only"
    r"|therefore|thus|the one that is|a bit|slightly|best|final|single|to be|about|just)"
)
_ANSWERED_AFTER = re.compile(
    r"[\"')\].:,*]{0,3}\s{0,2}(?:\([^()\n]{1,60}\)\s)?(?:[-=]\s)?"
    r"(?:(?:is|are|was|would be|should be|must be|seems|looks|appears|being"
    rf"|remains)\s(?:{_ADVERBS}\s){{0,4}}"
    r"(?:correct|right|answers?|true|option|choice|best|accurate|my answer|it|pick|solution)\b"
    r"(?!\s(?:only if|if)\b)"
    r"|(?:项|項|选项|選項)?(?:是|为|為|が|は)?(?:最)?(?:正确|正確|正解|对的|對的|合适)"
    r"|(?:가|이)\s?(?:정답|맞)|ist\s(?:richtig|korrekt)|est\s(?:correcte|la bonne)"
    r"|es\s(?:la\s)?(?:correcta|respuesta))",
)
_FAVORED_AFTER = re.compile(
    r"[\"')\].:,*]{0,3}\s{0,2}(?:\([^()\n]{1,60}\)\s)?"
    r"(?:(?:is|are|was|would be|seems?|looks?|appears?|feels?|sounds?"
    rf"|remains)\s(?:{_ADVERBS}\s){{0,4}}"
    r"(?:plausible|likely|probable|reasonable|closest|closer|fitting|appropriate|suitable|match"
    r"|fit|likeliest|better|sensible|consistent)\b"
    r"|(?:best\s)?(?:fits|matches|agrees|stands out|it is)\b|makes (?:the most )?sense)",
)
_DENIED_AFTER = re.compile(
    r"[\"')\].,*]{0,3}\s{0,2}(?:\([^()\n]{1,60}\)\s)?"
    r"(?:(?:both|all|each)\s)?"
    rf"(?:(?:is|are|was|were|seems?|looks?|appears?|would be|being)\s(?:{_ADVERBS}\s|far\s|way\s"
    rf"|much\s|obviously\s|both\s|all\s|just\s){{0,3}}"
    r"(?:not\b|never\b|no\s|wrong|incorrect|too\s|false|unlikely|less\s|implausible|impossible"
    r"|improbable|out\b|excluded|eliminated|ruled"
    r"|inaccurate|invalid|off\b|unreasonable|inconsistent|discarded|rejected|distractors?|worse"
    r"|absent|missing|lower than|higher than)"
    r"|(?:is|are|was|were|does|do|did|can|could|would|has|have|should)n'?t\b|cannot\b|(?:does|do"
    r"|did|can|could|would|has|should|may|might) not\b"
    r"|(?:can|could|should|may|must) be (?:ruled|excluded|eliminated|discarded|dismissed|rejected)"
    r"|too\s(?:low|high|small|large|big|few|many|much|short|long|wide|far)\b"
    r"|fails?\b|undercounts?|overcounts?|miss(?:es)?\b|overestimates?|underestimates?|ignores?"
    r"|lacks?\b|contradicts?|excluded|eliminated|ruled out"
    r"|[:=(-]\s?(?:no\b|not\b|false|wrong|incorrect|excluded|eliminated|too\s)"
    r"|(?:项|項|选项|選項)?(?:是|都|均)?(?:不|错|錯|有误|排除|可排除)|ではな|じゃな|でもな|(?:가"
    r"|이|는|은)\s?아니|ist\s(?:falsch|nicht)|n'est\spas|no\ses)",
)
_PLURAL_AFTER = re.compile(
    r"[\"')\]]{0,2}\s(?:(?:both|all)\s)?(?:are|were|do|have|don't|aren't|can|cannot|could|seem"
    r"|look|miss|fail|place|include)\b",
)
_CLAUSE_END = re.compile(
    r"[.,;:!?\n](?=\s|$)|\b(?:but|however|although|though|while|whereas|because|so|hence"
    r"|therefore|yet)\b|->|=>|[.;!?]|,",
)
_DENIED_BEFORE = re.compile(
    r"(?:(?<!why )\b(?:not(?! only| sure but)|never|neither|nor|without|cannot|rather than"
    r"|instead of|other than|than|except(?: for)?"
    r"|unlike|rul(?:e|ed|es|ing) out|exclud(?:e|ed|es|ing)|eliminat(?:e|ed|es|ing)|reject(?:ed|s"
    r"|ing)?|discard(?:ed|s|ing)?"
    r"|dismiss(?:ed|es|ing)?|against|over|wrong|incorrect|non|neither of|nicht|kein|keine"
    r"|n'est pas|pas|rid of|different from)\b"
    r"|n't\b)(?:[\s\"'(\[-]{1,3}[\w']{1,20}){0,6}?[\s\"'(\[-]{0,3}$|(?<!\w)non-$|\bno\s$"
    r"|(?:不是|不选|不選|并非|並非|非|排除|没有|沒有|而不是|不像)[^.,;\n]{0,6}$",
)
_NO_DENIAL = re.compile(
    r"\bno(?:t (?:only|a) | )?doubt|\bnot only\b|\bnothing (?:but|other than)\b"
    r"|\bnone other than\b|can't be anything but|\bnot just\b"
)
_CONDITION = re.compile(
    r"\b(?:if|unless|had it|were it|suppose|assuming|whether|could be|might be|may be|would have"
    r"|could have been)\b"
)
_CONDITION_END = re.compile(r"\b(?:but|so|therefore|thus|hence|however)\b")
_QUESTION_AFTER = re.compile(r"[\"')\]]{0,2}\s?\?")

_JOINER = re.compile(
    r"[\s\"')\]]{0,3}(?P<mark>,|/|&|\+|~|-)?\s{0,2}(?P<word>or|and|nor|und|oder|ou|et|y|o|e|vs\.?"
    r"|as well as|to|through|until|thru"
    r"|или|и|和|与|與|及|或|或者|还是|還是|と|や|또는|和者)?[\s\"'(\[]{0,3}"
    r"(?:(?:or|and|maybe|possibly|perhaps|also|even|options?|choices?|either|both|an?|the|some"
    r"|several|with|al)\s{1,2}[\"'(\[]{0,2}){0,3}",
)
_ARTICLE = re.compile(r"\b(?:an?|the)\s")
_AFTER_COMMA_PAIR = re.compile(r"[\"')\]]{0,2}\s?(?:$|[.;!?\n,)/&]|(?:and|or|nor|und|oder)\b)")
_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n\s*\n|[!?;]")


def _lower(text: str) -> str:
    """Lower the text without moving a character; lower-case patterns are twice as fast."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def _is_joined(text: str, before: Mention, after: Mention) -> bool:
    gap = text[before.end : after.start]
    if len(gap) > 40 or "\n" in gap:
        return False
    found = _JOINER.fullmatch(gap)
    if found is None:
        return False
    if found["word"]:
        return True
    if found["mark"] is None:
        return "(" not in gap
    if found["mark"] == ",":
        return not _ARTICLE.search(gap) and bool(
            _AFTER_COMMA_PAIR.match(text, after.end) or _PLURAL_AFTER.match(text, after.end)
        )
    return True


def weigh(text: str, start: int, end: int) -> Weight:
    """Return what the words around ``text[start:end]`` say of it.

    A denial counts inside its clause only (R14); a condition or a question never commits.
    """
    right = _weigh_right(text, end)
    before = text[max(0, start - LEFT_CHARS) : start]
    if right is Weight.DENIED or not before.strip():
        return right
    clause = before[_last_end(_CLAUSE_END, before) :]
    if _DENIED_BEFORE.search(clause) and not _NO_DENIAL.search(clause):
        return Weight.DENIED
    if _QUESTION_AFTER.match(text, end):
        return Weight.NAMED
    sentence = before[_last_end(_SENTENCE_END, before.rstrip(" \t\n\"'([")) :]
    if _CORRECTED_BEFORE.search(sentence):
        return Weight.ANSWERED
    condition = _CONDITION.search(sentence)
    if condition and not _CONDITION_END.search(sentence, condition.end()):
        # "If it had wings, the answer is A" may still answer; "it would be A if" does not.
        is_answer = "," in sentence[condition.end() :] and (
            right is Weight.ANSWERED or _ANSWERED_BEFORE.search(sentence)
        )
        return Weight.ANSWERED if is_answer else Weight.NAMED
    if right is Weight.ANSWERED or _ANSWERED_BEFORE.search(sentence):
        return Weight.ANSWERED
    if right is Weight.FAVORED or _FAVORED_BEFORE.search(sentence):
        return Weight.FAVORED
    return Weight.NAMED


def _last_end(pattern: re.Pattern[str], text: str) -> int:
    end = 0
    for found in pattern.finditer(text):
        end = found.end()
    return end


def _weigh_right(text: str, end: int) -> Weight:
    if _DENIED_AFTER.match(text, end):
        return Weight.DENIED
    if _QUESTION_AFTER.match(text, end):
        return Weight.NAMED
    if _ANSWERED_AFTER.match(text, end):
        return Weight.ANSWERED
    return Weight.FAVORED if _FAVORED_AFTER.match(text, end) else Weight.NAMED


def group_mentions(text: str, mentions: Sequence[Mention]) -> list[Group]:
    """Join coordinated mentions and weigh each group once; work is bounded by ``MAX_GROUPS``."""
    text = _lower(text)
    runs: list[list[Mention]] = []
    for mention in mentions:
        if runs and _is_joined(text, runs[-1][-1], mention):
            runs[-1].append(mention)
        else:
            runs.append([mention])
    if len(runs) > MAX_GROUPS:
        runs = runs[: MAX_GROUPS // 2] + runs[-MAX_GROUPS // 2 :]
    groups = []
    for run in runs:
        weight = weigh(text, run[0].start, run[-1].end)
        letters = tuple(dict.fromkeys(mention.letter for mention in run))
        groups.append(Group(letters, weight, run[0].start))
    return groups


def decide(text: str, groups: Sequence[Group], *, need_commitment: bool) -> str | None:
    """Return the letter the groups settle on, "" if they are undecided, None if they are silent.

    The last answered group wins (R4); a favored one after a correction overrules it; without
    either, exactly one letter must be left once the denied ones are gone (R9, R12, R14).

    Args:
        text: The text the groups were found in.
        groups: Weighed groups in order.
        need_commitment: Whether a letter that is only named counts for nothing.
    """
    text = _lower(text)
    standing = [group for group in groups if group.weight is not Weight.DENIED]
    answered = [group for group in standing if group.weight is Weight.ANSWERED]
    favored = [group for group in standing if group.weight is Weight.FAVORED]
    if answered:
        last = answered[-1]
        later = [group for group in favored if group.start > last.start]
        if later and _CORRECTION.search(text, last.start, later[-1].start):
            last = later[-1]
        return last.letters[0] if len(last.letters) == 1 else ""
    if favored:
        letters = {group.letters for group in favored}
        if len(letters) == 1 or _CORRECTION.search(text, favored[0].start, favored[-1].start):
            last = favored[-1]
            return last.letters[0] if len(last.letters) == 1 else ""
        return ""
    named = {letter for group in standing for letter in group.letters}
    if not named:
        return None
    if len(named) == 1 and not need_commitment:
        return named.pop()
    return ""
