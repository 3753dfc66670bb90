"""Finding: text analysis, ranking, merging, and the fenced block that a host gets."""

from memoryd.recall._english import ENGLISH as ENGLISH
from memoryd.recall._fold import fold_copies as fold_copies
from memoryd.recall._fold import newest_first as newest_first
from memoryd.recall._language import NEUTRAL as NEUTRAL
from memoryd.recall._language import Language as Language
from memoryd.recall._rank import ANCHORS as ANCHORS
from memoryd.recall._rank import QUESTION as QUESTION
from memoryd.recall._rank import TIMED as TIMED
from memoryd.recall._rank import Line as Line
from memoryd.recall._rank import Scored as Scored
from memoryd.recall._rank import anchors as anchors
from memoryd.recall._rank import idf as idf
from memoryd.recall._rank import rank as rank
from memoryd.recall._terms import Asked as Asked
from memoryd.recall._terms import Term as Term
from memoryd.recall._terms import analyse as analyse
from memoryd.recall._text import TOKENIZER as TOKENIZER
from memoryd.recall._text import Tokenize as Tokenize
from memoryd.recall._text import index_text as index_text
from memoryd.recall._tokens import tokenizer as tokenizer
