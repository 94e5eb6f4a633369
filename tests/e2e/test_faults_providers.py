"""Providers that refuse by the hundred, fail by halves, and go away: what test_providers.py does not show.

Numbers as in docs/measured.md. F22 (Retry-After), F24 (hangs, drips, resets), F25 (garbage), F26 (401, 402) and F27
(limits without Redis) are there, in tests/integration and in tests/unit.
"""

import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.e2e import oracle
from tests.e2e.cluster import Cluster
from tests.e2e.faults import N_QUESTIONS, PER_MINUTE
from tests.e2e.oracle import submit
from tests.e2e.shelf import Shelf
from tests.standins import Call, Fault, Script, Standin

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]


def most_within(calls: Sequence[Call], seconds: float) -> int:
    starts = sorted(call.started_at for call in calls)
    return max(sum(1 for one in starts if start <= one < start + seconds) for start in starts)


def tries(cluster: Cluster, evaluation: str) -> int:
    return int(cluster.sql("SELECT max(tries) FROM backend_slice WHERE evaluation_id = %s", evaluation)[0][0])


@pytest.mark.parametrize("retry_after", ["1", None, "0"])
def test_f22_a_storm_of_429_costs_no_question_and_no_attempt(
    faulty: Cluster, small: Shelf, undisturbed: str, provider: Standin, retry_after: str | None
) -> None:
    """Every call from the sixth on is refused until a hundred, or ten where nobody says for how long, were."""
    n_faults = 10 if retry_after is None else 100
    provider.set_script(
        Script(
            max_batch=64,
            fault=Fault.STATUS,
            status=429,
            retry_after=retry_after,
            fault_from=5,
            n_faults=n_faults,
            latency_seconds=0.2,
        )
    )
    modes = {"modes": ["keyword", "keyword_rerank"], "reranker": "http:paced", "cache": False}
    evaluation = submit(faulty, small, **modes)
    final = faulty.finished(evaluation, seconds=240)
    oracle.check_whole(faulty, evaluation, small, n_runs=2)
    assert final["runs"][1]["counts"]["n_scored"] == N_QUESTIONS
    assert oracle.ranks(faulty, evaluation) == oracle.ranks(faulty, undisturbed)
    assert tries(faulty, evaluation) == 0
    by_status = Counter(call.status for call in provider.calls)
    assert by_status == {200: N_QUESTIONS, 429: n_faults}
    in_a_second = most_within(provider.calls, 1.0)
    # Two at once, and what may be held up between leave and call.
    assert in_a_second <= PER_MINUTE / 60 + 5
    print(f"\nMEASURED {by_status[429]} refusals (Retry-After {retry_after}): at most {in_a_second} calls in a second")


def test_f23_every_second_call_failing_loses_only_who_is_refused_four_times(
    faulty: Cluster, small: Shelf, undisturbed: str, provider: Standin
) -> None:
    """Every second call: who is refused four times in a row has used his tries, and nobody else loses anything."""
    provider.set_script(Script(max_batch=64, latency_seconds=0.05, fault=Fault.STATUS, status=500, fault_every=2))
    modes = {"modes": ["keyword", "keyword_rerank"], "reranker": "http:near", "cache": False}
    evaluation = submit(faulty, small, **modes)
    final = faulty.finished(evaluation, seconds=240)
    oracle.check_whole(faulty, evaluation, small, n_runs=2)
    asked = Counter(call.body["query"] for call in provider.calls)
    assert max(asked.values()) <= 4
    lost = oracle.endings(faulty, final["runs"][1])
    n_lost = sum(1 for outcome, code in lost.values() if (outcome, code) == ("error", "PROVIDER_UNAVAILABLE"))
    assert final["runs"][1]["counts"]["n_scored"] == N_QUESTIONS - n_lost
    refused = Counter(call.body["query"] for call in provider.calls if call.status == 500)
    assert n_lost == sum(1 for n in refused.values() if n == 4)
    now, before = (oracle.ranks(faulty, key)["keyword_rerank"] for key in (evaluation, undisturbed))
    assert sum(1 for one, other in zip(now, before, strict=True) if one != other) == n_lost
    print(f"\nMEASURED every second call refused: {n_lost} of {N_QUESTIONS} questions refused four times and lost")


def test_f23_a_provider_that_is_away_for_ten_seconds_is_probed_and_costs_no_question(
    faulty: Cluster, small: Shelf, undisturbed: str, provider: Standin
) -> None:
    provider.set_script(Script(max_batch=64, fault=Fault.STATUS, status=500))
    modes = {"modes": ["keyword", "keyword_rerank"], "reranker": "http:near", "cache": False}
    evaluation = submit(faulty, small, **modes)
    faulty.wait(lambda: len(provider.calls) >= 20, "twenty failures in a row", seconds=180)
    threading.Event().wait(3)
    before = len(provider.calls)
    threading.Event().wait(7)
    probes = len(provider.calls) - before
    provider.set_script(Script(max_batch=64, latency_seconds=0.05))
    final = faulty.finished(evaluation)
    oracle.check_whole(faulty, evaluation, small, n_runs=2)
    # One call a second asks whether it is back; whoever had used all of his four tries by then is lost.
    assert probes <= 9
    lost = final["runs"][1]["counts"]["n_error"]
    assert lost <= 5
    assert final["runs"][1]["counts"]["n_scored"] == N_QUESTIONS - lost
    print(f"\nMEASURED {probes} probes in seven seconds, {lost} questions lost")
