"""Being asked to stop."""

import signal
from types import FrameType


class StopSignals:
    """The first SIGINT, SIGTERM or SIGHUP raises KeyboardInterrupt; while stopping, another one means: at once."""

    _NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.stopping = False
        self.hurry = False
        self._before = {number: signal.signal(number, self._handle) for number in self._NUMBERS}

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.stopping:
            self.hurry = True
            return
        self.stopping = True
        raise KeyboardInterrupt

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
