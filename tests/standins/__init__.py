"""A provider server for tests: the true wire formats, scripted faults, and a record of what was asked.

In a test: `with Standin(Script(latency_seconds=0.3)) as standin: ... standin.url ...`.
As a process: `python -m tests.standins --port 8090 --latency 0.3` (__main__.py says how to steer it).
"""

from tests.standins.script import Call, Fault, Script
from tests.standins.server import Standin

__all__ = ["Call", "Fault", "Script", "Standin"]
