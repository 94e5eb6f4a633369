"""What goes wrong here, each with a sentence a person can act on."""

from pathlib import Path


class EmbeddedError(Exception):
    """A service or process could not be started, reached or kept alive; the message says what to do."""


class AlreadyRunningError(EmbeddedError):
    """Another process holds this home's lock. `attach` gives its addresses."""

    def __init__(self, home: Path) -> None:
        super().__init__(f"a stack is already running in {home}")
        self.home = home
