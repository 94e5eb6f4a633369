"""The generator that needs no model and no key, and claims to be no more than it is.

It turns a heading into a query, or a sentence into its words of meaning. Such queries are made of the passage's own
words: keyword search finds them easily, and their leakage says so. They show the flow; they measure little.
"""

import random

from backend.core.generation.parsing import LEAST_SNIPPET, MadeQuestion, snippet_of
from backend.core.generation.words import content_words, sentences, words

SPEC = "local"
VERSION = "local/1"
_MOST_WORDS = 8
_LEAST_WORDS = 3


def make(passage: str, *, heading: str, seed: int, avoid: frozenset[str] = frozenset()) -> MadeQuestion | None:
    """None where the passage holds nothing to ask about. `avoid` are folded queries that there are already: a heading
    covers several passages, and only one of them gets it."""
    sources = sentences(passage)
    usable = [one for one in sources if len(one) >= LEAST_SNIPPET and len(content_words(one)) >= _LEAST_WORDS]
    if not usable:
        return None
    title = heading.rpartition("/")[2].strip() if heading else ""
    if len(content_words(title)) >= 2 and " ".join(words(title)) not in avoid:
        snippet = snippet_of(passage, quote="", hints=(title,))
        return MadeQuestion(question=title, answer="", quote=snippet.text, how="heading")
    chosen = random.Random(f"{seed}:{passage}").choice(usable)  # noqa: S311  can be drawn again, no secret
    asked = " ".join(list(dict.fromkeys(content_words(chosen)))[:_MOST_WORDS])
    return MadeQuestion(question=asked, answer="", quote=chosen, how="sentence")
