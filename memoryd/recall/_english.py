"""English, as data for :class:`~memoryd.recall._language.Language`."""

from __future__ import annotations

import re

from memoryd.recall._language import Language

__all__ = ["ENGLISH"]

_STOPWORDS = """
a about am an and any are as at be because been being both but by can could did do does doing don done for from had has have having he her
hers him his how i if in into is it its itself just ll m me my myself of off on or our ours out over re s shall she should so some such
than that the their theirs them themselves then there these they this those through to too under until up ve very was we were what
when where which while who whom whose why will with would you your yours yourself t d isn aren wasn weren doesn didn won wouldn couldn
shouldn hasn haven hadn let us might may must also wo ca ai sha many much recently
"""

_IRREGULAR = """
be: was were been am is are
become: became
begin: began begun
bend: bent
bind: bound
bite: bit bitten
bleed: bled
blow: blew blown
break: broke broken
breed: bred
bring: brought
build: built
burn: burnt
buy: bought
catch: caught
choose: chose chosen
come: came
creep: crept
deal: dealt
dig: dug
do: did done does
draw: drew drawn
dream: dreamt
drink: drank drunk
drive: drove driven
eat: ate eaten
fall: fell fallen
feed: fed
feel: felt
fight: fought
find: found
flee: fled
fly: flew flown flies
forbid: forbade forbidden
forget: forgot forgotten
forgive: forgave forgiven
freeze: froze frozen
get: got gotten
give: gave given
go: went gone goes
grow: grew grown
hang: hung
have: had has
hear: heard
hide: hid hidden
hold: held
keep: kept
kneel: knelt
know: knew known
lay: laid
lead: led
lean: leant
leap: leapt
learn: learnt
leave: left
lend: lent
lie: lay lain lying
light: lit
lose: lost
make: made
mean: meant
meet: met
mistake: mistook mistaken
overcome: overcame
pay: paid
ride: rode ridden
ring: rang rung
rise: rose risen
run: ran
say: said
see: saw seen
seek: sought
sell: sold
send: sent
sew: sewn
shake: shook shaken
shine: shone
shoot: shot
show: shown
shrink: shrank shrunk
sing: sang sung
sink: sank sunk
sit: sat
sleep: slept
slide: slid
speak: spoke spoken
speed: sped
spell: spelt
spend: spent
spill: spilt
spin: spun
spoil: spoilt
stand: stood
steal: stole stolen
stick: stuck
sting: stung
strike: struck stricken
strive: strove striven
swear: swore sworn
sweep: swept
swell: swollen
swim: swam swum
swing: swung
take: took taken
teach: taught
tear: tore torn
tell: told
think: thought
throw: threw thrown
understand: understood
undertake: undertook undertaken
wake: woke woken
wear: wore worn
weave: wove woven
weep: wept
win: won
wind: wound
withdraw: withdrew withdrawn
write: wrote written
child: children
foot: feet
goose: geese
half: halves
knife: knives
leaf: leaves
life: lives
loaf: loaves
man: men
mouse: mice
person: people
shelf: shelves
thief: thieves
tooth: teeth
wife: wives
wolf: wolves
woman: women
good: better best
bad: worse worst
"""

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_SHORT_MONTHS = {"jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11, "dec": 12}

_ASKS_WHEN = (
    r"\b(?:when|how long|how often|how many (?:days|weeks|months|years)"
    r"|what (?:date|day|month|time|year)|which (?:date|day|month|year))\b"
)

# Words that say when, plurals left out; "may" and "march" mostly mean something else.
_TIMES = """
yesterday today tonight tomorrow recently lately ago since night weekend week month year spring summer autumn fall winter
monday tuesday wednesday thursday friday saturday sunday
january february april june july august september october november december
"""


def _forms() -> dict[str, tuple[str, ...]]:
    lines = (line.split(":") for line in _IRREGULAR.strip().splitlines())
    return {base: tuple(forms.split()) for base, forms in lines}


ENGLISH = Language(
    name="english",
    stopwords=frozenset(_STOPWORDS.split()),
    forms=_forms(),
    endings=re.compile(r"(?:n['\u2019]t|['\u2019](?:s|re|ve|ll|d|m))\b", re.IGNORECASE),
    asks_when=re.compile(_ASKS_WHEN, re.IGNORECASE),
    time_words=tuple(_TIMES.split()),
    months={name: number for number, name in enumerate(_MONTHS, 1)} | _SHORT_MONTHS,
)
