"""The stand-in as a process, for tests that need one outside their own.

GET /_control/statistics counts; GET /_control/calls lists the calls; PUT /_control/script (the fields of `Script`
as JSON) changes the behaviour and starts the counts again. These answer whatever the script says.
"""

import argparse
import json
import signal
import sys
import threading

from tests.standins.script import Script
from tests.standins.server import Standin


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.standins", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the address is printed")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds each call takes")
    parser.add_argument("--script", type=json.loads, default={}, help="fields of the script, as JSON")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    script = Script.from_json({"latency_seconds": options.latency, **options.script})
    with Standin(script, host=options.host, port=options.port) as standin:
        sys.stdout.write(f"{standin.url}\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
