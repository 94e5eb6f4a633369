"""What watches by itself and who may do what, from a window in which htmx failed to load: links and forms do it all.
Then every page there is, each asked the same."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.api import addresses
from tests.api.access_matrix import ROWS
from tests.browser.conftest import Windows
from tests.browser.pages import check
from tests.browser.test_results import evaluated, first, handbook
from tests.e2e.cluster import Cluster

# What changes inside another page, pictures, and what is no page but a way to one.
_NO_PAGES = re.compile(r"progress$|survey$|plots/|^login/|^logout$|^runs/<str:run_id>/export$|^sets/question$")
# Pages that no other test takes a picture of.
_PICTURES = {
    "schedules": "schedules",
    "schedules/new": "schedule-form",
    "schedules/<str:schedule_id>": "schedule",
    "baselines": "baselines",
    "runs/<str:run_id>/approve": "baseline-approve",
    "gates": "gates",
    "gates/new": "gate-form",
    "gates/<str:gate_id>": "gate",
    "alerts": "alerts",
    "alerts/<str:alert_id>": "alert",
    "alerts/targets": "alert-targets",
    "jobs": "jobs",
    "members": "members",
    "tokens": "tokens",
    "provider-keys": "provider-keys",
    "audit": "audit",
    "account/password": "password",
    "evaluations": "evaluations",
    "compare": "compare-choose",
    "bases/new": "base-new",
    "sets/new": "set-new",
}
_HREFS = "links => links.map(one => one.href)"
_FLOOR = '[{"rule": "floor", "metric": "hit@1", "least": 1.0}, {"rule": "coverage", "least": 1.0}]'


@pytest.fixture
def plain(windows: Windows) -> Page:
    """A window in which htmx did not load."""
    page = windows.open(htmx=False)
    page.goto("/")
    assert page.evaluate("typeof htmx") == "undefined"
    return page


def test_a_night_is_watched_from_its_schedule_to_its_alert(plain: Page, service: Cluster) -> None:
    handbook(plain, service)
    plain.goto("/gates")
    expect(plain.get_by_role("heading", name="No gate yet")).to_be_visible()
    plain.goto("/schedules")
    plain.get_by_role("link", name="New schedule").first.click()
    plain.get_by_label("Name", exact=True).fill("nightly")
    plain.get_by_label("Knowledge base").select_option("handbook")
    for box in plain.locator("input[name=modes]").all():
        box.set_checked(box.get_attribute("value") in {"keyword", "semantic"})
    plain.get_by_label("When").fill("at night")
    plain.get_by_role("button", name="Save").click()
    expect(plain.locator("#cron-fault")).to_contain_text("five fields")
    plain.get_by_label("When").fill("0 2 * * *")
    plain.get_by_role("button", name="Save").click()
    expect(plain.get_by_text("nightly is saved.")).to_be_visible()

    plain.get_by_role("link", name="add one").click()
    plain.get_by_label("Name", exact=True).fill("first of all")
    plain.get_by_label("Rules").fill("none")
    plain.get_by_role("button", name="Save").click()
    expect(plain.locator("#rules-fault")).to_be_visible()
    plain.get_by_label("Rules").fill(_FLOOR)
    plain.get_by_role("button", name="Save").click()
    plain.get_by_role("link", name="nightly").click()
    plain.get_by_role("button", name="Run now").click()
    _look_until(plain, service, "completed", link="Look again")
    service.wait(lambda: service.get("alerts")["results"] != [], "the alert to open", seconds=60)

    plain.get_by_role("link", name="Alerts", exact=True).click()
    plain.get_by_role("link", name=re.compile("first of all")).first.click()
    expect(plain.locator("main")).to_contain_text("hit@1")
    plain.get_by_role("link", name="nightly").first.click()
    expect(plain.get_by_role("region", name="History")).to_contain_text("by hand")
    plain.get_by_role("button", name="Switch off").click()
    expect(plain.get_by_text("nightly is off.")).to_be_visible()
    plain.get_by_role("button", name="Switch on").click()


def test_a_run_becomes_the_baseline_and_messages_have_a_target(plain: Page, service: Cluster) -> None:
    evaluated(plain, service)
    plain.goto("/evaluations")
    plain.get_by_role("link", name="keyword", exact=True).first.click()
    plain.get_by_role("link", name="Make it the baseline").click()
    plain.get_by_label("Label").fill("release 4")
    plain.get_by_role("button", name="Approve it").click()
    expect(plain.get_by_role("region", name="Baselines")).to_contain_text("release 4")
    plain.goto("/alerts/targets")
    plain.get_by_label("Name", exact=True).fill("chat")
    plain.get_by_label("Address").fill("https://10.0.0.1/hook")
    plain.get_by_role("button", name="Add it").click()
    expect(plain.locator("#address-fault")).to_be_visible()
    plain.get_by_label("Address").fill("https://hooks.example.org/touchstone")
    plain.get_by_role("button", name="Add it").click()
    expect(plain.get_by_text("chat is told from now on.")).to_be_visible()


def test_members_tokens_and_keys_come_and_go(plain: Page) -> None:
    plain.goto("/members")
    plain.get_by_label("Name", exact=True).fill("sam")
    plain.get_by_label("Role", exact=True).select_option("viewer")
    plain.get_by_role("button", name="Add").click()
    expect(plain.get_by_text("Hand this to sam")).to_be_visible()
    check(plain, "")
    plain.goto("/tokens")
    plain.get_by_label("Name", exact=True).fill("nightly build")
    plain.get_by_label("knowledge-bases:read").check()
    plain.get_by_role("button", name="Make a token").click()
    expect(plain.get_by_text("is made. Its text is shown here only")).to_be_visible()
    check(plain, "")
    plain.goto("/provider-keys")
    plain.get_by_label("Provider", exact=True).fill("openai")
    plain.get_by_label("Key", exact=True).fill("sk-nobody-has-this-one-0123456789")
    plain.get_by_role("button", name="Keep").click()
    expect(plain.get_by_role("region", name="Provider keys")).to_contain_text("openai")
    expect(plain.locator("main")).not_to_contain_text("sk-nobody")
    plain.goto("/account/password")
    plain.get_by_label("New password").fill("twelve letters or more")
    plain.get_by_label("Once more").fill("twelve letters or less")
    plain.get_by_role("button", name="Set it").click()
    expect(plain.get_by_role("alert")).to_be_visible()
    plain.goto("/audit")
    expect(plain.get_by_role("region", name="Changes")).to_contain_text("token made")


def test_every_page_there_is_holds_to_what_is_asked_of_each(plain: Page, service: Cluster) -> None:
    """Each address of a page: no serious fault of accessibility, nothing wider than the window, in both themes; a token
    in each form. A breach of the content security policy would be told on the browser's console, which is watched."""
    ids = _ids(plain, service)
    wrong = []
    for route in sorted(addresses.routes()):
        if _is_page(route):
            address = addresses.filled(route, ids)
            answer = plain.goto(address)
            assert answer is not None
            assert answer.status == 200, (address, answer.status)
            forms = plain.locator("form[method=post]")
            with_token = forms.filter(has=plain.locator("input[name=csrfmiddlewaretoken]"))
            assert forms.count() == with_token.count(), address
            try:
                check(plain, _PICTURES.get(route, ""))
            except AssertionError as fault:
                wrong.append(str(fault))
    assert not wrong, "\n\n".join(wrong)


def test_every_link_of_every_page_leads_somewhere(plain: Page, service: Cluster) -> None:
    ids = _ids(plain, service)
    asked: set[str] = set()
    dead: list[tuple[str, str, int]] = []
    for route in sorted(addresses.routes()):
        if not _is_page(route):
            continue
        plain.goto(addresses.filled(route, ids))
        found: list[str] = plain.eval_on_selector_all(
            "a[href^='/'], a[href^='?']", "links => links.map(one => one.href)"
        )
        for link in found:
            kind = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|/\d+|[?#].*", "*", link)
            if kind not in asked:
                asked.add(kind)
                status = plain.request.get(link, max_redirects=3).status
                if status >= 400:
                    dead.append((plain.url, link, status))
    assert dead == []
    assert len(asked) > 60


def _is_page(route: str) -> bool:
    """Not what is only sent to, such as the address of a button."""
    is_machine = route.startswith(("api/", "healthz", "readyz", "metrics"))
    return not is_machine and "get" in ROWS[route] and not _NO_PAGES.search(route)


def _ids(page: Page, service: Cluster) -> dict[str, str]:
    """What stands for each part of an address; made where the tests before made none."""
    evaluation = evaluated(page, service)
    base, questions = first(service, "knowledge-bases"), first(service, "question-sets")
    below = f"knowledge-bases/{base['id']}"
    scope = {"knowledge_base": base["id"]}
    run = next(one["id"] for one in evaluation["runs"] if one["state"] == "scored")
    if not service.get("generations")["results"]:
        service.post("question-sets/generate", {"knowledge_base": base["id"], "sample_size": 3})
    if not service.get("schedules")["results"]:
        wanted = {"question_set": questions["id"], "scope": scope}
        service.post("schedules", {"name": "weekly", "cron": "0 2 * * 0", "evaluation": wanted})
    if not service.get("gates")["results"]:
        service.post("gates", {"name": "merge", "rules": [{"rule": "must_pass"}]})
    if not service.get("alert-targets")["results"]:
        service.post("alert-targets", {"name": "chat", "kind": "webhook", "address": "https://hooks.example.org/x"})
    if not service.get("baselines")["results"]:
        service.post("baselines", {"run": run})
    return {
        "base_id": base["id"],
        "source_id": service.get(f"{below}/sources")["results"][0]["id"],
        "document_id": service.get(f"{below}/documents")["results"][0]["id"],
        "set_id": questions["id"],
        "question_key": service.get(f"question-sets/{questions['id']}/questions")["results"][0]["id"],
        "evaluation_id": evaluation["id"],
        "run_id": run,
        "ordinal": "0",
        "generation_id": first(service, "generations")["id"],
        "schedule_id": first(service, "schedules")["id"],
        "gate_id": first(service, "gates")["id"],
        "alert_id": service.get("alerts")["results"][0]["id"],
        "target_id": first(service, "alert-targets")["id"],
        "baseline_id": first(service, "baselines")["id"],
        "job_id": first(service, "jobs")["id"],
        "member_id": first(service, "members")["id"],
        "token_id": first(service, "tokens")["id"],
        "provider": "openai",
    }


def _look_until(page: Page, service: Cluster, state: str, *, link: str) -> None:
    """Nothing moves by itself here: the page's own link looks again."""

    def there() -> bool:
        page.wait_for_load_state()
        if page.locator("#state").get_by_text(state).count():
            return True
        page.get_by_role("link", name=link).click()
        return False

    service.wait(there, f"the page to say {state}", seconds=120)
