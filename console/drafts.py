"""Questions made from documents: begun, followed, reviewed one after another, and put into a question set."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from backend.core import languages
from backend.core.errors import ValidationError
from backend.core.generation import local
from backend.core.generation.kinds import DraftState, QuestionKind
from backend.core.states import JobState
from backend.models import Draft, Generation, Scope
from backend.queries import generation as queries
from backend.queries import knowledge, questions
from backend.services import drafts, generation
from console import faults, paging
from console.access import PageRequest, page

N_GENERATIONS, N_DRAFTS, N_BASES, N_SETS = 50, 50, 100, 100
_UNDER_WAY = frozenset({JobState.QUEUED, JobState.RUNNING, JobState.CANCELLING})


@page()
def every(request: PageRequest) -> HttpResponse:
    """All askings, how each wording did, and the way to a new one."""
    rows = paging.cut(request, queries.of(request.workspace), limit=N_GENERATIONS)
    return render(
        request,
        "drafts/list.html",
        {"rows": rows, "shown": [queries.row(one) for one in rows.rows], "rates": queries.rates(request.workspace)},
    )


@page(Scope.WRITE, post=Scope.WRITE)
def new(request: PageRequest) -> HttpResponse:
    bases = list(knowledge.bases_of(request.workspace).filter(live_index__isnull=False)[:N_BASES])
    form: dict[str, Any] = {
        "knowledge_base": request.GET.get("base", ""),
        "sample_size": generation.DEFAULT_SAMPLE,
        "llm": settings.LLM,
        "seed": 0,
    }
    context: dict[str, Any] = {
        "bases": bases,
        "kinds": [kind.value for kind in QuestionKind],
        "languages": languages.NAMES,
        "form": form,
    }
    if request.method == "POST":
        form |= {name: str(value).strip() for name, value in request.POST.items()}
        form["kinds"] = request.POST.getlist("kinds")
        try:
            wanted = generation.parse(_body(form))
            made = generation.start(request.workspace, wanted, created_by=f"user:{request.user.id}")
        except faults.EXPECTED as error:
            return render(
                request, "drafts/new.html", {**context, "fault": faults.shown(error)}, status=faults.status_of(error)
            )
        return redirect("generation", made.id)
    return render(request, "drafts/new.html", context)


def _body(form: dict[str, Any]) -> dict[str, Any]:
    """The form as the API would be sent it; what is no number is left as it is, to be told."""
    body = {
        name: form.get(name, "") for name in ("knowledge_base", "source", "collection", "language", "llm", "prompt")
    }
    for name in ("sample_size", "seed"):
        text = str(form.get(name, ""))
        body[name] = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text or None
    return {**body, "kinds": form["kinds"] or None}


@page()
def one(request: PageRequest, generation_id: str) -> HttpResponse:
    made = queries.get_generation(request.workspace, generation_id)
    state = request.GET.get("state", "")
    rows = paging.cut(
        request,
        queries.drafts_of(made, state=state if state in set(DraftState) else ""),
        order=("ordinal",),
        limit=N_DRAFTS,
    )
    return render(
        request,
        "drafts/generation.html",
        {
            **_head(made),
            "rows": rows,
            "state": state,
            "states": [one.value for one in DraftState],
            "sets": list(questions.sets_of(request.workspace)[:N_SETS]),
        },
    )


@page()
def progress(request: PageRequest, generation_id: str) -> HttpResponse:
    return render(request, "drafts/progress.html", _head(queries.get_generation(request.workspace, generation_id)))


def _head(made: Generation) -> dict[str, Any]:
    row = queries.row(made)
    under_way = made.job is not None and made.job.state in _UNDER_WAY
    return {
        "made": made,
        "row": row,
        "is_local": made.llm == local.SPEC,
        "is_under_way": under_way,
        "can_retry": not under_way and bool(row.counts["open"] or row.counts["failed"] or made.drawn_at is None),
        "n_waiting": made.drafts.filter(state=DraftState.ACCEPTED, question_key="").count(),
    }


@page(None, post=Scope.WRITE)
def cancel(request: PageRequest, generation_id: str) -> HttpResponse:
    generation.cancel(request.workspace, generation_id)
    return redirect("generation", generation_id)


@page(None, post=Scope.WRITE)
def retry(request: PageRequest, generation_id: str) -> HttpResponse:
    generation.retry(request.workspace, generation_id, created_by=f"user:{request.user.id}")
    return redirect("generation", generation_id)


@page(None, post=Scope.WRITE)
def put(request: PageRequest, generation_id: str) -> HttpResponse:
    """The accepted drafts into a new set, or into one there is."""
    queries.get_generation(request.workspace, generation_id)
    version = drafts.put_into_set(
        request.workspace,
        generation_id,
        name=request.POST.get("name", "").strip(),
        question_set=request.POST.get("question_set", "").strip() if not request.POST.get("name", "").strip() else "",
    )
    messages.success(request, f"{version.question_set.name} has {version.n_questions} questions now.")
    return redirect("set", version.question_set_id)


@page(Scope.READ, post=Scope.WRITE)
def review(request: PageRequest, generation_id: str) -> HttpResponse:
    """One draft; a decision leads to the next. `draft` names one, else the first that waits."""
    made = queries.get_generation(request.workspace, generation_id)
    if request.method == "POST":
        return _decide(request, made)
    wanted = request.GET.get("draft", "")
    draft = queries.get_draft(request.workspace, wanted) if wanted else drafts.next_pending(made)
    if draft is not None and draft.generation_id != made.id:
        raise ValidationError("This draft is of another generation.", field="draft")
    return render(request, "drafts/review.html", _review(made, draft))


def _review(made: Generation, draft: Draft | None) -> dict[str, Any]:
    counts = queries.row(made).counts
    return {
        "made": made,
        "draft": draft,
        "counts": counts,
        "n_pending": counts["pending"],
        "n_decided": counts["accepted"] + counts["rejected"],
        "following": None if draft is None else drafts.next_pending(made, after=draft.ordinal),
    }


def _decide(request: PageRequest, made: Generation) -> HttpResponse:
    draft = queries.get_draft(request.workspace, request.POST.get("draft", ""))
    action = request.POST.get("action", "")
    if action != "skip":
        edited = {name: request.POST[name] for name in ("question", "answer") if name in request.POST}
        try:
            drafts.review(
                request.workspace,
                draft.id,
                action=action,
                reviewer=f"user:{request.user.id}",
                now=timezone.now(),
                **(edited if action == "accept" else {}),
            )
        except faults.EXPECTED as error:
            context = {**_review(made, draft), "fault": faults.shown(error), "form": edited}
            return render(request, "drafts/review.html", context, status=faults.status_of(error))
    following = drafts.next_pending(made, after=draft.ordinal)
    where = reverse("review", args=[made.id])
    if following is None or (action == "skip" and following.id == draft.id):
        return redirect("generation", made.id)
    return redirect(f"{where}?draft={following.id}")
