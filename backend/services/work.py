"""What a doorbell sets off: claim the slice, do it, and see what that made possible."""

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from backend import logs
from backend.core.errors import ErrorCode
from backend.core.states import SliceKind
from backend.models import Slice
from backend.providers.base import ProviderError
from backend.search.pacing import PacedError
from backend.services import (
    evaluations,
    giving_up,
    heartbeat,
    ingestion,
    jobs,
    provider_states,
    pump,
    slices,
    sweeper,
    tallies,
)
from backend.services.handlers import aggregate, answer, embed, job, prepare, rerank, search
from backend.services.slices import Lease, LeaseLostError
from backend.services.tallies import Event

MOST_INTERNAL_FAILURES = 2
_DATABASE_PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0)
_log = logs.get("work")

HANDLERS: dict[SliceKind, Callable[[Lease], None]] = {
    SliceKind.PREPARE: prepare.run,
    SliceKind.EMBED: embed.run,
    SliceKind.SEARCH: search.run,
    SliceKind.RERANK: rerank.run,
    SliceKind.ANSWER: answer.run,
    SliceKind.AGGREGATE: aggregate.run,
    SliceKind.INGEST: ingestion.run,
    SliceKind.JOB: job.run,
}


def run(slice_id: UUID, *, delivery: int) -> None:
    """Never raises for what a slice does: an old doorbell is dropped, a failure is written, a lost lease is left."""
    lease = slices.claim(slice_id, delivery=delivery)
    if lease is None:
        _log.debug("doorbell_dropped", slice=str(slice_id), delivery=delivery)
        tallies.add(Event.DOORBELLS_DROPPED)
        tallies.flush()
        return
    with structlog.contextvars.bound_contextvars(**_who(lease, delivery)):
        started = time.monotonic()
        try:
            with heartbeat.holding(lease):
                HANDLERS[lease.kind](lease)
        except LeaseLostError:
            _log.info("lease_lost")
            tallies.add(Event.COMMITS_FENCED, label=lease.kind.value)
        except PacedError as error:
            # No call was made: no try is used, and nothing is said against the provider.
            tallies.add(Event.SLICES_PACED, label=lease.kind.value)
            slices.release(lease, wait_seconds=error.wait_seconds or 0.0)
        except ProviderError as error:
            _provider_failed(lease, error)
        except DatabaseError as error:
            _log.warning("database_failed", exc_info=True)
            if not _database_failed(lease, error):
                raise
        except Exception:  # noqa: BLE001  the edge of the process: whatever it is, the slice must end
            _log.exception("slice_failed")
            _failed(lease)
        _log.debug("slice_left", seconds=round(time.monotonic() - started, 3))
    after(lease)
    tallies.flush()


def _who(lease: Lease, delivery: int) -> dict[str, Any]:
    """What every line says that is logged meanwhile: whose slice, which, and the questions in it by their number."""
    owner = {"evaluation": lease.evaluation_id, "ingestion": lease.ingestion_id, "job": lease.job_id}
    who: dict[str, Any] = {name: str(key) for name, key in owner.items() if key is not None}
    who |= {"slice": str(lease.slice_id), "kind": lease.kind.value, "epoch": lease.epoch, "delivery": delivery}
    if len(lease.items) == 1:
        who["question"] = lease.items[0]
    elif lease.items:
        who["questions"] = f"{lease.items[0]}-{lease.items[-1]}"
    return who


def after(lease: Lease) -> None:
    """Outside the slice's own commit, in autocommit: close what is complete, and hand out what waits."""
    if lease.evaluation_id is not None:
        evaluations.advance(lease.evaluation_id)
    if lease.ingestion_id is not None:
        ingestion.finish_if_done(lease.ingestion_id)
    if lease.job_id is not None:
        jobs.settle(lease.job_id, ended=lease)
    pump.run_after(lease.lane, evaluation_id=lease.evaluation_id)


def _provider_failed(lease: Lease, error: ProviderError) -> None:
    """Hand the slice back, to be tried again; a 429 uses no attempt. What used all of them is given up."""
    used = error.code is not ErrorCode.PROVIDER_RATE
    if used and lease.tries + 1 >= provider_states.MOST_TRIES:
        _give_up(lease, code=error.code, reason=error.message)
        return
    wait = provider_states.wait_before_next(lease, error)
    slices.release(lease, wait_seconds=wait, used_try=used)
    _log.info("provider_failed", code=error.code.value, tries=lease.tries + used, wait_seconds=round(wait, 2))


def _database_failed(lease: Lease, error: DatabaseError) -> bool:
    """Hand the slice back, so that no death is counted where nobody died. False when PostgreSQL stays away for longer:
    then the lease runs out by itself.

    A PostgreSQL that went away costs no try. A lock that was not had costs one of several; a row that it refuses
    (a broken constraint, a value out of range) is an error of ours.
    """
    passing = isinstance(error, OperationalError | InterfaceError)
    away = passing and not connection.is_usable()
    for pause in _DATABASE_PAUSES:
        time.sleep(pause)
        connection.close()
        try:
            if away:
                slices.release(lease, wait_seconds=1.0)
            elif passing and lease.tries + 1 < provider_states.MOST_TRIES:
                slices.release(lease, wait_seconds=2.0**lease.tries, used_try=True)
            else:
                _failed(lease)
        except DatabaseError:
            continue
        return True
    return False


def _failed(lease: Lease) -> None:
    """An error of ours. Once more, in case it was a passing one; then each question goes on alone, and the one that
    still fails is given up and says so."""
    if lease.tries + 1 < MOST_INTERNAL_FAILURES:
        slices.release(lease, wait_seconds=1.0, used_try=True)
    elif not sweeper.split(lease):
        _give_up(lease, code=ErrorCode.INTERNAL, reason="Touchstone failed here; the worker's log says where.")


def _give_up(lease: Lease, *, code: ErrorCode, reason: str) -> None:
    piece = Slice.objects.filter(id=lease.slice_id, token=lease.token).first()
    if piece is not None:
        giving_up.give_up(piece, code=code, reason=reason)
