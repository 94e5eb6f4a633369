"""How far what is expected came."""

from backend.core.diagnosis import Funnel, RankedPassage, Reached, funnel, reached


def passage(satisfied: tuple[int, ...] = (), *, document: str = "d", **ranks: int) -> RankedPassage:
    """Its ranks among passages are those at the run's level, unless `place` says where it is in the pool."""
    place = ranks.pop("place", None)
    places = {name: rank for name, rank in ranks.items() if name != "final"}
    return RankedPassage(
        document=document,
        satisfied=satisfied,
        level=ranks,
        places={**places, "fused": place} if place is not None else places,
    )


def test_each_stage_counts_what_reached_it() -> None:
    found = reached(
        [passage((0,), meaning=1, fused=1, final=3), passage((1,), words=60, fused=61, final=61)],
        {0, 1},
        k=10,
        depth=50,
    )
    assert found == Reached(leg=1.0, pool=0.5, before=0.5, after=0.5)


def test_a_reranker_lifts_what_the_pool_held() -> None:
    found = reached([passage((0,), words=30, fused=20, final=1)], {0}, k=10, depth=50)
    assert found == Reached(leg=1.0, pool=1.0, before=0.0, after=1.0)


def test_what_no_passage_holds_reached_no_stage() -> None:
    assert reached([passage(meaning=1, final=1)], {0}, k=10, depth=50) == Reached(leg=0, pool=0, before=0, after=0)


def test_a_pool_is_filled_by_passages_whatever_the_level() -> None:
    found = reached([passage((0,), fused=9, final=9, place=51)], {0}, k=10, depth=50)
    assert found == Reached(leg=1.0, pool=0.0, before=1.0, after=1.0)


def test_the_funnel_is_the_mean_of_its_questions_and_nothing_of_none() -> None:
    whole, none = Reached(leg=1, pool=1, before=1, after=1), Reached(leg=1, pool=0, before=0, after=0)
    assert funnel([whole, none]) == Funnel(n=2, leg=1.0, pool=0.5, before=0.5, after=0.5)
    assert funnel([]) is None
    assert reached([], set(), k=10, depth=50) is None
