"""JUnit XML, which build servers read: a test case a question. A miss is a failure, a provider's error an error, and
what expects nothing is skipped."""

import re
from xml.etree import ElementTree as ET

from backend.core.reports.report import Line, Report, Status

# What XML 1.0 has no way to write.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: Report) -> str:
    """One suite. `classname` is the set, `name` the question with its number, so that equal texts stay apart."""
    seconds = sum(line.latency_ms or 0.0 for line in report.lines) / 1000
    counts = {
        "tests": str(len(report.lines)),
        "failures": str(len(report.of(Status.MISSED))),
        "errors": str(len(report.of(Status.ERROR))),
        "skipped": str(len(report.of(Status.LEFT_OUT))),
        "time": f"{seconds:.3f}",
    }
    root = ET.Element("testsuites", {"name": "touchstone", **{k: v for k, v in counts.items() if k != "skipped"}})
    suite = ET.SubElement(root, "testsuite", {"name": clean(f"{report.name} on {report.set_name}"), **counts})
    if report.finished_at:
        suite.set("timestamp", report.finished_at)
    properties = ET.SubElement(suite, "properties")
    told = [("run", report.run_id), *report.facts, *((one.key, one.shown) for one in report.metrics)]
    if report.against is not None:
        told.append(("verdict", f"{report.against.verdict}: {report.against.sentence}"))
    for name, value in told:
        ET.SubElement(properties, "property", {"name": clean(name), "value": clean(value)})
    for line in report.lines:
        _case(suite, line, report)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, line: Line, report: Report) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": clean(f"{report.set_name}.{report.name}"),
            "name": clean(f"{line.number} {line.question or line.key}"),
            "time": f"{(line.latency_ms or 0.0) / 1000:.3f}",
        },
    )
    said = line.detail or line.status.value
    if line.status is Status.MISSED:
        where = f"first found at rank {line.first_rank}" if line.first_rank else "not found"
        failure = ET.SubElement(
            case,
            "failure",
            {"type": "must_pass" if line.must_pass else "missed", "message": clean(f"{where}: {said}")},
        )
        failure.text = clean("\n".join([f"question: {line.key}", *(f"instead: {one}" for one in line.instead)]))
    elif line.status is Status.ERROR:
        error = ET.SubElement(case, "error", {"type": "error", "message": clean(said)})
        error.text = clean(f"question: {line.key}")
    elif line.status is Status.LEFT_OUT:
        ET.SubElement(case, "skipped", {"message": clean(said)})


def clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
