"""The pages' addresses."""

from django.urls import path

from console import asked, compare, evaluations, new_evaluation, pages, runs
from console.plots import addresses as plots

urlpatterns = [
    path("", pages.home, name="home"),
    path("login", pages.login, name="login"),
    path("login/<str:secret>", pages.login_link, name="login-link"),
    path("logout", pages.logout, name="logout"),
    path("workspace", pages.workspace, name="workspace"),
    path("evaluations", evaluations.every, name="evaluations"),
    path("evaluations/new", new_evaluation.new, name="evaluation-new"),
    path("evaluations/<str:evaluation_id>", evaluations.one, name="evaluation"),
    path("evaluations/<str:evaluation_id>/progress", evaluations.progress, name="evaluation-progress"),
    path("evaluations/<str:evaluation_id>/cancel", evaluations.cancel, name="evaluation-cancel"),
    path("evaluations/<str:evaluation_id>/retry", evaluations.retry, name="evaluation-retry"),
    path("runs/<str:run_id>", runs.run, name="run"),
    path("runs/<str:run_id>/survey", runs.survey, name="run-survey"),
    path("runs/<str:run_id>/questions/<int:ordinal>", asked.question, name="question"),
    path("runs/<str:run_id>/plots/<str:name>.<str:form>", plots.run_plot, name="run-plot"),
    path("compare", compare.compare, name="compare"),
    path("compare/plots/<str:name>.<str:form>", plots.comparison_plot, name="compare-plot"),
    path("plots/<str:name>.<str:form>", plots.history_plot, name="history-plot"),
]
