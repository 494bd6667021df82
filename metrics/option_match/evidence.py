"""Weigh what a reply says about each option it mentions, and decide.

Works on mentions of letters, of numbers, of boxes and of names alike. A leaf module (see
``reply.py``).
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
        """The option's letter; any other sign for an answer that is not an option."""


class Weight(IntEnum):
    """How far a mention commits the reply."""

    DENIED = 0
    ASIDE = 1  # a bystander, a second choice, a part of a total
    NAMED = 2
    STATED = 3
    FAVORED = 4
    ANSWERED = 5


class Group(NamedTuple):
    """Mentions joined by "and", "or" or commas, weighed together.

    Attributes:
        letters: Distinct letters, in order.
        weight: What the words around them say.
        start: First character.
        end: One past the last character.
    """

    letters: tuple[str, ...]
    weight: Weight
    start: int
    end: int


# Words after which a letter or a number is part of a name: "Dock C", "Row 5" (R20).
NAME_BEFORE = re.compile(
    r"\b(?:dock|terminal|runway|gate|pier|berth|hangar|apron|wharf|quay|harbou?r|station|field|hall|bay|stand|corner|door|bridge|tank"
    r"|building|zone|area|block|sector|section"
    r"|lane|rows?|columns?|line|type|class|plan|vitamin|figure|fig\.|image|panel|steps?|stage"
    r"|point|region|site|base|camp|grade|group|team|level|phase|part|unit|room|road|route"
    r"|highway|exit|platform|track|tower|series|size|appendix|table|question|error|code|page"
    r"|vehicle|car|truck|ship|vessel|boat|plane|aircraft|object|marker|camera|version|model|mr\.|mrs\.|dr\.)"
    r" [#:]? ?(?:\d{1,3} )?$"
    # What a sign says, and degrees.
    r"|\b(?:reads|reading|carries|carrying|says|painted|inscribed)\b[^.,;\n]{0,24}$"
    r"|\d $",
)

_FILLER = (
    r"(?:[\s\"'(\[:=*>-]|\b(?:options?|choices?|letters?|alternatives?|answer|number|the|an?"
    r"|either|both|probably|likely|possibly|perhaps|maybe|most|definitely|clearly|certainly"
    r"|simply|just|about|approximately|indeed|actually|therefore|be|closest|to|category|class|la"
    r"|die|opci[oó]n|opção|opzione|буква|вариант)\b)*$"
)
_ANSWER_NOUN = (
    r"(?:answers?|ans|solution|conclusion|verdict|antwort|lösung|r[ée]ponse|respuesta|resposta"
    r"|risposta|ответ|cevap|antwoord|jawaban|svar|الإجابة|उत्तर|category)"
)
_CHOICE_NOUN = (
    r"(?:result|response|prediction|choice|selection|pick|guess|bet|estimate|option"
    r"|correct(?: one)?|right one)"
)
_BE = r"(?:is|was|are|(?:would|should|must|has to|will) be|be|ist|lautet|est|es|é|è)"
_ANSWERED_BEFORE = re.compile(
    rf"\b{_ANSWER_NOUN}\b(?:[^.;!?\n]{{0,40}}?(?:\b{_BE}\b|'s\b|[:=]|->|-)|\s{{0,3}}(?=[\"'(\[\n]"
    rf"|$))\s{{0,3}}{_FILLER}"
    rf"|\b{_CHOICE_NOUN}\b[^.;!?\n]{{0,40}}?(?:\b{_BE}\b|[:=]|->)\s{{0,3}}{_FILLER}"
    r"|\b(?:choos(?:e|ing)|chose|pick(?:ed|ing)?|select(?:ed|ing)?|(?:go|going|went)\s(?:with|for)"
    r"|vote for|settled? on|opt for|conclude(?: that)?(?: it is)?|i(?:'d| would|'ll| will)? say"
    r"|i(?:'d| would)? guess|i answer|i mark|wähle|elijo|je choisis|scelgo|escolho|выбираю"
    rf"|leaves|leaving|left with|remaining option is|which is)\b\s{{0,3}}{_FILLER}"
    r"|(?:答案|正确选项|正確選項|正解|答え|回答|解答|정답|답)[^.;,\n]{0,12}$"
    r"|[选選](?:择|擇|択|项|項|的是|了)?[\s:是为為\"'(\[]{0,4}(?:选项|選項|option )?"
    r"[\s\"'(\[]{0,2}$",
)
_LINK = (
    r"(?:'s|\s(?:is|are|was|(?:must|should|would|has to) be|looks like|(?:seems|appears|looks)"
    r"(?: to be)?|corresponds to|belongs to|represents|shows))\b"
)
_SUBJECT = (
    r"\b(?:it|that|this|which|object|target|one|thing|item|he|she|point|coordinates?|location"
    r"|position|center|box|rectangle)\b"
)
_FAVORED_BEFORE = re.compile(
    r"(?:\b(?:so|therefore|thus|hence|finally|overall|consequently|daher|donc)\b|->|=>|=)"
    rf"[\s,:]{{0,3}}{_FILLER}"
    rf"|{_SUBJECT}[^.;!?\n]{{0,50}}?(?<!there){_LINK}(?:\s(?:on|in))?\s{{0,3}}{_FILLER}"
    rf"|{_SUBJECT}[^.;!?\n]{{0,30}}?\s(?:lies|falls|lands|sits)\s(?:on|in|inside)\s{_FILLER}"
    r"|\b(?:lean(?:ing)?(?: more)?(?: towards?| to)?|prefer|favou?r|trust|points? to|think"
    rf"|believe(?: it is| it's)?|(?:most|more)\s(?:likely|probable|plausible)|probably|likely)\b"
    rf"[\s,:]{{0,3}}{_FILLER}",
)
_STATED_BEFORE = re.compile(rf"(?<!there){_LINK}\s{{0,3}}{_FILLER}")
# After one of these the next mention replaces what was said before it (R4).
_CORRECTION = re.compile(
    r"(?:\b(?:wait|actually|correction|corrected|scratch that|on (?:second|further) thought"
    r"|on reflection|on closer|sorry|oh|oops|or rather|rather,|hmm|i meant?|make that|update|edit"
    r"|chang(?:e|ed|ing) my (?:mind|answer)|my mistake|let me (?:correct|re)\w*|looking (?:again"
    r"|closer)|revised|reconsider\w*|recount\w*)\b|(?:[.!?,;\n]\s*|^)no(?=[,.:-]|\s(?:wait|it)))"
    r"(?:(?!similar|compared|confused|mistaken)[^\n]){0,60}$",
)
_BESIDE = (
    r"(?:near(?:by)?|next to|beside|behind|in front of|above|below|beneath|under|underneath"
    r"|alongside|adjacent to|close to|opposite|around|surrounded by|on top of)"
)
_ASIDE_BEFORE = re.compile(
    rf"\b(?:{_BESIDE}|on|in|inside|at|with|by|holding|carrying|riding|driving|wearing|towards?)\s"
    r"(?:[\w'-]{1,20}\s){0,2}[\"'(]?$"
    rf"|\b{_BESIDE}\b[\s,]{{1,2}}(?:[\w'-]{{1,20}}\s){{0,3}}(?:there(?:'s|\s(?:is|are))|is|are"
    rf"|stands|sits)\s(?:also\s)?{_FILLER}"
    r"|^[\s,;(]{1,3}(?:maybe|possibly|perhaps|(?:could|might) be)\s$"
    r"|\balso\s(?:(?:a|an|the|some|several|many)\s)?$",
)
_ASIDE_AFTER = re.compile(
    r"[\"')]{0,2}\s(?:(?:is|are|stands?|sits?|seems?)\s)?(?:nearby|(?:next to|beside|behind|around"
    r"|near) (?:it|them)|in the background|(?:also|equally|another|a second)\b"
    r"|(?:a )?(?:common|possible|tempting)\b)"
    r"|[\"')]{0,2}\s(?:(?:could|may|might|can)\s(?:also\s)?(?:work|be|fit|apply)[^.;!?\n]{0,20}"
    r"(?:too|also|as well|possible)\b|could also\b)",
)
_ADVERBS = (
    r"(?:the|an?|my|our|most|more|very|clearly|probably|likely|also|still|definitely|indeed"
    r"|certainly|only|therefore|thus|the one that is|a bit|slightly|best|final|single|to be|about"
    r"|just)"
)
_AFTER = r"[\"')\].:,*]{0,3}\s{0,2}(?:\([^()\n]{1,60}\)\s)?"
_ANSWERED_AFTER = re.compile(
    rf"{_AFTER}(?:[-=]\s)?"
    r"(?:(?:is|are|was|would be|should be|must be|seems|looks|appears|being"
    rf"|remains)\s(?:{_ADVERBS}\s){{0,4}}"
    r"(?:correct|right|answers?|true|option|choice|best|accurate|my answer|it|pick|solution|better"
    r"|(?<=more\s)(?:likely|probable|plausible|reasonable|fitting))\b"
    r"(?!\s(?:only if|if)\b)"
    r"|(?:项|項|选项|選項)?(?:是|为|為|が|は)?(?:最)?(?:正确|正確|正解|对的|對的|合适)"
    r"|(?:가|이)\s?(?:정답|맞)|ist\s(?:richtig|korrekt)|est\s(?:correcte|la bonne)"
    r"|es\s(?:la\s)?(?:correcta|respuesta))",
)
_FAVORED_AFTER = re.compile(
    rf"{_AFTER}(?:(?:is|are|was|would be|seems?|looks?|appears?|feels?|sounds?"
    rf"|remains)\s(?:{_ADVERBS}\s){{0,4}}"
    r"(?:plausible|likely|probable|reasonable|closest|closer|fitting|appropriate|suitable|match"
    r"|fit|likeliest|sensible|consistent)\b"
    r"|(?:best\s)?(?:fits|matches|agrees|stands out|(?<![.,:]\s)(?<!\n)it is)\b"
    r"|makes (?:the most )?sense)",
)
_DENIED_AFTER = re.compile(
    r"[\"')\].,*]{0,3}\s{0,2}(?:\([^()\n]{1,60}\)\s)?"
    r"(?:(?:both|all|each)\s)?"
    rf"(?:(?:is|are|was|were|seems?|looks?|appears?|would be|being)\s(?:{_ADVERBS}\s|far\s|way\s"
    rf"|much\s|obviously\s|both\s|all\s){{0,3}}"
    r"(?:not\b|never\b|no\s|wrong|incorrect|too\s|false|unlikely|less\s|implausible|impossible"
    r"|improbable|out\b|excluded|eliminated|ruled|inaccurate|invalid|off\b|unreasonable"
    r"|inconsistent|discarded|rejected|distractors?|worse|absent|missing|lower than|higher than)"
    r"|(?:is|are|was|were|does|do|did|can|could|would|has|have|should)n'?t\b|can(?:no|')t\b|(?:does|do"
    r"|did|can|could|would|has|should|may|might) not\b"
    r"|(?:can|could|should|may|must) be (?:ruled|excluded|eliminated|discarded|dismissed|rejected)"
    r"|too\s(?:low|high|small|large|big|few|many|much|short|long|wide|far)\b"
    r"|fails?\b|undercounts?|overcounts?|miss(?:es)?\b|overestimates?|underestimates?|ignores?"
    r"|lacks?\b|contradicts?|excluded|eliminated|ruled out"
    r"|[:=(-]\s?(?:no\b|not\b|false|wrong|incorrect|excluded|eliminated|too\s)"
    r"|(?<!,)(?:项|項|选项|選項)?(?:是|都|均)?(?:不|错|錯|有误|排除|可排除)|ではな|じゃな|でもな|(?:가"
    r"|이|는|은)\s?아니|ist\s(?:falsch|nicht)|n'est\spas|no\ses)",
)
_DENIED_BEFORE = re.compile(
    r"(?:(?<!why )\b(?:not(?! only| sure but)|never|neither|nor|without|cannot|rul(?:e|ed|es|ing)"
    r" out|exclud(?:e|ed|es|ing)|eliminat(?:e|ed|es|ing)|reject(?:ed|s|ing)?|discard(?:ed|s|ing)?"
    r"|dismiss(?:ed|es|ing)?|wrong|incorrect|non|nicht|kein|keine|pas)\b|n't\b)"
    r"(?:[\s\"'(\[-]{1,3}[\w']{1,20}){0,6}?[\s\"'(\[-]{0,3}$"
    r"|\b(?:instead of|than|except(?: for)?|unlike|against|over|rid of|different from"
    r"|anything but)\b"
    r"(?:[\s\"'(\[-]{1,3}[\w']{1,20}){0,3}?[\s\"'(\[-]{0,3}$"
    r"|(?<!\w)non-$|\bno\s$"
    r"|(?:不是|不选|不選|并非|並非|非|排除|没有|沒有|而不是|不像)[^.,;\n]{0,6}$",
)
_NO_DENIAL = re.compile(
    r"\bno(?:t (?:only|a) | )?doubt|\bnot (?:only|just)\b|\b(?:nothing|none) (?:but|other than)\b"
    r"|can't be anything but"
)
_CLAUSE_END = re.compile(
    r"[.,;:!?\n](?=\s|$)|\b(?:(?<!anything )but|however|although|though|while|whereas|because|so"
    r"|hence|therefore|yet)\b|->|=>|\s-\s|[.;!?]|,",
)
_CONDITION = re.compile(
    r"\b(?:if|unless|had it|were it|suppose|assuming|whether|could be|might be|may be|would have"
    r"|could have been)\b"
)
_CONDITION_END = re.compile(r"\b(?:but|so|therefore|thus|hence|however)\b")
_QUESTION_AFTER = re.compile(r"[\"')\]]{0,2}\s?\?")
_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n\s*\n|[!?;]")

_JOINER = re.compile(
    r"[\s\"')\]]{0,3}(?P<mark>,|/|&|\+|~|-)?\s{0,2}(?P<word>or|and|nor|und|oder|ou|et|vs\.?"
    r"|as well as|to|through|until|или|и|和|与|與|及|或|或者|还是|還是|と|や|또는)?[\s\"'(\[]{0,3}"
    r"(?:\d[.)]\s)?"
    r"(?:(?:(?<=or )(?:maybe|possibly|perhaps)|even|options?|choices?|either|both|an?|the|some"
    r"|several|answer:)\s{1,2}[\"'(\[]{0,2}){0,3}",
)
# Only marks of a list between two lines: "B. traffic sign\n(C)".
_LIST_GAP = re.compile(r"[\s\"')\].,;]*\n\s*(?:[-*•]\s|\d[.)]\s)?[\s\"'(\[]*")
_AFTER_COMMA_PAIR = re.compile(r"[\"')\]]{0,2}\s?(?:$|[.;!?\n,)/&]|(?:and|or|nor|und|oder)\b)")
_PLURAL_AFTER = re.compile(
    r"[\"')\]]{0,2}\s(?:(?:both|all)\s)?(?:are|were|do|have|don't|aren't|can|cannot|could|seem"
    r"|look|miss|fail|place|include)\b",
)


def lower(text: str) -> str:
    """Lower the text without moving a character; lower-case patterns are twice as fast."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def _is_joined(text: str, run: Sequence[Mention], after: Mention, *, in_list: bool) -> bool:
    before = run[-1]
    gap = text[before.end : after.start]
    if len(gap) > 40:
        return False
    if "\n" in gap:
        # A letter that comes again is an answer below a list, not one more of it (R12, R13).
        is_new = all(after.letter != mention.letter for mention in run)
        return in_list and is_new and _LIST_GAP.fullmatch(gap) is not None
    found = _JOINER.fullmatch(gap)
    if found is None:
        return False
    if found["word"]:
        return True
    if found["mark"] is None:
        return "(" not in gap or gap.startswith(")")
    if found["mark"] == ",":
        return bool(
            _AFTER_COMMA_PAIR.match(text, after.end) or _PLURAL_AFTER.match(text, after.end)
        )
    # A spaced dash is a pause between words and a range between numbers.
    return gap != " - " or text[before.end - 1].isdigit()


def _last_end(pattern: re.Pattern[str], text: str) -> int:
    end = 0
    for found in pattern.finditer(text):
        end = found.end()
    return end


def weigh(text: str, start: int, end: int, *, since: int = 0, until: int | None = None) -> Weight:
    """Return what the words around ``text[start:end]`` say of it.

    A denial counts inside its clause only (R14); a condition or a question never commits.

    Args:
        text: The reply in lower case.
        start: First character of the mention.
        end: One past its last character.
        since: Where the mention before it ends, 0 if it is the first.
        until: Where the next mention starts.
    """
    denied = _DENIED_AFTER.match(text, end)
    if denied and not (
        # "B (not C)": the denial is of what comes next.
        until is not None
        and denied.group().rstrip().endswith("not")
        and not text[denied.end() : until].strip(" \"'([")
    ):
        return Weight.DENIED
    before = text[max(0, start - LEFT_CHARS) : start]
    gap = text[max(since, start - LEFT_CHARS) : start]
    clause = gap[_last_end(_CLAUSE_END, gap) :]
    if _DENIED_BEFORE.search(clause) and not _NO_DENIAL.search(clause):
        return Weight.DENIED
    if _QUESTION_AFTER.match(text, end):
        return Weight.ASIDE
    sentence = before[_last_end(_SENTENCE_END, before.rstrip(" \t\n\"'([")) :]
    is_answered = bool(_ANSWERED_AFTER.match(text, end) or _ANSWERED_BEFORE.search(sentence))
    condition = _CONDITION.search(sentence)
    if condition and not _CONDITION_END.search(sentence, condition.end()):
        # "If it had wings, the answer is A" may still answer; "it would be A if" does not.
        is_open = "," in sentence[condition.end() :]
        return Weight.ANSWERED if is_answered and is_open else Weight.NAMED
    if is_answered or (since and _CORRECTION.search(gap)):
        return Weight.ANSWERED
    if _FAVORED_AFTER.match(text, end):
        return Weight.FAVORED
    if _ASIDE_AFTER.match(text, end) or _ASIDE_BEFORE.search(gap):
        return Weight.FAVORED if _FAVORED_BEFORE.search(clause) else Weight.ASIDE
    if _FAVORED_BEFORE.search(sentence):
        return Weight.FAVORED
    return Weight.STATED if _STATED_BEFORE.search(sentence) else Weight.NAMED


def group_mentions(text: str, mentions: Sequence[Mention], *, in_list: bool = True) -> list[Group]:
    """Join coordinated mentions and weigh each group once; work is bounded by ``MAX_GROUPS``.

    Args:
        text: The text the mentions were found in.
        mentions: Mentions in order.
        in_list: Whether lines that hold nothing but mentions are joined too.
    """
    text = lower(text)
    runs: list[list[Mention]] = []
    for mention in mentions:
        if runs and _is_joined(text, runs[-1], mention, in_list=in_list):
            runs[-1].append(mention)
        else:
            runs.append([mention])
    if len(runs) > MAX_GROUPS:
        runs = runs[: MAX_GROUPS // 2] + runs[-MAX_GROUPS // 2 :]
    groups: list[Group] = []
    for i, run in enumerate(runs):
        start, end = run[0].start, run[-1].end
        weight = weigh(
            text,
            start,
            end,
            since=groups[-1].end if groups else 0,
            until=runs[i + 1][0].start if i + 1 < len(runs) else None,
        )
        letters = tuple(dict.fromkeys(mention.letter for mention in run))
        groups.append(Group(letters, weight, start, end))
    return groups


def decide(
    groups: Sequence[Group], *, least: Weight = Weight.ASIDE, last_from: Weight = Weight.ANSWERED
) -> str | None:
    """Return the letter the groups settle on, "" if they are undecided, None if they are silent.

    The heaviest groups decide: from ``last_from`` on the last one (R4), below it only if they agree
    on one letter (R9, R12). Denied groups count for nothing (R14).

    Args:
        groups: Weighed groups in order.
        least: The weight below which what is named leaves the reply undecided.
        last_from: The weight from which a later group overrules an earlier one.
    """
    best = max((group.weight for group in groups), default=Weight.DENIED)
    if best is Weight.DENIED:
        return None
    heaviest = [group for group in groups if group.weight is best]
    if best >= last_from:
        heaviest = heaviest[-1:]
    letters = {letter for group in heaviest for letter in group.letters}
    return letters.pop() if len(letters) == 1 and best >= least else ""
