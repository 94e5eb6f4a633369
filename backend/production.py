"""Secrets that a service for others must have: refused where they are missing or weak, before the first request."""

import math
from collections import Counter

FEWEST_CHARACTERS = 32
# Bits by the characters' frequency: 32 random hexadecimal digits have more than 100.
FEWEST_BITS = 90
_KNOWN = ("changeme", "change-me", "django-insecure", "secret", "password", "example", "touchstone")


def weakness(key: str) -> str:
    """What is weak about a secret key; empty: nothing that can be seen."""
    if len(key) < FEWEST_CHARACTERS:
        return f"it has {len(key)} characters, {FEWEST_CHARACTERS} are the fewest"
    counts = Counter(key)
    bits = -sum(n * math.log2(n / len(key)) for n in counts.values())
    if bits < FEWEST_BITS:
        return "it repeats itself: take a random one"
    if any(key.lower().startswith(word) for word in _KNOWN):
        return "it begins like the ones in examples: take a random one"
    return ""


HOW = "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(48))'"


def fault(*, key: str, is_kept: bool, debug: bool) -> str:
    """Why this process must not serve; empty: it may. A key that is not kept differs in each process, so that nobody
    stays logged in; `up` keeps one in its home."""
    if debug:
        return ""
    if not is_kept:
        return f"TOUCHSTONE_SECRET_KEY is not set. {HOW}"
    found = weakness(key)
    return f"TOUCHSTONE_SECRET_KEY is weak: {found}. {HOW}" if found else ""
