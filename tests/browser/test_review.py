"""From the handbook to a run over questions made from it: forty drafts, decided about by keys, by buttons, without
scripts."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Windows
from tests.browser.pages import check
from tests.browser.test_results import handbook
from tests.e2e.cluster import Cluster

N = 40


def test_drafts_from_the_handbook_are_reviewed_and_evaluated(page: Page, service: Cluster, windows: Windows) -> None:
    handbook(page, service)
    page.goto("/drafts/new")
    check(page, "drafts-new")
    page.get_by_label("Knowledge base").select_option(label="handbook")
    page.get_by_label("How many").fill("none")
    page.get_by_role("button", name="Make questions").click()
    expect(page.locator("#sample_size-fault")).to_contain_text("whole number")
    page.get_by_label("How many").fill(str(N))
    page.get_by_role("button", name="Make questions").click()
    # The page follows the work by itself.
    expect(page).to_have_url(re.compile(r"/drafts/[0-9a-f-]{36}"))
    page.wait_for_load_state()
    review = page.get_by_role("link", name=re.compile("^Review"))
    expect(page.locator("#generation-progress progress")).to_have_count(0, timeout=90_000)
    generation = page.url.rsplit("/", 1)[1].partition("?")[0]
    told = service.http.get(f"generations/{generation}").json()
    assert (told["n_drawn"], sum(told["counts"].values())) == (N, N)
    assert told["counts"]["open"] == 0
    assert told["counts"]["pending"] >= 30
    assert told["job"]["state"] == "completed"
    drafts = service.http.get(f"generations/{generation}/drafts", params={"limit": N}).json()["results"]
    assert all(draft["verdicts"] for draft in drafts if draft["state"] != "failed")
    page.reload()
    check(page, "drafts")
    expect(page.locator("main")).to_contain_text("Made without a model")
    review.click()
    expect(page.get_by_label("Question")).to_be_visible()
    check(page, "review")

    # By keys, each decision leading to the next.
    first = page.get_by_label("Question").input_value()
    page.keyboard.press("a")
    expect(page.get_by_role("status")).to_contain_text("1 decided")
    second = page.get_by_label("Question").input_value()
    assert second != first
    page.keyboard.press("e")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Where is this written down for everybody?")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(page.get_by_role("status")).to_contain_text("2 decided")
    page.keyboard.press("r")
    expect(page.get_by_role("status")).to_contain_text("3 decided")
    third = page.get_by_label("Question").input_value()
    page.keyboard.press("n")
    expect(page.get_by_label("Question")).not_to_have_value(third)
    address = page.url

    # And without scripts, by the buttons.
    plain = windows.open(java_script_enabled=False)
    plain.goto(address)
    plain.get_by_role("button", name="Accept").click()
    expect(plain.get_by_role("status")).to_contain_text("4 decided")

    for draft in service.http.get(f"generations/{generation}/drafts", params={"state": "pending", "limit": N}).json()[
        "results"
    ]:
        assert service.http.post(f"drafts/{draft['id']}/review", json={"action": "accept"}).status_code == 200
    page.goto(f"/drafts/{generation}")
    page.get_by_label("Into a new set").fill("made from the handbook")
    page.get_by_role("button", name="Put them there").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("made from the handbook")
    made = next(
        one for one in service.http.get("question-sets").json()["results"] if one["name"] == "made from the handbook"
    )
    assert made["n_questions"] == told["counts"]["pending"] - 1

    base = next(one for one in service.http.get("knowledge-bases").json()["results"] if one["name"] == "handbook")
    body = {"question_set": made["id"], "scope": {"knowledge_base": base["id"]}, "modes": ["keyword", "semantic"]}
    started = service.http.post("evaluations", json=body).json()
    service.wait(
        lambda: service.http.get(f"evaluations/{started['id']}").json()["is_final"], "the run to end", seconds=120
    )
    for run in service.http.get(f"evaluations/{started['id']}").json()["runs"]:
        assert run["state"] == "scored"
        assert run["counts"]["n_generated"] == made["n_questions"]
        assert "were generated" in run["caution"]
        assert run["answers"] == {}
    page.goto("/drafts")
    expect(page.locator("main")).to_contain_text("local/1")
