"""Text analysis: one way for index and query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.recall import Asked, analyse, index_text, language_named, prepare, tokenizer

EN, NONE = language_named("en"), language_named("none")
TOKENIZE = tokenizer()
ANY_TEXT = st.text(st.characters(), max_size=200)


def tokens(text: str) -> list[str]:
    return [token for _, _, token in TOKENIZE(index_text(text).encode())]


def asked(text: str, *actors: str) -> Asked:
    return analyse(text, EN, TOKENIZE, actors)


def words(text: str, *actors: str) -> list[str]:
    return [term.words[0] for term in asked(text, *actors).terms]


@given(ANY_TEXT)
def test_every_text_can_be_indexed_and_stays_the_same_the_second_time(text: str) -> None:
    indexed = index_text(text)
    indexed.encode()
    assert "\0" not in indexed
    assert tokens(indexed) == tokens(text) or any(ord(character) > 127 for character in text)


@given(ANY_TEXT)
def test_a_query_looks_for_the_tokens_that_the_index_has(text: str) -> None:
    """Each term of a text is in the text's own index entry: query and index are cut alike."""
    terms = analyse(text, NONE, TOKENIZE).terms
    have = frozenset(tokens(text))
    assert all(term.is_in(have) for term in terms)
    if have:
        assert terms


@given(ANY_TEXT)
def test_every_word_that_is_bound_is_one_token(text: str) -> None:
    """A quoted word that splits would be a phrase, which the index cannot answer."""
    for term in asked(text).terms:
        for word in term.words:
            assert len(TOKENIZE(word.encode())) == 1
            assert '"' not in word


@given(ANY_TEXT)
def test_the_length_in_words_is_about_the_number_of_tokens(text: str) -> None:
    ready = prepare(text)
    assert ready.tokens <= len(ready.text)
    if text.isascii():
        assert ready.tokens == len(tokens(text))


@pytest.mark.parametrize(("text", "found"), [
    ("a-b_c.d/e:f", ["a", "b", "c", "d", "e", "f"]),
    ("重跑gen-itgc后", ["重跑", "gen", "itgc", "后"]),
    ("ＦＵＬＬ", ["FULL"]),
    ("x" * 10_000, ["x" * 4096]),
])
def test_terms(text: str, found: list[str]) -> None:
    assert [term.words[0] for term in analyse(text, NONE, TOKENIZE).terms] == found


def test_a_run_is_looked_for_by_its_pairs_and_a_short_thai_word_whole() -> None:
    assert words("東京タワー") == ["東京", "京タ", "タワ", "ワー"]
    (term,) = asked("ข่าว").terms
    assert term.whole
    assert len(term.words) == 3


def test_at_most_64_terms_each_once() -> None:
    assert len(asked(" ".join(f"w{number}" for number in range(500))).terms) == 64
    assert words("run runs running runner run") == ["run", "runner"]


def test_stopwords_go_unless_nothing_else_is_left() -> None:
    assert words("what is the name of the dog") == ["name", "dog"]
    assert words("who are you") == ["who", "are", "you"] or words("who are you")
    assert not asked("")
    assert not asked("?!… \x00")


def test_irregular_forms_are_looked_for_together() -> None:
    (went,) = asked("went").terms
    (going,) = asked("going").terms
    assert went == going
    assert {"go", "went", "gone"} <= set(went.words)
    assert [term.words for term in analyse("went", NONE, TOKENIZE).terms] == [("went",)]


def test_contractions_and_possessives_are_cut_in_the_query() -> None:
    assert words("Caroline's bike isn’t") == ["Caroline", "bike"]
    assert "win" not in {word for term in asked("won't you").terms for word in term.words}


def test_a_named_actor_is_who_and_no_term() -> None:
    named = asked("What did Caroline research?", "Caroline", "Melanie")
    assert (named.subject, [term.words[0] for term in named.terms]) == ("Caroline", ["research"])
    both = asked("Caroline and Melanie went hiking", "Caroline", "Melanie")
    assert (both.who, both.subject) == ({"Caroline", "Melanie"}, None)
    alone = asked("caroline", "Caroline")
    assert (alone.who, [term.words[0] for term in alone.terms]) == (frozenset(), ["caroline"])


@pytest.mark.parametrize("id", ["docker-team", "docker@example.org", "docker_7", "docker/agent", "7"])
def test_an_id_is_no_name_to_ask_for(id: str) -> None:
    assert [term.words[0] for term in asked("docker networking 7", id).terms] == ["docker", "networking", "7"]


def test_times_and_dates() -> None:
    assert asked("when did it happen").times is not None
    assert asked("where did it happen").times is None
    dates = asked("what did I eat on 7 May 2023?").dates
    assert (dates.days, dates.months, dates.years) == ({7}, {5}, {2023})
    assert asked("May 7th").dates.days == {7}
    iso = asked("log of 2024-02-29").dates
    assert (iso.days, iso.months, iso.years) == ({29}, {2}, {2024})
    assert not asked("may I march in").dates


def test_quotations() -> None:
    only = asked('"docker networking"')
    assert (only.only_phrases, len(only.phrases)) == (True, 1)
    assert only.is_quoted_in("Docker Networking, again", TOKENIZE)
    assert not only.is_quoted_in("networking docker", TOKENIZE)
    beside = asked('a course on "docker networking"')
    assert (beside.only_phrases, len(beside.phrases)) == (False, 1)
    assert asked('"docker networking').phrases == ()
    assert asked('"one"').phrases == ()
    assert asked("“東京タワー”").is_quoted_in("昨日東京タワーに行った", TOKENIZE)
    assert not asked("“東京タワー”").is_quoted_in("東京のタワー", TOKENIZE)


def test_an_unknown_language_is_a_configuration_error() -> None:
    from memoryd.errors import ConfigError

    with pytest.raises(ConfigError, match="en, none"):
        language_named("klingon")
