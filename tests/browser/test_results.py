"""As a person goes: from the first visit to a comparison; and what is broken, dead or very large on the way."""

import json
import re
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Windows
from tests.browser.pages import check
from tests.e2e.cluster import ROOT, Cluster

N_LARGE = 10_000
_LARGE = (
    "import django; django.setup(); from backend.models import Workspace; from tests import large_runs; "
    f"made = large_runs.make(Workspace.objects.get(), n={N_LARGE}); "
    "print(*made.runs.order_by('ordinal').values_list('id', flat=True))"
)
_PATIENCE = 120_000


def handbook(page: Page, service: Cluster, *, with_set: bool = True) -> None:
    """The sample handbook, loaded by its button where no test before did; ready. With a set to ask."""
    page.goto("/bases")
    if not page.get_by_role("link", name="handbook", exact=True).count():
        page.get_by_role("button", name="Load the sample handbook").click()
    service.wait(
        lambda: any(
            one["name"] == "handbook" and one["state"] == "ready"
            for one in service.http.get("knowledge-bases").json()["results"]
        ),
        "the handbook to be indexed",
        seconds=120,
    )
    if with_set and not service.http.get("question-sets").json()["results"]:
        lines = (ROOT / "examples/handbook/.touchstone/handbook.jsonl").read_text().splitlines()
        questions = [json.loads(line) for line in lines if line and not line.startswith("#")]
        service.http.post("question-sets", json={"name": "handbook", "questions": questions})


def first(service: Cluster, path: str) -> dict[str, Any]:
    """The oldest: what the tests before made last may still be at work."""
    return dict(service.get(path, limit=100)["results"][-1])


def evaluated(page: Page, service: Cluster) -> dict[str, Any]:
    """The latest evaluation of a base that is over, made where there is none."""
    handbook(page, service)
    found = [
        one
        for one in service.get("evaluations")["results"]
        if one["state"] == "completed" and one["runs"][0]["knowledge_base"]["id"]
    ]
    if found:
        return dict(found[0])
    body = {
        "question_set": first(service, "question-sets")["id"],
        "scope": {"knowledge_base": first(service, "knowledge-bases")["id"]},
        "modes": ["keyword", "semantic"],
    }
    return dict(service.finished(service.post("evaluations", body)["id"]))


def evaluate(page: Page, *ways: str, label: str, finer: dict[str, str] | None = None, cache: bool = True) -> None:
    """From the form for the handbook's first set to the evaluation's page. Without the cache every question is asked,
    also where an earlier test has asked the same."""
    page.goto("/evaluations/new")
    page.get_by_label("Question set").select_option(index=1)
    choose_handbook(page)
    for box in page.locator("input[name=modes]").all():
        box.set_checked(box.get_attribute("value") in ways)
    page.get_by_label("Label").fill(label)
    if finer or not cache:
        page.get_by_text("Finer settings").click()
        for name, value in (finer or {}).items():
            page.get_by_label(name).fill(value)
        page.locator("input[name=cache]").set_checked(cache)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("heading", level=1, name=label)).to_be_visible()


def choose_handbook(page: Page) -> None:
    option = page.locator("#scope option", has_text=re.compile("^handbook")).first
    page.get_by_label("Where to search").select_option(value=option.get_attribute("value"))


def to_its_end(page: Page) -> None:
    """The page changes by itself: nobody loads it anew."""
    page.wait_for_load_state()
    expect(page.locator("svg.outcomes")).to_have_count(0, timeout=_PATIENCE)


def test_a_person_walks_from_the_first_visit_to_a_comparison(windows: Windows, service: Cluster) -> None:
    page = windows.open()
    handbook(page, service, with_set=False)
    # A set file lies beside the documents: one press makes it a set, and leads to the form that asks it.
    page.goto("/sets")
    press = page.get_by_role("button", name=re.compile("^Evaluate"))
    if press.count():
        press.first.click()
        expect(page.get_by_role("heading", name="New evaluation")).to_be_visible()
    else:
        page.goto("/evaluations/new")
    page.get_by_label("Question set").select_option(index=1)
    choose_handbook(page)
    page.get_by_role("button", name="hybrid", exact=True).click()
    expect(page.locator("#estimate")).to_contain_text("searches")
    check(page, "new-evaluation")
    page.get_by_label("Label").fill("the first")
    page.locator("input[name=modes][value=keyword]").check()
    page.get_by_role("button", name="Run", exact=True).click()
    to_its_end(page)
    expect(page.locator("#state")).to_contain_text("completed")
    expect(page.locator(".tile").first).to_contain_text("±")
    check(page, "evaluation")

    page.get_by_role("list", name="Runs").get_by_role("link", name="hybrid_rerank", exact=True).click()
    expect(page.get_by_role("heading", name="Where questions were lost")).to_be_visible()
    check(page, "run")
    page.get_by_role("link", name=re.compile("^missed")).click()
    page.locator("table.asked tbody th a").first.click()
    expect(page.locator("main")).to_contain_text("What is expected")
    check(page, "question")

    page.get_by_role("link", name="the first").click()
    page.get_by_role("link", name="Compare the modes").click()
    expect(page.locator(".verdict").first).to_contain_text(re.compile("Better|Worse|No difference|Too few|Not decided"))
    check(page, "compare")


def test_a_run_that_is_cancelled_keeps_what_was_finished(page: Page, service: Cluster) -> None:
    handbook(page, service)
    service.kill("worker-search")
    try:
        evaluate(page, "keyword", label="to be stopped", cache=False)
        expect(page.locator("svg.outcomes")).to_be_visible()
        check(page, "progress")
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("It is stopping")).to_be_visible()
        to_its_end(page)
        expect(page.locator("#state")).to_contain_text("cancelled")
    finally:
        service.start("worker-search")
    page.get_by_role("button", name=re.compile("^Ask the rest")).click()
    to_its_end(page)
    expect(page.locator("#state")).to_contain_text("completed")


def test_a_dead_reranker_is_shown_as_not_available_with_its_reason(page: Page, service: Cluster) -> None:
    handbook(page, service)
    # By meaning every question has a pool; one without is scored as empty, and asks no reranker.
    evaluate(page, "keyword", "hybrid_rerank", label="dead", finer={"Reranker": "http:down"})
    to_its_end(page)
    tile = page.locator(".tile", has=page.get_by_role("link", name="hybrid_rerank", exact=True))
    expect(tile).to_contain_text("n/a")
    expect(tile).to_contain_text("PROVIDER_UNAVAILABLE")
    expect(page.locator(".tile").first).to_contain_text("±")
    check(page, "dead-reranker")
    tile.get_by_role("link").click()
    expect(page.locator("#errors")).to_be_visible()


def test_without_scripts_the_same_pages_work_by_links_and_forms(windows: Windows, service: Cluster) -> None:
    page = windows.open(java_script_enabled=False)
    handbook(page, service)
    evaluate(page, "keyword", label="without scripts")
    ends = time.monotonic() + _PATIENCE / 1000
    while not page.get_by_text("completed").count() and time.monotonic() < ends:
        time.sleep(0.5)
        page.reload()
    page.locator(".tile a").first.click()
    page.get_by_role("link", name=re.compile("^found")).first.click()
    page.locator("table.asked tbody th a").first.click()
    expect(page.get_by_role("heading", name="How its figures add up")).to_be_visible()


def test_pages_of_ten_thousand_questions(page: Page, service: Cluster, windows: Windows) -> None:
    baseline, candidate = service.python("-c", _LARGE).split()[-2:]
    page.goto(f"/runs/{baseline}")
    expect(page.locator("main")).to_contain_text("10,000 of 10,000")
    assert page.locator("table.asked tbody tr").count() == 50
    # Its causes are worked out in the background, and come without anybody asking.
    expect(page.get_by_role("heading", name="Where questions were lost")).to_be_visible(timeout=_PATIENCE)
    check(page, "large-run")
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("table.asked tbody tr").first).to_contain_text("Question 50")
    page.goto(f"/compare?baseline={baseline}&candidate={candidate}")
    expect(page.locator(".verdict").first).to_contain_text("over 10,000 of 10,000 questions", timeout=_PATIENCE)
    check(page, "large-compare")

    # Its export is made in the background; where htmx failed to load, a link looks again.
    plain = windows.open(htmx=False)
    plain.goto(f"/runs/{baseline}")
    plain.get_by_role("link", name="csv").click()
    expect(plain.get_by_role("heading", level=1, name="Export of a run")).to_be_visible()
    download = plain.get_by_role("link", name=re.compile("^Download"))

    def made() -> bool:
        plain.wait_for_load_state()
        if not download.count():
            plain.get_by_role("link", name="Look again").click()
            plain.wait_for_load_state()
        return download.count() == 1

    service.wait(made, "the export", seconds=_PATIENCE / 1000)
    check(plain, "job")
    with plain.expect_download() as begun:
        download.click()
    assert Path(begun.value.path()).read_text().count("\n") > N_LARGE
