"""All addresses: the API under /api/v1/, health, and the console's pages."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, include, path

from api import errors
from api.alerts import AlertsView, AlertView, TargetSecretView, TargetsView, TargetTestView, TargetView
from api.answers import RunAnswersView
from api.audit import AuditView
from api.baselines import BaselinesView, BaselineView
from api.comparisons import ComparisonsView
from api.docs import DocsView, SchemaView
from api.documents import DocumentsView, DocumentView
from api.drafts import DraftReviewView, DraftsView, DraftView
from api.estimates import EstimateView
from api.evaluations import EvaluationCancelView, EvaluationRetryView, EvaluationsView, EvaluationView
from api.exports import RunExportView
from api.gates import GateChecksView, GateCheckView, GateDryRunView, GatesView, GateView
from api.generation import (
    GenerateView,
    GenerationCancelView,
    GenerationRatesView,
    GenerationRetryView,
    GenerationSetView,
    GenerationsView,
    GenerationView,
)
from api.health import healthz, readyz
from api.indexes import IndexesView
from api.ingestions import IngestionsView, IngestionView
from api.jobs import JobCancelView, JobFileView, JobsView, JobView
from api.knowledge_bases import KnowledgeBasesView, KnowledgeBaseView
from api.limits import LimitsView, SpendingView
from api.members import MemberLoginLinkView, MembersView, MemberView
from api.metrics import metrics
from api.preflight import PreflightView
from api.provider_keys import ProviderKeysView, ProviderKeyView
from api.question_sets import QuestionSetsView, QuestionSetView, VersionQuestionsView, VersionsView
from api.questions import QuestionCountView, QuestionsView, QuestionView
from api.rescoring import RescoreView
from api.run_diagnosis import RunAdviceView, RunDiagnosisView
from api.run_figures import ArithmeticView, RunSlicesView
from api.run_imports import RunImportView
from api.runs import RunResultsView, RunsView, RunView
from api.schedules import ScheduleHistoryView, ScheduleRunNowView, SchedulesView, ScheduleView
from api.search import SearchView
from api.set_exports import SetExportView
from api.sources import SetFilesView, SourcesView, SourceSyncView, SourceView
from api.tokens import TokensView, TokenView
from api.workspaces import WorkspacesView, WorkspaceView

_BASE = "knowledge-bases/<str:base_id>"
_SET = "question-sets/<str:set_id>"

api: list[URLPattern | URLResolver] = [
    path("knowledge-bases", KnowledgeBasesView.as_view()),
    path(_BASE, KnowledgeBaseView.as_view()),
    path(f"{_BASE}/sources", SourcesView.as_view()),
    path(f"{_BASE}/sources/<str:source_id>", SourceView.as_view()),
    path(f"{_BASE}/sources/<str:source_id>/sync", SourceSyncView.as_view()),
    path(f"{_BASE}/set-files", SetFilesView.as_view()),
    path(f"{_BASE}/documents", DocumentsView.as_view()),
    path(f"{_BASE}/documents/<str:document_id>", DocumentView.as_view()),
    path(f"{_BASE}/indexes", IndexesView.as_view()),
    path(f"{_BASE}/ingestions", IngestionsView.as_view()),
    path(f"{_BASE}/ingestions/<str:ingestion_id>", IngestionView.as_view()),
    path("search", SearchView.as_view()),
    path("question-sets", QuestionSetsView.as_view()),
    path("question-sets/generate", GenerateView.as_view()),
    path("generations", GenerationsView.as_view()),
    path("generation-rates", GenerationRatesView.as_view()),
    path("generations/<str:generation_id>", GenerationView.as_view()),
    path("generations/<str:generation_id>/cancel", GenerationCancelView.as_view()),
    path("generations/<str:generation_id>/retry", GenerationRetryView.as_view()),
    path("generations/<str:generation_id>/question-set", GenerationSetView.as_view()),
    path("generations/<str:generation_id>/drafts", DraftsView.as_view()),
    path("drafts/<str:draft_id>", DraftView.as_view()),
    path("drafts/<str:draft_id>/review", DraftReviewView.as_view()),
    path(_SET, QuestionSetView.as_view()),
    path(f"{_SET}/versions", VersionsView.as_view()),
    path(f"{_SET}/versions/<str:number>/questions", VersionQuestionsView.as_view()),
    path(f"{_SET}/preflight", PreflightView.as_view()),
    path(f"{_SET}/export", SetExportView.as_view()),
    path(f"{_SET}/questions", QuestionsView.as_view()),
    path(f"{_SET}/questions/count", QuestionCountView.as_view()),
    # A question's id may hold anything, slashes too.
    path(f"{_SET}/questions/<path:question_key>", QuestionView.as_view()),
    path("evaluations", EvaluationsView.as_view()),
    path("evaluations/estimate", EstimateView.as_view()),
    path("evaluations/<str:evaluation_id>", EvaluationView.as_view()),
    path("evaluations/<str:evaluation_id>/cancel", EvaluationCancelView.as_view()),
    path("evaluations/<str:evaluation_id>/retry", EvaluationRetryView.as_view()),
    path("runs", RunsView.as_view()),
    path("runs/import", RunImportView.as_view()),
    path("runs/<str:run_id>", RunView.as_view()),
    path("runs/<str:run_id>/results", RunResultsView.as_view()),
    # A question's key may hold anything, slashes too.
    path("runs/<str:run_id>/results/<path:question>/arithmetic", ArithmeticView.as_view()),
    path("runs/<str:run_id>/slices", RunSlicesView.as_view()),
    path("runs/<str:run_id>/answers", RunAnswersView.as_view()),
    path("runs/<str:run_id>/diagnosis", RunDiagnosisView.as_view()),
    path("runs/<str:run_id>/advice", RunAdviceView.as_view()),
    path("runs/<str:run_id>/export", RunExportView.as_view()),
    path("runs/<str:run_id>/rescore", RescoreView.as_view()),
    path("comparisons", ComparisonsView.as_view()),
    path("schedules", SchedulesView.as_view()),
    path("schedules/<str:schedule_id>", ScheduleView.as_view()),
    path("schedules/<str:schedule_id>/run-now", ScheduleRunNowView.as_view()),
    path("schedules/<str:schedule_id>/history", ScheduleHistoryView.as_view()),
    path("baselines", BaselinesView.as_view()),
    path("baselines/<str:baseline_id>", BaselineView.as_view()),
    path("gates", GatesView.as_view()),
    path("gates/check", GateCheckView.as_view()),
    path("gates/<str:gate_id>", GateView.as_view()),
    path("gates/<str:gate_id>/checks", GateChecksView.as_view()),
    path("gates/<str:gate_id>/dry-run", GateDryRunView.as_view()),
    path("alerts", AlertsView.as_view()),
    path("alerts/<str:alert_id>", AlertView.as_view()),
    path("alert-targets", TargetsView.as_view()),
    path("alert-targets/<str:target_id>", TargetView.as_view()),
    path("alert-targets/<str:target_id>/test", TargetTestView.as_view()),
    path("alert-targets/<str:target_id>/secret", TargetSecretView.as_view()),
    path("limits", LimitsView.as_view()),
    path("spending", SpendingView.as_view()),
    path("jobs", JobsView.as_view()),
    path("jobs/<str:job_id>", JobView.as_view()),
    path("jobs/<str:job_id>/file", JobFileView.as_view()),
    path("jobs/<str:job_id>/cancel", JobCancelView.as_view()),
    path("tokens", TokensView.as_view()),
    path("tokens/<str:token_id>", TokenView.as_view()),
    path("members", MembersView.as_view()),
    path("members/<str:member_id>", MemberView.as_view()),
    path("members/<str:member_id>/login-link", MemberLoginLinkView.as_view()),
    path("workspaces", WorkspacesView.as_view()),
    path("workspaces/<str:workspace_id>", WorkspaceView.as_view()),
    path("provider-keys", ProviderKeysView.as_view()),
    path("provider-keys/<str:provider>", ProviderKeyView.as_view()),
    path("audit", AuditView.as_view()),
    path("schema", SchemaView.as_view(), name="schema"),
    path("docs", DocsView.as_view(url_name="schema"), name="docs"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    path("api/v1/", include(api)),
    path("", include("console.urls")),
]


def _is_machine(request: HttpRequest) -> bool:
    return request.path.startswith(("/api/", "/healthz", "/readyz", "/metrics"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's signature
    return _respond(request, errors.BAD_REQUEST)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  as above
    return _respond(request, errors.FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  as above
    return _respond(request, errors.NOT_FOUND)


def failed(request: HttpRequest) -> HttpResponse:
    return _respond(request, errors.INTERNAL)


def _respond(request: HttpRequest, problem: errors.Problem) -> HttpResponse:
    if _is_machine(request):
        return errors.respond(request, problem)
    return render(request, "problem.html", {"problem": problem.body(request)}, status=problem.status)


handler400, handler403, handler404, handler500 = (
    "api.urls.bad_request",
    "api.urls.forbidden",
    "api.urls.not_found",
    "api.urls.failed",
)
