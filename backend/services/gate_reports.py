"""A check put into words for build servers and people."""

from backend.core.reports.gate import GateReport, LostQuestion
from backend.services.gates import Checked


def of(checked: Checked, *, name: str = "") -> GateReport:
    """`name` is the gate's, empty for rules of the moment."""
    return GateReport(
        name=name,
        set_name=checked.evaluation.set_name,
        evaluation_id=str(checked.evaluation.id),
        report=checked.report,
        baselines={
            one.run.name: one.baseline.label or str(one.baseline.id) for one in checked.runs if one.baseline is not None
        },
        lost=[
            LostQuestion(run=one.run.name, id=lost.id, question=lost.question)
            for one in checked.runs
            for lost in one.lost
        ],
    )
