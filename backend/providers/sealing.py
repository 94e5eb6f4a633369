"""Secrets as they are stored: sealed with keys of the environment, for one use only."""

import json
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class SealError(Exception):
    """A secret cannot be sealed or opened. The sentence tells nothing of it."""


def new_key() -> str:
    return Fernet.generate_key().decode()


def check(keys: Sequence[str]) -> None:
    """Raises SealError naming the place of a key that is none."""
    for place, key in enumerate(keys, start=1):
        try:
            Fernet(key)
        except ValueError:
            raise SealError(
                f"key {place} of TOUCHSTONE_SECRET_KEYS is no key: `manage.py rotate_keys --new` makes one"
            ) from None


def seal(secret: str, *, keys: Sequence[str], use: str) -> str:
    """By the first key. `use` says what the secret is for; with another one it does not open."""
    return _box(keys).encrypt(json.dumps([use, secret]).encode()).decode()


def unseal(sealed: str, *, keys: Sequence[str], use: str) -> str:
    """Raises SealError, without what it is about."""
    try:
        found = json.loads(_box(keys).decrypt(sealed))
    except (InvalidToken, ValueError):
        raise SealError("it was sealed with a key that is not in TOUCHSTONE_SECRET_KEYS") from None
    if found[0] != use:
        raise SealError("it was sealed for something else")
    return str(found[1])


def reseal(sealed: str, *, keys: Sequence[str]) -> str:
    """The same secret, by the first key."""
    try:
        return _box(keys).rotate(sealed).decode()
    except InvalidToken:
        raise SealError("it was sealed with a key that is not in TOUCHSTONE_SECRET_KEYS") from None


def _box(keys: Sequence[str]) -> MultiFernet:
    if not keys:
        raise SealError("this installation keeps no keys of workspaces: TOUCHSTONE_SECRET_KEYS is not set")
    check(keys)
    return MultiFernet([Fernet(key) for key in keys])
