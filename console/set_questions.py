"""Single questions of a set: added, also from a search, changed, taken out. Each makes a new version."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from backend.core.errors import ValidationError
from backend.models import QuestionSet, Scope
from backend.queries import questions
from backend.services import question_sets
from console import confirming, faults, question_form
from console.access import PageRequest, page
from console.confirming import Asking

_MOST_EXPECTED = 50
# What the service calls the only question that it is given.
_ITEM = "questions[0]."


@page(Scope.WRITE)
def begin(request: PageRequest) -> HttpResponse:
    """From a search, where the set is chosen last: on to the set's own form, with all that was said."""
    key = request.GET.get("set", "")
    if not key:
        raise ValidationError("Choose the set that the question goes to.", field="set")
    found = questions.get_set(request.workspace, key)
    kept = [(name, value) for name, values in request.GET.lists() if name != "set" for value in values]
    return redirect(f"{reverse('set-question-new', args=[found.id])}?{urlencode(kept)}")


@page(Scope.WRITE, post=Scope.WRITE)
def new(request: PageRequest, set_id: str) -> HttpResponse:
    found = questions.get_set(request.workspace, set_id)
    form = question_form.empty(
        question=request.GET.get("question", ""), expected=request.GET.getlist("expected")[:_MOST_EXPECTED]
    )
    if request.method == "POST":
        form = question_form.typed(request.POST)
        try:
            version = question_sets.add_questions(found, [question_form.read(form)])
        except faults.EXPECTED as error:
            return _shown(request, found, form, error=error)
        messages.success(request, f"Added. Version {version.number} has {version.n_questions:,} questions.")
        return redirect("set-question-new" if request.POST.get("again") else "set", found.id)
    return _shown(request, found, form)


@page(Scope.WRITE, post=Scope.WRITE)
def change(request: PageRequest, set_id: str, question_key: str) -> HttpResponse:
    found = questions.get_set(request.workspace, set_id)
    question = questions.get_question(questions.get_version(found), question_key)
    form = question_form.filled(questions.full_form(question))
    if request.method == "POST":
        form = question_form.typed(request.POST)
        try:
            version = question_sets.change_question(found, question_key, question_form.read(form))
        except faults.EXPECTED as error:
            return _shown(request, found, form, key=question_key, error=error)
        messages.success(request, f"Changed: version {version.number}.")
        return redirect("set", found.id)
    return _shown(request, found, form, key=question_key)


@page(Scope.WRITE, post=Scope.WRITE)
def delete(request: PageRequest, set_id: str, question_key: str) -> HttpResponse:
    found = questions.get_set(request.workspace, set_id)
    question = questions.get_question(questions.get_version(found), question_key)
    asking = Asking(
        title="Take this question out?",
        sentence=question.text,
        note="A new version without it is made; the earlier ones keep it, and so do their runs.",
        verb="Take it out",
        done="Taken out.",
        crumbs=[("Question sets", "sets", ()), (found.name, "set", (found.id,))],
        then=("set", (found.id,)),
        is_undoable=True,
    )
    return confirming.asked(request, asking, lambda: question_sets.delete_questions(found, [question_key]))


def _shown(
    request: PageRequest, found: QuestionSet, form: dict[str, Any], *, key: str = "", error: Any = None
) -> HttpResponse:
    fault = faults.shown(error, inside=_ITEM) if error is not None else None
    if fault is not None and "expected" in fault.by_field:  # the service's name for what is not there
        fault = replace(fault, by_field={"expect": fault.by_field["expected"], **fault.by_field})
    return render(
        request,
        "sets/question.html",
        {"set": found, "form": form, "key": key, "fault": fault},
        status=200 if error is None else faults.status_of(error),
    )
