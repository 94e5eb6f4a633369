"""What is left to wait, from the rate that was seen."""

import pytest

from backend.core.pace import Pace, seconds_left


@pytest.mark.parametrize(
    ("paces", "left"),
    [
        ([], 0.0),
        ([Pace(n_left=0, n_done=0, n_recent=0, seconds=0)], 0.0),
        ([Pace(n_left=40, n_done=20, n_recent=20, seconds=10)], 20.0),
        # Fast at first, slow of late: the last minute counts.
        ([Pace(n_left=60, n_done=1_000, n_recent=60, seconds=600)], 60.0),
        # Nothing of late: the average.
        ([Pace(n_left=100, n_done=100, n_recent=0, seconds=600)], 600.0),
        # Side by side: the longest is what is waited for.
        (
            [
                Pace(n_left=10, n_done=90, n_recent=90, seconds=9),
                Pace(n_left=90, n_done=10, n_recent=10, seconds=10),
            ],
            90.0,
        ),
        # A reranked mode that has given nothing yet may take any time, however fast the others are.
        (
            [
                Pace(n_left=10, n_done=90, n_recent=90, seconds=9),
                Pace(n_left=100, n_done=0, n_recent=0, seconds=0),
            ],
            None,
        ),
        ([Pace(n_left=5, n_done=2, n_recent=2, seconds=1)], None),
    ],
)
def test_the_time_left_is_that_of_the_slowest_at_its_recent_rate(paces: list[Pace], left: float | None) -> None:
    assert seconds_left(paces) == (left if left is None else pytest.approx(left))
