"""The pages people decide by: a run, a question in it, a comparison, an evaluation, a new one. Of runs that really
searched, asked over and over with the same number of queries."""

import html
import re
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backend.core.states import JobKind
from backend.models import Evaluation, Job, Membership, Result, Role, Run, Workspace
from backend.services import long_jobs, surveys
from tests import engine, large_runs
from tests.api.conftest import API, World, client_of, make_world
from tests.api.test_rescoring import orchard

pytestmark = pytest.mark.django_db(transaction=True)
# `apple` finds a, b, c and so on, in this order.
QUESTIONS: list[dict[str, Any]] = [
    {"id": "t/1", "question": "apple", "expect": [{"path": "b"}, {"path": "d"}], "tags": ["x", "y & z"]},
    {"id": "2", "question": "an <b>apple</b>", "expected": ["o"], "tags": ["y & z"], "must_pass": True},
    {"id": "t/3", "question": "the apple", "expected": ["nowhere"]},
    {"id": "t/4", "question": "pear", "unanswerable": True},
    {"id": "5", "question": "apple leaf", "expect": [{"content_contains": ["leaf leaf leaf"]}]},
]


def console_of(workspace: Workspace, role: Role = Role.ADMIN) -> Client:
    user = User.objects.create_user(username=f"{role.value}-{workspace.name}")
    Membership.objects.create(workspace=workspace, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def world(db: None) -> World:
    workspace = Workspace.objects.create(name="ours")
    client = client_of(workspace)
    made = client.post(f"{API}/question-sets", {"name": "golden", "questions": QUESTIONS})
    assert made.status_code == 201, made.json()
    return World(workspace=workspace, client=client, base=orchard(workspace, twice=False), set_id=made.json()["id"])


@pytest.fixture
def console(world: World) -> Client:
    return console_of(world.workspace)


@pytest.fixture
def evaluation(world: World) -> Evaluation:
    made = world.evaluate(
        configurations=[
            {"name": "keyword", "mode": "keyword"},
            {"name": "strict", "mode": "keyword", "keyword": "fts"},
        ],
        modes=[],
    )
    assert made.status_code == 202, made.json()
    engine.drain()
    return Evaluation.objects.get(id=made.json()["id"])


@pytest.fixture
def run(evaluation: Evaluation) -> Run:
    return evaluation.runs.get(name="keyword")


def text(console: Client, address: str, status: int = 200, **query: Any) -> str:
    answer = console.get(address, query)
    assert answer.status_code == status, (address, answer.status_code, answer.content.decode()[-2000:])
    return answer.content.decode()


def plain(page: str) -> str:
    """What is to be read, without marks."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_run_shows_its_figures_plots_causes_and_questions(console: Client, run: Run) -> None:
    page = text(console, f"/runs/{run.id}")
    said = plain(page)
    assert "± " in said
    assert "4 of 4" in said
    assert "2 of 4 were missed within 10" in said
    assert "not indexed" in said
    assert "below k" in said
    assert "Must pass, and did not" in said
    for name in ("recall_at_k", "first_ranks", "latency", "causes", "funnel"):
        assert f"/runs/{run.id}/plots/{name}.svg?theme=dark" in page, name
    assert "an &lt;b&gt;apple&lt;/b&gt;" in page
    assert "tag=y+%26+z" in page
    untagged = plain(page.split(">no tag<")[1].split("</tr>")[0])
    assert untagged.split()[-1] == "1", "of the questions without a tag one was missed"


def test_filters_are_links_that_narrow_the_table(console: Client, run: Run) -> None:
    def keys(**query: Any) -> list[str]:
        page = text(console, f"/runs/{run.id}", **query)
        return re.findall(rf"/runs/{run.id}/questions/(\d+)\">", page.split('id="questions"')[1].split("</table>")[0])

    assert keys() == ["0", "1", "2", "3", "4"]
    assert keys(outcome="missed") == ["1", "2"]
    assert keys(outcome="missed", k=1) == ["0", "1", "2"]
    assert keys(tag="y & z") == ["0", "1"]
    assert keys(must_pass="1") == ["1"]
    assert keys(cause="below k") == ["1"]
    assert keys(cause="no such cause") == []
    assert keys(code="PROVIDER_TIMEOUT") == []
    assert keys(order="-rank")[-1] == "4"
    for wrong in ({"k": "x"}, {"k": "11"}, {"outcome": "lost"}, {"cursor": "none"}):
        text(console, f"/runs/{run.id}", status=422, **wrong)


def test_a_survey_is_made_once_and_again_only_after_a_new_closing(console: Client, run: Run) -> None:
    assert surveys.kept(run) is None
    text(console, f"/runs/{run.id}")
    run.refresh_from_db()
    made = surveys.kept(run)
    assert made is not None
    assert sum(made["causes"].values()) == made["n_missed"] == 2
    assert made["funnel"]["leg"] >= made["funnel"]["after"] == pytest.approx(made["recall"])
    # Long, and no count: it is the page's alone.
    api = client_of(run.workspace).get(f"{API}/runs/{run.id}").json()
    assert "survey" not in api["counts"]
    assert api["counts"]["by_rank"]["n"] == 4


def test_a_large_run_is_surveyed_by_a_job_which_the_page_waits_for(
    console: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveys, "MOST_AT_ONCE", 1)
    page = text(console, f"/runs/{run.id}")
    assert f'hx-get="/runs/{run.id}/survey"' in page
    assert "plots/recall_at_k" in page
    assert "plots/causes" not in page
    text(console, f"/runs/{run.id}")
    assert Job.objects.filter(kind=JobKind.SURVEY).count() == 1
    assert "HX-Refresh" not in console.get(f"/runs/{run.id}/survey").headers
    engine.drain()
    assert console.get(f"/runs/{run.id}/survey").headers["HX-Refresh"] == "true"
    assert "plots/causes" in text(console, f"/runs/{run.id}")


def test_a_run_whose_rankings_are_gone_says_so_and_keeps_its_figures(console: Client, run: Run) -> None:
    run.results.update(ranking=[], cut=[])
    Run.objects.filter(id=run.id).update(pruned_at=timezone.now())
    page = text(console, f"/runs/{run.id}")
    said = plain(page)
    assert "Its rankings were removed on" in said
    assert "and so is what would say where questions were lost" in said
    assert "4 of 4" in said
    assert "format=csv" in page
    assert "format=trec_run" not in page
    assert "What came back was removed on" in plain(text(console, f"/runs/{run.id}/questions/0"))


def test_what_was_found_out_before_the_rankings_went_stays(console: Client, run: Run) -> None:
    text(console, f"/runs/{run.id}")
    run.results.update(ranking=[], cut=[])
    Run.objects.filter(id=run.id).update(pruned_at=timezone.now())
    said = plain(text(console, f"/runs/{run.id}"))
    assert "2 of 4 were missed within 10" in said
    assert "and so is what would say" not in said


def test_the_export_of_a_large_run_is_waited_for_on_a_page_that_ends_with_the_file(
    console: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = console.get(f"/runs/{run.id}/export", {"format": "csv"})
    assert at_once.headers["Location"] == f"/api/v1/runs/{run.id}/export?format=csv"
    assert f"/api/v1/runs/{run.id}/export" in text(console, f"/runs/{run.id}")
    monkeypatch.setattr(long_jobs, "MOST_AT_ONCE", 1)
    page = text(console, f"/runs/{run.id}")
    assert f'href="/runs/{run.id}/export?format=csv"' in page
    assert f"/api/v1/runs/{run.id}/export" not in page
    begun = console.get(f"/runs/{run.id}/export", {"format": "csv"}).headers["Location"]
    waiting = text(console, begun)
    assert f'hx-get="{begun}"' in waiting
    assert '<noscript><meta http-equiv="refresh"' in waiting
    assert "Download" not in waiting
    assert console.get(f"/runs/{run.id}/export", {"format": "csv"}).headers["Location"] == begun
    engine.drain()
    done = text(console, begun)
    assert "hx-get" not in done.split('id="job"')[1]
    assert f'href="/runs/{run.id}"' in done
    (address,) = re.findall(r'href="([^"]+)" download', done)
    file = console.get(address)
    assert file.content.decode().count("apple") >= 4
    assert file.headers["Content-Disposition"].endswith('.csv"')
    assert begun in text(console, "/jobs")
    text(console, f"/runs/{run.id}/export", status=422, format="pdf")
    outsider = console_of(Workspace.objects.create(name="theirs"))
    text(outsider, begun, status=404)
    assert "Nothing yet" in text(outsider, "/jobs")


def test_a_plot_is_drawn_without_styles_and_asked_for_again_only_when_it_changed(console: Client, run: Run) -> None:
    text(console, f"/runs/{run.id}")
    first = console.get(f"/runs/{run.id}/plots/first_ranks.svg", {"theme": "dark"})
    assert (first.status_code, first.headers["Content-Type"]) == (200, "image/svg+xml")
    assert b"style" not in first.content
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = console.get(
        f"/runs/{run.id}/plots/first_ranks.svg", {"theme": "dark"}, headers={"If-None-Match": first.headers["ETag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    light = console.get(f"/runs/{run.id}/plots/first_ranks.svg", headers={"If-None-Match": first.headers["ETag"]})
    assert light.status_code == 200
    png = console.get(f"/runs/{run.id}/plots/funnel.png", {"download": "1"})
    assert png.content.startswith(b"\x89PNG")
    assert png.headers["Content-Disposition"] == 'attachment; filename="funnel.png"'
    for wrong in ("nothing.svg", "first_ranks.gif", "first_ranks.svg?theme=pink"):
        assert console.get(f"/runs/{run.id}/plots/{wrong}").status_code == 404, wrong


def test_a_question_shows_stages_losses_arithmetic_and_its_past(console: Client, run: Run) -> None:
    said = plain(text(console, f"/runs/{run.id}/questions/1"))
    assert "missed within 10" in said
    assert "below k" in said
    assert "an &lt;b&gt;apple&lt;/b&gt;" in said
    assert "No rank adds anything" in said
    found = text(console, f"/runs/{run.id}/questions/4")
    assert "<mark>leaf leaf leaf" in found
    first = plain(text(console, f"/runs/{run.id}/questions/0"))
    assert "1 / rank of the first relevant result within k" in first
    assert "b rank 2" in first
    for missing in ("5", "99999999999999999999"):
        text(console, f"/runs/{run.id}/questions/{missing}", status=404)


def test_an_unanswerable_question_is_called_the_same_on_every_page_and_is_no_miss(
    console: Client, world: World, run: Run
) -> None:
    """With a floor it is silent; without one something always comes back."""
    for outcome, said in (("ok", "answered"), ("empty", "silent")):
        run.results.filter(ordinal=3).update(outcome=outcome)
        of_set = text(console, f"/sets/{world.set_id}")
        assert re.findall(rf'/runs/{run.id}/questions/3"([^>]*)>([^<]*)<', of_set) == [("", said)]
        assert f'<span class="chip">{said}</span>' in text(console, f"/runs/{run.id}").split('id="questions"')[1]
        of_question = text(console, f"/runs/{run.id}/questions/3")
        assert f'<span class="chip">{said}</span>' in of_question
        assert "miss" not in plain(of_question)
    # A question that has an answer and was missed is one, in red.
    missed = rf'/runs/{run.id}/questions/2" class="bad-text">miss<'
    assert re.search(missed, text(console, f"/sets/{world.set_id}"))


def test_a_comparison_begins_with_its_verdict(console: Client, evaluation: Evaluation) -> None:
    runs = {one.name: one for one in evaluation.runs.all()}
    query: dict[str, Any] = {"baseline": str(runs["keyword"].id), "candidate": str(runs["strict"].id)}
    page = text(console, "/compare", **query)
    said = plain(page)
    assert "Too few questions: " in said
    assert "What was set otherwise" in said
    assert "fts(and)" in said
    for name in ("deltas", "scatter", "transitions"):
        assert f"/compare/plots/{name}.svg?baseline={runs['keyword'].id}" in page
        drawn = console.get(f"/compare/plots/{name}.svg", query)
        assert drawn.status_code == 200, name
    assert console.get("/compare/plots/other.svg", query).status_code == 404
    assert runs["strict"].name in text(console, "/compare", baseline=runs["keyword"].id)
    text(console, "/compare", 422, **query, metric="mrr@7000")


def test_an_evaluation_is_followed_cancelled_and_tried_again(console: Client, world: World) -> None:
    made = world.evaluate()
    address = f"/evaluations/{made.json()['id']}"
    page = text(console, address)
    assert f'hx-get="{address}/progress"' in page
    assert '<noscript><meta http-equiv="refresh"' in page
    assert console.post(f"{address}/cancel").status_code == 302
    engine.drain()
    assert console.get(f"{address}/progress").headers["HX-Refresh"] == "true"
    page = text(console, address)
    assert "hx-get" not in page.split('id="state"')[1]
    said = plain(page)
    assert "5 answers were not asked for, since it was cancelled." in said
    assert "Ask the rest" in said
    assert "failed" not in said.split("cancelled before a question was scored")[1]
    assert "so far" not in said
    assert console.post(f"{address}/retry").status_code == 302
    engine.drain()
    assert "completed" in plain(text(console, address))
    assert "There is nothing" not in plain(text(console, "/evaluations"))
    refused = console.post(f"{address}/cancel", follow=True)
    assert "nothing left to cancel" in refused.content.decode()


def test_a_configuration_of_an_earlier_run_is_offered_and_asked_for_as_it_was(
    console: Client, world: World, run: Run, evaluation: Evaluation
) -> None:
    strict = evaluation.runs.get(name="strict")
    form = text(console, "/evaluations/new", like=str(evaluation.id))
    assert f'name="known" value="{strict.id}"' in form
    assert "&quot;fts&quot;: &quot;and&quot;" in form
    base = str(world.base.knowledge_base.id)
    given = {"question_set": world.set_id, "scope": f"base:{base}", "known": [str(strict.id)], "press": "run"}
    made = console.post("/evaluations/new", given)
    (again,) = Run.objects.filter(evaluation=UUID(made.headers["Location"].rsplit("/", 1)[1]))
    assert (again.name, again.config_fingerprint) == ("strict", strict.config_fingerprint)


def test_nothing_of_a_run_is_shown_to_another_workspace(console: Client, evaluation: Evaluation, run: Run) -> None:
    outsider = console_of(Workspace.objects.create(name="theirs"))
    other = evaluation.runs.get(name="strict")
    pair = f"baseline={run.id}&candidate={other.id}"
    for address in (
        f"/runs/{run.id}",
        f"/runs/{run.id}/survey",
        f"/runs/{run.id}/questions/0",
        f"/runs/{run.id}/plots/first_ranks.svg",
        f"/compare?{pair}",
        f"/compare?baseline={run.id}",
        f"/compare/plots/deltas.svg?{pair}",
        f"/evaluations/{evaluation.id}",
        f"/evaluations/{evaluation.id}/progress",
        f"/evaluations/new?like={evaluation.id}",
        f"/plots/trend.svg?name=keyword&question_set={evaluation.question_set_version.question_set_id}",  # type: ignore[union-attr]
    ):
        assert outsider.get(address).status_code == 404, address
        assert console.get(address).status_code == 200, address
        assert Client().get(address).status_code == 302, address
    for address in (f"/runs/{run.id}", f"/evaluations/{evaluation.id}/cancel", f"/evaluations/{evaluation.id}/retry"):
        assert outsider.post(address, {"label": "mine"}).status_code == 404, address
    assert str(run.id) not in text(outsider, "/evaluations") + text(outsider, "/compare")
    viewer = console_of(evaluation.workspace, Role.VIEWER)
    assert viewer.post(f"/evaluations/{evaluation.id}/retry").status_code == 403
    assert viewer.get("/evaluations/new").status_code == 403
    assert "Retry what failed" not in text(viewer, f"/evaluations/{evaluation.id}")
    run.refresh_from_db()
    assert run.label == ""


def test_pages_cost_a_fixed_number_of_queries(
    console: Client, evaluation: Evaluation, run: Run, django_assert_max_num_queries: Any
) -> None:
    text(console, f"/runs/{run.id}")
    for address, most in ((f"/runs/{run.id}", 16), (f"/runs/{run.id}/questions/0", 22), ("/evaluations", 8)):
        with django_assert_max_num_queries(most):
            text(console, address)


def test_errors_are_grouped_by_their_code(console: Client, run: Run) -> None:
    Result.objects.filter(run=run, ordinal=0).update(
        outcome="error", code="PROVIDER_TIMEOUT", reason="It took too long."
    )
    run.counts["errors"] = {"PROVIDER_TIMEOUT": 1}
    run.save(update_fields=["counts"])
    said = plain(text(console, f"/runs/{run.id}"))
    assert "PROVIDER_TIMEOUT 1 It took too long." in said


def test_a_run_of_fifty_thousand_questions_costs_a_page_no_more_than_one_of_five_hundred(
    console: Client, world: World
) -> None:
    """The same number of queries, and less than twice the time: the best of some looks at each by turns, since the
    machine may have other work."""
    n_queries: dict[int, int] = {}
    times: dict[int, list[float]] = {500: [], 50_000: []}
    addresses: dict[int, str] = {}
    survey: dict[str, Any] = {}
    for n in times:
        run = large_runs.make(world.workspace, n=n, names=("keyword",)).runs.get()
        # The small one's serves both: what making one costs is another question.
        survey = survey or surveys.make(run)
        run.counts["survey"] = survey
        run.save(update_fields=["counts"])
        addresses[n] = f"/runs/{run.id}"
        with CaptureQueriesContext(connection) as seen:
            page = text(console, addresses[n])
        n_queries[n] = len(seen)
        assert page.count('<tr>\n      <td class="figure muted">') == 50
        assert f"{n:,} questions" in plain(page)
    for _ in range(8):
        for n, address in addresses.items():
            begin = time.perf_counter()
            text(console, address)
            times[n].append(time.perf_counter() - begin)
    assert n_queries[50_000] == n_queries[500]
    assert min(times[50_000]) < 2 * min(times[500]), times


def test_settings_are_written_for_people_on_the_run_and_in_a_comparison(console: Client, world: World) -> None:
    fusion = {"formula": "rrf", "weights": [1.0, 0.5], "constant": 60.0, "rank_base": 1}
    made = list(large_runs.make(world.workspace, n=6, names=("hybrid", "semantic")).runs.order_by("ordinal"))
    for run, exact in zip(made, (True, False), strict=True):
        run.config = {**run.config, "fusion": {**fusion, "constant": 60.0 + exact}, "exact": exact, "min_score": None}
        run.save(update_fields=["config"])
    settings = plain(text(console, f"/runs/{made[0].id}").split(">Settings<")[1].split("</dl>")[0])
    assert "fusion formula rrf, weights 1 / 0.5, constant 61, rank base 1" in settings
    assert "exact yes" in settings
    assert "min score –" in settings
    compared = plain(text(console, "/compare", baseline=str(made[0].id), candidate=str(made[1].id)))
    assert "formula rrf, weights 1 / 0.5, constant 60, rank base 1" in compared
    assert "exact yes no" in compared


def test_what_is_not_there_is_named_with_the_way_to_the_list(console: Client, evaluation: Evaluation, run: Run) -> None:
    theirs = "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"
    for address, said, instead in (
        (f"/compare?baseline={run.id}&candidate=nope", "There is no run nope", "/compare"),
        (f"/compare?baseline={theirs}", f"There is no run {theirs}", "/compare"),
        (f"/runs/{theirs}", f"There is no run {theirs}", "/evaluations"),
        ("/evaluations/nope", "There is no evaluation nope", "/evaluations"),
        ("/evaluations/new?like=nope", "There is no evaluation nope", "/evaluations"),
        ("/sets/nope", "There is no question set nope", "/sets"),
        ("/bases/nope", "There is no knowledge base nope", "/bases"),
        ("/schedules/nope", "There is no schedule nope", "/schedules"),
        ("/gates/nope", "There is no gate nope", "/gates"),
    ):
        page = text(console, address, status=404).split("<main")[1]
        assert said in plain(page), address
        assert f'<a href="{instead}">' in page, address


def test_a_question_shows_all_that_it_expects_and_what_is_wrong_with_its_label(db: None) -> None:
    world = make_world("labels")
    wanted = [
        {"path": "policies/leave.md", "content_contains": ["before the 15th", "by noon"]},
        {"path": "policies/leaves.md"},
    ]
    questions = [{"id": "q", "question": "How long is the leave?", "expect": wanted}]
    set_id = world.client.post(f"{API}/question-sets", {"name": "wrong", "questions": questions}).json()["id"]
    made = world.evaluate(question_set=set_id)
    engine.drain()
    run = Run.objects.get(evaluation=made.json()["id"])
    console = console_of(world.workspace)
    page = html.unescape(plain(text(console, f"/runs/{run.id}/questions/0")))
    said = page.split("What is expected")[1].split("What came back")[0]
    whole = "policies/leave.md, “before the 15th” or “by noon”"
    assert whole in said
    assert whole in plain(text(console, f"/sets/{set_id}")), "as on the set's page"
    assert (
        "not indexed right document, wrong passage No document that it may be in holds this: policies/leave.md" in said
    )
    assert "No document is named so: policies/leaves.md. Did you mean policies/leave.md?" in said


def test_what_was_taken_over_is_told_with_the_run_that_measured_it_and_the_way_to_ask_again(
    console: Client, world: World, evaluation: Evaluation, run: Run
) -> None:
    """Of a third evaluation as well: the second one measured nothing either."""
    modes = [{"name": "keyword", "mode": "keyword"}, {"name": "strict", "mode": "keyword", "keyword": "fts"}]
    last = evaluation
    for _ in range(2):
        made = world.evaluate(configurations=modes, modes=[])
        engine.drain()
        last = Evaluation.objects.get(id=made.json()["id"])
    again = last.runs.get(name="keyword")
    strict = evaluation.runs.get(name="strict")
    # Both began in one minute, which is told once.
    Run.objects.filter(id__in=[run.id, strict.id]).update(created_at=run.created_at)
    measured = f"measured on {run.created_at:%Y-%m-%d %H:%M} UTC"
    link = f'<a href="/runs/{run.id}">keyword</a>'
    ask = f'<a href="/evaluations/new?like={last.id}&amp;cache=off">Ask every question again</a>'
    for address, said in (
        (f"/runs/{again.id}", f"5 of 5 results were taken over from keyword , {measured}"),
        (f"/evaluations/{last.id}", f"10 of 10 results were taken over from keyword and strict , {measured}"),
    ):
        page = text(console, address)
        assert said in plain(page), address
        assert page.count(link) == page.count(ask) == 1, address
        assert "earlier run's" in html.unescape(page), address
    Run.objects.filter(id=strict.id).update(created_at=run.created_at - timedelta(days=1))
    assert f"from keyword of {run.created_at:%Y-%m-%d}" in plain(text(console, f"/evaluations/{last.id}"))
    assert "ms, the earlier run's" in html.unescape(plain(text(console, f"/runs/{again.id}/questions/0")))
    assert "earlier run's" in html.unescape(text(console, "/history"))
    compared = text(console, "/compare", baseline=str(run.id), candidate=str(again.id))
    assert f"keyword : 5 of 5 results were taken over from keyword , {measured}" in plain(compared)
    for address in (f"/runs/{run.id}", f"/evaluations/{evaluation.id}", f"/runs/{run.id}/questions/0"):
        assert "taken over" not in text(console, address), address
        assert "earlier run's" not in html.unescape(text(console, address)), address
    viewer = console_of(world.workspace, Role.VIEWER)
    assert "Ask every question again" not in text(viewer, f"/runs/{again.id}")
    form = text(console, f"/evaluations/new?like={last.id}&cache=off")
    assert re.findall(r'name="cache"( checked)?>', form) == [""]
    assert "<details open>" in form
    assert re.findall(r'name="cache"( checked)?>', text(console, f"/evaluations/new?like={last.id}")) == [" checked"]
    Run.objects.filter(id=again.id).update(cost={"reused": 3.0})
    assert "3 of 5 results were taken over" in plain(text(console, f"/runs/{again.id}"))
    assert "partly the earlier run's" in html.unescape(text(console, f"/runs/{again.id}"))


def test_an_earlier_run_that_is_gone_is_not_linked(console: Client, run: Run) -> None:
    origin = {"reused_from": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11"}
    Run.objects.filter(id=run.id).update(cost={"reused": 5.0}, origin=origin)
    page = text(console, f"/runs/{run.id}")
    assert "were taken over from an earlier run that is gone" in plain(page)
    assert origin["reused_from"] not in page
