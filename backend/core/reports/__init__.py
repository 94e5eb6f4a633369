"""A run for people and for build servers: JUnit, Markdown, and a page that needs nothing else."""

from backend.core.reports.html import to_html
from backend.core.reports.junit import to_junit
from backend.core.reports.markdown import to_markdown
from backend.core.reports.report import Against, Line, Metric, Report, Status, TagFigure

__all__ = ["Against", "Line", "Metric", "Report", "Status", "TagFigure", "to_html", "to_junit", "to_markdown"]
