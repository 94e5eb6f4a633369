"""What `evaluate` says of a set while it is asked: labels that nothing can satisfy, fields that were not understood."""

from typing import Any

from cli import output
from cli.client import Client
from cli.errors import ClientError
from touchstone import tables

Json = dict[str, Any]
_MOST_SHOWN = 10


def tell(client: Client, started: Json, *, scope: Json) -> None:
    """On stderr, after the evaluation was submitted, so that nothing waits for it. A wrong path looks like a bad
    search otherwise: every mode misses it."""
    given = started.get("question_set") or {}
    if not given.get("id"):
        return
    try:
        latest = client.get(f"question-sets/{given['id']}")["version"]
        found = client.preflight(given["id"], scope=scope, version=given["version"])
    except ClientError:
        # The figures do not depend on it, and the evaluation runs already.
        return
    warnings = latest["warnings"] if latest["number"] == given["version"] else []
    for warning in warnings[:_MOST_SHOWN]:
        output.note(f"Note: {warning}")
    _more(len(warnings))
    errors = [one for one in found["findings"] if one["severity"] == "error"]
    if not errors:
        return
    expectations = tables.counted(found["n_expectations"], "expectation")
    output.note(f"{found['n_errors']} of {expectations} can be met by no search here, and will count as missed:")
    for one in errors[:_MOST_SHOWN]:
        place = f"line {one['line']}" if one["line"] is not None else f"question {one['ordinal'] + 1}"
        output.note(f"  {place}: {one['message']}")
    _more(found["n_errors"])


def _more(n_found: int) -> None:
    if n_found > _MOST_SHOWN:
        output.note(f"  and {n_found - _MOST_SHOWN} more")
