"""The page that submits an evaluation: what to ask, where, in which ways; what it would take; then Run."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db.models import F
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone

from backend.core.configs import DEFAULT_MODES, LEGS_OF, MODES
from backend.core.errors import ErrorCode, Fault, NotFoundError, TouchstoneError, ValidationError
from backend.core.states import RunKind
from backend.core.types import Level
from backend.models import Scope, Workspace
from backend.providers.base import ProviderError
from backend.queries import evaluations as queries
from backend.queries import knowledge, questions, runs
from backend.services import estimates, evaluations, idempotency, submissions
from backend.services.idempotency import Answer
from console import faults
from console.access import PageRequest, page

_MOST = 200
_MOST_LOOKED_AT, _MOST_OFFERED = 100, 8
# One press chooses both of a pair.
_BOTH = "both:"
_TEXTS = ("question_set", "scope", "source", "collection", "reranker", "top_k", "k", "level", "primary_metric", "label")


@page(Scope.EVALUATE, post=Scope.EVALUATE)
def new(request: PageRequest) -> HttpResponse:
    """GET shows the form, filled in `like` another evaluation or for a `set` and `base`. POST estimates, or submits:
    of a form that was sent twice, one evaluation is made."""
    if request.method != "POST":
        return _show(request, _first(request), status=200)
    chosen = _chosen(request.POST)
    press = request.POST.get("press", "estimate")
    if press.startswith(_BOTH):
        base = press.removeprefix(_BOTH)
        chosen["modes"] = [mode for mode in (base, f"{base}_rerank") if mode in MODES] or chosen["modes"]
    try:
        body = _body(request.workspace, chosen)
        wanted = submissions.parse(body)
        if press != "run":
            return _show(request, chosen, status=200, estimate=estimates.of(request.workspace, wanted))
        made = idempotency.once(
            idempotency.Request(
                workspace=request.workspace,
                caller=f"user:{request.user.pk}",
                route="console evaluations",
                key=chosen["once"] or str(uuid.uuid4()),
                body_hash=idempotency.body_hash(body),
            ),
            lambda: Answer(status=302, body=str(evaluations.start(request.workspace, wanted, now=timezone.now()).id)),
            now=timezone.now(),
        )
    except NotFoundError as error:
        return _show(request, chosen, status=422, fault=_not_found(error))
    except faults.EXPECTED as error:
        return _show(request, chosen, status=faults.status_of(error), fault=error)
    return redirect("evaluation", evaluation_id=made.body)


def _first(request: PageRequest) -> dict[str, Any]:
    given = request.GET
    chosen = _empty()
    if given.get("like"):
        chosen |= _like(request.workspace, given["like"])
    if given.get("set"):
        chosen["question_set"] = given["set"]
    if given.get("base"):
        chosen["scope"] = f"base:{given['base']}"
    if given.get("cache") == "off":
        chosen["cache"] = False
    if given.get("wait"):
        chosen["wait_for_index"] = True
    return chosen


def _empty() -> dict[str, Any]:
    return {
        **dict.fromkeys(_TEXTS, ""),
        "modes": list(DEFAULT_MODES),
        "known": [],
        "configurations": "",
        "cache": True,
        "wait_for_index": False,
        "once": str(uuid.uuid4()),
    }


def _like(workspace: Workspace, key: str) -> dict[str, Any]:
    """What another evaluation was asked to be, as far as the form can say it."""
    row = queries.row(queries.get_evaluation(workspace, key), now=timezone.now())
    scope = row.scope
    base = f"base:{scope['knowledge_base']}" if scope.get("knowledge_base") else ""
    configurations = [_as_request(run.config) for run in row.runs if run.mode in MODES]
    plain = [one["mode"] for one in configurations if one.get("name") == one["mode"]]
    named = [one for one in configurations if one.get("name") != one["mode"]]
    return {
        "question_set": str(row.question_set.id or ""),
        "scope": base or ("workspace" if scope.get("workspace") else ""),
        "source": scope.get("source", "") or "",
        "collection": scope.get("collection", "") or "",
        "modes": plain,
        "configurations": json.dumps(named, indent=2) if named else "",
        "top_k": str(row.top_k),
        "k": ", ".join(map(str, row.ks)),
        "level": row.level,
        "primary_metric": row.primary_metric,
        "label": row.label,
        "cache": row.cache,
    }


def _as_request(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A run's configuration as a request says it."""
    asked = dict(stored)
    keyword = str(asked.get("keyword", ""))
    if keyword.startswith("fts("):
        asked |= {"keyword": "fts", "fts": keyword.removeprefix("fts(").removesuffix(")")}
    return asked


def _used_before(workspace: Workspace) -> list[tuple[str, dict[str, Any]]]:
    """Configurations with a name of their own that late runs had, newest first; by the id of such a run. One query."""
    late = runs.of(workspace).filter(kind=RunKind.SEARCHED).exclude(name=F("mode"))
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for key, config in late.values_list("id", "config")[:_MOST_LOOKED_AT]:
        if len(found) < _MOST_OFFERED and str(config.get("mode")) in MODES:
            found.setdefault(json.dumps(config, sort_keys=True), (str(key), _as_request(config)))
    return list(found.values())


def _chosen(form: QueryDict) -> dict[str, Any]:
    return {
        **{name: form.get(name, "").strip() for name in (*_TEXTS, "configurations", "once")},
        "modes": form.getlist("modes"),
        "known": form.getlist("known")[:_MOST_OFFERED],
        "cache": "cache" in form,
        "wait_for_index": "wait_for_index" in form,
    }


def _body(workspace: Workspace, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The body of `POST evaluations`. Raises ValidationError for what is no number or no JSON."""
    body: dict[str, Any] = {
        name: chosen[name] for name in ("question_set", "reranker", "level", "primary_metric", "label") if chosen[name]
    }
    body["cache"] = chosen["cache"]
    if chosen["wait_for_index"]:
        body["wait_for_index"] = True
    scope = chosen["scope"]
    where: dict[str, Any] = {"workspace": str(workspace.id)} if scope == "workspace" else {}
    if scope.startswith("base:"):
        where = {"knowledge_base": scope.removeprefix("base:")}
    body["scope"] = {**where, **{name: chosen[name] for name in ("source", "collection") if chosen[name]}}
    if not where:
        raise _invalid("Choose where to search.", "scope")
    body["modes"] = list(chosen["modes"])
    known = [_as_request(runs.get_run(workspace, key).config) for key in chosen["known"]]
    if chosen["configurations"]:
        known += _json(chosen["configurations"])
    if known:
        body["configurations"] = known
    elif not body["modes"]:
        raise _invalid("Choose at least one way of searching.", "modes")
    if chosen["top_k"]:
        body["top_k"] = _whole(chosen["top_k"], "top_k")
    if chosen["k"]:
        body["k"] = [_whole(one.strip(), "k") for one in chosen["k"].split(",") if one.strip()]
    return body


def _json(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        message = f"The configurations are no JSON: {getattr(error, 'msg', error)}."
        raise ValidationError(
            message,
            field="configurations",
            faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="configurations", line=line)],
        ) from error
    except RecursionError as error:
        raise _invalid("The configurations are nested too deeply.", "configurations") from error
    return found if isinstance(found, list) else [found]


def _whole(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise _invalid(f"{field} is a whole number, not {text[:40]!r}.", field)
    return int(text)


def _invalid(message: str, field: str) -> ValidationError:
    return ValidationError(
        message, field=field, faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=field)]
    )


def _not_found(error: NotFoundError) -> ValidationError:
    """Something the form names is gone, or was never there."""
    return ValidationError(error.message)


def _show(
    request: PageRequest,
    chosen: dict[str, Any],
    *,
    status: int,
    estimate: estimates.Estimate | None = None,
    fault: TouchstoneError | ProviderError | None = None,
) -> HttpResponse:
    bases = knowledge.base_rows(knowledge.bases_of(request.workspace)[:_MOST])
    sets = list(questions.sets_of(request.workspace)[:_MOST])
    if not chosen["question_set"] and len(sets) == 1:
        chosen["question_set"] = str(sets[0].id)
    if not chosen["scope"] and len(bases) == 1:
        chosen["scope"] = f"base:{bases[0].base.id}"
    context = {
        "chosen": chosen,
        "set_id": chosen["question_set"].partition("@")[0],
        "bases": bases,
        "sets": sets,
        "modes": [
            {"name": mode, "said": _SAID[mode], "is_chosen": mode in chosen["modes"]}
            for mode in (f"{base}{suffix}" for base in LEGS_OF for suffix in ("", "_rerank"))
        ],
        "known": [
            {"id": key, "name": config.get("name"), "said": config.get("mode"), "is_chosen": key in chosen["known"]}
            for key, config in _used_before(request.workspace)
        ],
        "pairs": list(LEGS_OF),
        "levels": [one.value for one in Level],
        "estimate": None if estimate is None else _told(estimate),
        "fault": None if fault is None else faults.shown(fault),
    }
    return render(request, "evaluations/new.html", context, status=status)


_SAID = {
    "semantic": "by meaning",
    "semantic_rerank": "by meaning, reranked",
    "keyword": "by words",
    "keyword_rerank": "by words, reranked",
    "hybrid": "both, fused",
    "hybrid_rerank": "both, fused, reranked",
}


def _told(estimate: estimates.Estimate) -> dict[str, Any]:
    parts = [*estimate.embedders, *estimate.rerankers]
    return {
        **{name: getattr(estimate, name) for name in ("n_questions", "n_runs", "n_searches", "minutes", "cost")},
        "currency": estimate.currency,
        "notes": estimate.notes,
        "n_calls": sum(part.n_calls for part in parts if not part.is_local),
        "parts": [
            {**asdict(part), "what": what}
            for what, some in (("embedder", estimate.embedders), ("reranker", estimate.rerankers))
            for part in some
        ],
    }
