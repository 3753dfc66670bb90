"""Search in scripts without spaces, with accents, emoji, identifiers: what is inside is found."""

from __future__ import annotations

import random

import pytest

from tests.adapters.local.conftest import Local

UNSPACED = (
    "昨天我在上海的书店买了一本关于鲸鱼的小说", "周末我们打算去山里徒步", "医生建议我少喝咖啡多喝水", "妹妹的生日蛋糕是抹茶味的", "新的服务器部署在法兰克福机房",
    "昨日は京都で抹茶アイスを食べました", "来週の会議は水曜日の午後です", "猫の名前はミケといいます", "東京タワーの近くに引っ越した", "自転車の鍵をなくしてしまった",
    "어제친구와한강에서자전거를탔다", "다음주에부산으로여행을간다", "고양이이름은나비입니다", "새노트북은주방에있어요", "할머니생신선물로목도리를샀다",
    "เมื่อวานฉันไปตลาดน้ำกับเพื่อนเก่า", "แมวของฉันชื่อมะลิและชอบนอนกลางวัน", "ພວກເຮົາໄປຕະຫຼາດເຊົ້າ", "ខ្ញុំចូលចិត្តញ៉ាំត្រីអាំង", "မနက်ဖြန်ဈေးသွားမယ်",
)


@pytest.mark.parametrize("width", [2, 3, 4])
async def test_every_inner_piece_finds_its_row(local: Local, width: int) -> None:
    for number, sentence in enumerate(UNSPACED):
        await local.turn(sentence, session=f"s{number}")
    chooser = random.Random(width)
    for sentence in UNSPACED:
        starts = range(len(sentence) - width + 1)
        for start in chooser.sample(starts, min(6, len(starts))):
            piece = sentence[start : start + width]
            assert sentence in await local.found(piece, limit=20), piece


async def test_ascii_glued_to_chinese(local: Local) -> None:
    await local.turn("重跑gen-itgc后记得通知Lee")
    await local.turn("unrelated", session="s2")
    for query in ("gen", "itgc", "gen-itgc", "重跑", "通知", "lee"):
        assert await local.found(query) == ["重跑gen-itgc后记得通知Lee"], query


async def test_thai_words_that_differ_by_a_mark_find_only_their_own(local: Local) -> None:
    words = ("ขาว", "ข่าว", "ข้าว")
    for word in words:
        await local.turn(f"ฉันชอบ{word}มาก")
    for word in words:
        assert await local.found(word) == [f"ฉันชอบ{word}มาก"]


@pytest.mark.parametrize("emoji", ["😀", "👩‍👩‍👧‍👦", "🇵🇹", "👍🏽", "❤️", "☕"])
async def test_emoji_are_found_also_glued_to_words(local: Local, emoji: str) -> None:
    await local.turn(f"that was great{emoji}thanks")
    await local.turn("that was great, thanks 🚀", session="other")
    assert await local.found(emoji) == [f"that was great{emoji}thanks"]


async def test_identifiers_find_themselves(local: Local) -> None:
    chooser = random.Random(5)
    names = ["".join(chooser.choice("abcdexyz019") for _ in range(4)) for _ in range(900)]
    identifiers = ["{}-{}_{}.{}/{}:{}".format(*chooser.sample(names, 6)) for _ in range(500)]
    for number in range(0, 500, 50):
        for identifier in identifiers[number : number + 50]:
            await local.turn(f"see {identifier} there", session=f"s{number}")
    for identifier in identifiers:
        assert (await local.found(identifier, limit=1)) == [f"see {identifier} there"]


@pytest.mark.parametrize(("stored", "asked"), [
    ("She went home", "going"), ("the children slept", "child"), ("He bought a café", "cafe buy"), ("naïve ÜBER straße", "NAIVE uber"),
    ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"), ("the ﬁnal ﬂight", "final flights"), ("Москва слезам не верит", "москва"), ("Ελλάδα", "ελλαδα"),
    ("שלום עולם", "עולם"), ("Caroline's bike", "caroline"), ("I won’t go", "won't go"), ("e\u0301clair", "éclair"),
])
async def test_forms_of_a_word_are_found(local: Local, stored: str, asked: str) -> None:
    await local.turn(stored)
    assert stored in await local.found(asked)


async def test_a_wont_is_no_win(local: Local) -> None:
    await local.turn("she won the race")
    assert await local.found("won't") == []
