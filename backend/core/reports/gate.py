"""What a gate said, as JUnit XML and as Markdown that fits a comment on a pull request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from backend.core.gates import Outcome, Report, RuleResult, Status
from backend.core.reports.junit import clean
from backend.core.reports.markdown import code, fitted, folded, table, text

MOST_LOST = 50
_SAID = {
    Outcome.PASSED: "passed",
    Outcome.BROKEN: "failed: a rule broke",
    Outcome.UNCHECKED: "failed: a rule could not be checked",
    Outcome.UNCOVERED: "failed: questions have no result",
}
_MARKS = {Status.KEPT: "✅", Status.BROKEN: "❌", Status.UNCHECKED: "⚠️", Status.UNCOVERED: "⚠️"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LostQuestion:
    run: str
    id: str
    question: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """`baselines` by run: what each was compared with. `name` is the gate's, empty for rules of the moment."""

    name: str
    set_name: str
    evaluation_id: str
    report: Report
    baselines: Mapping[str, str] = field(default_factory=dict)
    lost: Sequence[LostQuestion] = ()


def to_junit(told: GateReport) -> str:
    """One test case for each rule and run. A broken rule is a failure; one that could not be checked, or lacks results,
    is an error."""
    results = told.report.results
    counts = {
        "tests": str(len(results)),
        "failures": str(len(told.report.of(Status.BROKEN))),
        "errors": str(len(told.report.of(Status.UNCHECKED)) + len(told.report.of(Status.UNCOVERED))),
    }
    root = ET.Element("testsuites", {"name": "touchstone gate", **counts})
    name = clean(f"{told.name or 'gate'} on {told.set_name}")
    suite = ET.SubElement(root, "testsuite", {"name": name, **counts, "skipped": "0", "time": "0"})
    properties = ET.SubElement(suite, "properties")
    for key, value in (("evaluation", told.evaluation_id), ("outcome", told.report.outcome.value)):
        ET.SubElement(properties, "property", {"name": key, "value": clean(value)})
    for one in results:
        case = ET.SubElement(
            suite,
            "testcase",
            {"classname": clean(f"{told.set_name}.{one.run}"), "name": clean(_rule(one)), "time": "0"},
        )
        if one.status is Status.KEPT:
            continue
        kind = "failure" if one.status is Status.BROKEN else "error"
        fault = ET.SubElement(case, kind, {"type": one.status.value, "message": clean(one.sentence)})
        lost = [lost.id for lost in told.lost if lost.run == one.run]
        fault.text = clean("\n".join([one.sentence, *(f"lost: {key}" for key in lost[:MOST_LOST])]))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def to_markdown(told: GateReport) -> str:
    """The outcome first, each rule in a row, and the questions that were lost, cut where there are many."""
    named = f" {code(told.name)}" if told.name else ""
    rows = [
        [_MARKS[one.status], code(one.run), code(_rule(one)), text(one.sentence.removeprefix(f"{one.run}: "))]
        for one in told.report.results
    ]
    parts = [
        f"### Search quality{named} on {code(told.set_name)}: {_SAID[told.report.outcome]}",
        table(["", "run", "rule", "found"], rows),
    ]
    if told.baselines:
        parts.append(
            "Compared with " + ", ".join(f"{code(name)} for {code(run)}" for run, name in told.baselines.items())
        )
    if told.lost:
        lost = [[code(one.run), code(one.id), code(one.question or "")] for one in told.lost[:MOST_LOST]]
        more = len(told.lost) - len(lost)
        said = table(["run", "question", ""], lost) + (f"\n\nand {more} more" if more else "")
        parts.append(folded(f"Questions lost: {len(told.lost)}", said))
    parts.append(f"Evaluation {code(told.evaluation_id)}")
    return fitted(parts)


def _rule(one: RuleResult) -> str:
    rule = one.rule
    said = [rule.kind.value.replace("_", " "), rule.metric, "" if rule.limit is None else f"{rule.limit:g}"]
    return " ".join(filter(None, said))
