"""Question sets: all of them, a new one, a set's questions, its versions and their difference, its check, its end."""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from backend.core.errors import ErrorCode, Fault, NotFoundError, QuestionSetError, ValidationError
from backend.core.question_sets import format_names
from backend.core.states import JobKind
from backend.models import Question, QuestionSet, QuestionSetVersion, Scope
from backend.queries import jobs, knowledge, last_ranks, lookups, questions, set_changes
from backend.services import long_jobs, preflight, question_sets, scopes
from console import faults, paging, question_form
from console.access import PageRequest, page

N_SETS, N_QUESTIONS, N_FILES = 50, 50, 50
N_FINDINGS = 200
_EXCERPT = 300


@page()
def every(request: PageRequest) -> HttpResponse:
    return render(
        request,
        "sets/list.html",
        {
            "rows": paging.cut(request, questions.sets_of(request.workspace), limit=N_SETS),
            "files": list(questions.set_files_in(request.workspace)[:N_FILES]),
        },
    )


@page(Scope.WRITE, post=Scope.WRITE)
def new(request: PageRequest) -> HttpResponse:
    """From a file or from text. A set that is refused is shown with its faults at their lines."""
    return _take(request, None)


@page(Scope.WRITE, post=Scope.WRITE)
def new_version(request: PageRequest, set_id: str) -> HttpResponse:
    return _take(request, questions.get_set(request.workspace, set_id))


@page(None, post=Scope.WRITE)
def from_file(request: PageRequest) -> HttpResponse:
    """A file found in a source becomes a set, or is found again as the one it became; then on to it, or to its
    evaluation."""
    key = request.POST.get("file", "")
    if not key:
        raise ValidationError("Name the file.", field="file")
    file = lookups.get(questions.set_files_in(request.workspace), key, what="question-set file")
    version = question_sets.resolve(
        request.workspace, file=f"{file.source.name}:{file.path}", knowledge_base=file.source.knowledge_base
    )
    if request.POST.get("then") == "evaluate":
        chosen = {"set": str(version.question_set_id), "base": str(file.source.knowledge_base_id), "wait": "1"}
        return redirect(f"{reverse('evaluation-new')}?{urlencode(chosen)}")
    return redirect("set", version.question_set_id)


@page()
def one(request: PageRequest, set_id: str) -> HttpResponse:
    """The questions of a version (the latest unless `version` names one), with their last rank in each mode."""
    found = questions.get_set(request.workspace, set_id)
    version = questions.get_version(found, request.GET.get("version") or None)
    wanted = {name: request.GET.get(name, "") for name in ("tag", "text")}
    rows = questions.questions_of(version, tag=wanted["tag"])
    if wanted["text"]:
        rows = rows.filter(text__icontains=wanted["text"])
    cut = paging.cut(request, rows, order=("ordinal",), limit=N_QUESTIONS)
    ranks = last_ranks.of(found, [question.key for question in cut.rows])
    known = preflight.known(version, cut.rows)
    return render(
        request,
        "sets/questions.html",
        {
            **head(found),
            "version": version,
            "is_latest": version.number == getattr(found, "latest_number", None),
            "rows": cut,
            "shown": [_shown(question, ranks, known) for question in cut.rows],
            "known": known,
            "ranks": ranks,
            "tags": questions.tags_of(version),
            "wanted": wanted,
        },
    )


@page()
def versions(request: PageRequest, set_id: str) -> HttpResponse:
    """All versions; with `from` and `to` what differs between two of them."""
    found = questions.get_set(request.workspace, set_id)
    rows = paging.cut(request, questions.versions_of(found), order=("-number",), limit=20)
    context: dict[str, Any] = {**head(found), "rows": rows}
    if request.GET.get("from") and request.GET.get("to"):
        before = questions.get_version(found, request.GET["from"])
        after = questions.get_version(found, request.GET["to"])
        context |= {"before": before, "after": after, "difference": set_changes.between(before, after)}
    return render(request, "sets/versions.html", context)


@page(post=Scope.READ)
def check(request: PageRequest, set_id: str) -> HttpResponse:
    """What the set's labels find in a base, before a run. Of a large set by a job, which POST begins."""
    found = questions.get_set(request.workspace, set_id)
    version = questions.get_version(found)
    bases = list(knowledge.bases_of(request.workspace).filter(live_index__isnull=False)[:100])
    given = request.POST if request.method == "POST" else request.GET
    key = given.get("base") or (str(bases[0].id) if len(bases) == 1 else "")
    is_long = long_jobs.is_long(version.n_questions)
    context: dict[str, Any] = {**head(found), "version": version, "bases": bases, "chosen": key, "is_long": is_long}
    try:
        if request.method == "POST":
            return _begin_check(request, version, key, is_long=is_long)
        if given.get("job"):
            context |= _checked_by(request, given["job"])
        elif key and not is_long:
            report = preflight.run(request.workspace, version, {"knowledge_base": key})
            context |= _findings(long_jobs.preflight_as_json(report))
    except faults.EXPECTED as error:
        if error.code == ErrorCode.NOT_FOUND:
            raise
        context["fault"] = faults.shown(error)
        return render(request, "sets/check.html", context, status=faults.status_of(error))
    return render(request, "sets/check.html", context)


@page(Scope.WRITE, post=Scope.WRITE)
def delete(request: PageRequest, set_id: str) -> HttpResponse:
    found = questions.get_set(request.workspace, set_id)
    context: dict[str, Any] = {"set": found}
    if request.method == "POST":
        try:
            question_sets.delete(found, force=bool(request.POST.get("force")))
        except faults.EXPECTED as error:
            context |= {"fault": faults.shown(error), "is_used": True}
            return render(request, "sets/delete.html", context, status=faults.status_of(error))
        messages.success(request, f"{found.name} is gone. Its runs stay in the history.")
        return redirect("sets")
    return render(request, "sets/delete.html", context)


def head(found: QuestionSet) -> dict[str, Any]:
    return {"set": found}


def _shown(question: Question, ranks: last_ranks.LastRanks, known: preflight.Known) -> dict[str, Any]:
    return {
        "question": question,
        "findings": known.findings.get(question.ordinal, ()),
        "expected": [question_form.said(entry) for entry in question.expect],
        "ranks": ranks.by_key.get(question.key, ()),
    }


def _begin_check(request: PageRequest, version: QuestionSetVersion, key: str, *, is_long: bool) -> HttpResponse:
    if not key:
        raise ValidationError("Choose the knowledge base to check against.", field="base")
    scope = {"knowledge_base": key}
    scopes.resolve(request.workspace, scope)
    wanted = {"base": key}
    if is_long:
        job = long_jobs.start_preflight(request.workspace, version, scope, created_by=f"user:{request.user.pk}")
        wanted["job"] = str(job.id)
    return redirect(f"{reverse('set-check', args=[version.question_set_id])}?{urlencode(wanted)}")


def _checked_by(request: PageRequest, key: str) -> dict[str, Any]:
    job = jobs.look(request.workspace, key)
    if job.kind != JobKind.PREFLIGHT:
        raise NotFoundError("check", key[:60])
    if job.file is None:
        return {"job": job}
    return _findings(json.loads(jobs.file_of(request.workspace, job.id)[1]))


def _findings(report: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "report": report,
        "n_warnings": report["n_findings"] - report["n_errors"],
        "findings": report["findings"][:N_FINDINGS],
        "n_hidden": max(0, report["n_findings"] - N_FINDINGS),
    }


def _take(request: PageRequest, found: QuestionSet | None) -> HttpResponse:
    """A new set, or a new version of one."""
    context: dict[str, Any] = {
        "set": found,
        "formats": format_names(),
        "form": {name: request.POST.get(name, "") for name in ("name", "format", "text")},
    }
    if request.method != "POST":
        return render(request, "sets/new.html", context)
    data = b""
    try:
        data, filename = _given(request)
        given: dict[str, Any] = {"data": data, "filename": filename, "format": context["form"]["format"] or None}
        if found is None:
            name = context["form"]["name"].strip() or PurePath(filename).stem
            version = question_sets.create(request.workspace, name=name, **given)
        else:
            version = question_sets.add_version(found, **given)
    except faults.EXPECTED as error:
        shown = faults.shown(error)
        context |= {"fault": shown, "lines": _excerpts(shown, data)}
        return render(request, "sets/new.html", context, status=faults.status_of(error))
    _tell(request, found, version)
    return redirect("set", version.question_set_id)


def _given(request: HttpRequest) -> tuple[bytes, str]:
    """The file's bytes and name, or the text's."""
    file = request.FILES.get("file")
    if file is not None:
        if file.size is not None and file.size > settings.MAX_SET_BYTES:
            message = (
                f"The file has {file.size:,} bytes; the limit is {settings.MAX_SET_BYTES / (1024 * 1024):,.6g} MiB."
            )
            raise QuestionSetError([Fault(code=ErrorCode.EVAL_TOO_LARGE, message=message)])
        return file.read(), str(file.name or "")
    text = request.POST.get("text", "")
    if not text.strip():
        raise ValidationError("Choose a file, or write the questions down.", field="file")
    return text.replace("\r\n", "\n").encode(), "questions"


def _excerpts(shown: faults.Shown, data: bytes) -> list[dict[str, Any]]:
    """The faulty lines of a file as they stand in it, each with its faults."""
    wanted = sorted({fault.line for fault in shown.rows if fault.line is not None})
    if not wanted or b"\x00" in data:
        return []
    lines = data.decode("utf-8-sig", "replace").splitlines()
    return [
        {
            "number": number,
            "text": lines[number - 1][:_EXCERPT],
            "is_cut": len(lines[number - 1]) > _EXCERPT,
            "faults": [fault for fault in shown.rows if fault.line == number],
        }
        for number in wanted
        if 0 < number <= len(lines)
    ]


def _tell(request: HttpRequest, found: QuestionSet | None, version: Any) -> None:
    latest = getattr(found, "latest_number", None)
    if found is not None and version.number == latest:
        messages.info(request, f"These are the questions of version {version.number}: no new version was made.")
        return
    messages.success(request, f"Version {version.number} has {version.n_questions:,} questions.")
    for warning in version.warnings[:10]:
        messages.warning(request, str(warning))
