"""Which language a text is in, by its commonest words or its script: enough to say "these are two languages".

Names are those of the keyword configurations. A text that is too short to tell has none.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from backend.core.folding import fold

# At least so many common words, and so many more than the next language has.
_LEAST_WORDS = 2
# A language counts from this share of the texts that tell, and from two of them.
_LEAST_SHARE = 0.1
_WORD = re.compile(r"[^\W\d_]+")

_COMMON = {
    "english": "the of and to is are that for with what how does which when who this was by from have not can",
    "german": "der die das und ist nicht mit ein eine zu den von wie für auf wird sind was welche wer bei sich",
    "french": "le la les des est et une un dans que qui pour pas sur avec quel quelle sont du au comment combien",
    "spanish": "el la los las es y una un en que por para con del qué cómo cuál se no son cuando quién",
    "italian": "il lo gli di è e una un in che per con del della non sono come quale quanto chi al",
    "portuguese": "o os as de é e uma um em que por para com do da não são como qual quanto quem ao",
    "dutch": "de het een en is van niet met voor op zijn dat wat hoe welke wie te aan bij wordt",
    "turkish": "ve bir bu için ile ne nasıl kaç mi mı değil olan olarak daha çok hangi kim nedir göre en",
    "swedish": "och att det är en ett som på av för med den inte hur vad vilka vem till från",
    "danish": "og at det er en et som på af for med den ikke hvordan hvad hvilke hvem til fra",
    "finnish": "ja on ei se että kuin mikä miten kuka mutta myös ovat tai jos kun",
}
_SCRIPTS = (
    ("japanese", re.compile("[\u3040-\u30ff]")),
    ("korean", re.compile("[\uac00-\ud7af]")),
    ("chinese", re.compile("[\u4e00-\u9fff]")),
    ("arabic", re.compile("[\u0600-\u06ff]")),
    ("greek", re.compile("[\u0370-\u03ff]")),
    ("russian", re.compile("[\u0400-\u04ff]")),
)
NAMES = (*_COMMON, *(name for name, _ in _SCRIPTS))
# A name or a formula in another script is no other language.
_SCRIPT_SHARE = 0.3


@lru_cache(maxsize=1)
def _by_word() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language, words in _COMMON.items():
        for word in words.split():
            found.setdefault(fold(word), []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


@lru_cache(maxsize=1)
def common_words() -> frozenset[str]:
    """The commonest words of all languages that are told apart here, folded."""
    return frozenset(_by_word())


def detect(text: str) -> str:
    """The language of one text, or the empty string."""
    folded = fold(text)
    letters = sum(1 for character in folded if character.isalpha())
    if not letters:
        return ""
    for language, script in _SCRIPTS:
        if len(script.findall(folded)) >= _SCRIPT_SHARE * letters:
            return language
    counts: Counter[str] = Counter()
    for word in _WORD.findall(folded):
        counts.update(_by_word().get(word, ()))
    (first, n_first), (_, n_second) = [*counts.most_common(2), ("", 0), ("", 0)][:2]
    return first if n_first >= _LEAST_WORDS and n_first > n_second else ""


def of_many(texts: Iterable[str]) -> tuple[str, ...]:
    """The languages that the texts are in, by name; those of a stray few left out."""
    counts = Counter(filter(None, map(detect, texts)))
    least = max(2.0, _LEAST_SHARE * counts.total())
    return tuple(sorted(language for language, n in counts.items() if n >= least))
