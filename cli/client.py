"""The HTTP API as a Python class."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx

from cli import settings
from cli.errors import ApiError, ClientError, Fault, UnreachableError, UsageError

__all__ = ["ApiError", "Client", "ClientError", "Fault", "UnreachableError", "UsageError"]

Json = dict[str, Any]
FINAL_EVALUATIONS = frozenset({"completed", "failed", "cancelled"})
FINAL_INGESTIONS = frozenset({"completed", "failed", "cancelled"})
_JOBS = "/api/v1/jobs/"
_PAGE = 500
# An evaluation goes on while the page is started again: waiting for it survives this long without an answer.
_PATIENCE_SECONDS = 60.0
# Silence that is told. The first look that hangs ends after this long, any other after the client's own timeout.
_SILENT_SECONDS, _LOOK_SECONDS = 3.0, 5.0
# What stands for an answer while the service, or its database, is started again.
_AWAY = frozenset({502, 503, 504})
_Found = TypeVar("_Found")


class Client:
    """Talks to a Touchstone service. Values are those of the API (docs/http-api.md) as dictionaries.

    Without arguments it uses TOUCHSTONE_URL and TOUCHSTONE_TOKEN, else what `touchstone up` left in `.touchstone/`.
    Every call raises ApiError for a refusal and UnreachableError where nothing answers.

        with Client() as touchstone:
            base = touchstone.find_knowledge_base("handbook")
            started = touchstone.evaluate(question_set="golden", knowledge_base=base["id"], modes=["keyword", "hybrid"])
            for run in touchstone.wait(started["id"])["runs"]:
                print(run["name"], run["headline"])
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        found = settings.load()
        self.url = (url or found.url).rstrip("/")
        if token is None:
            token = found.token if url is None or self.url == found.url else ""
        self._guessed = url is None and found.guessed
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._timeout = httpx.Timeout(timeout, connect=min(timeout, 10.0))
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers=headers,
            timeout=self._timeout,
            transport=transport,
            # A proxy of the environment cannot reach this machine's own services.
            trust_env=not settings.is_local(self.url),
        )
        # Called with each job that a call waits for, at every look.
        self.on_job: Callable[[Json], Any] = lambda _job: None
        # Called with a sentence when the service stops answering a call that waits, and when it is back.
        self.on_silence: Callable[[str], Any] = lambda _sentence: None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # ---- any call
    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """An answer below 400; `path` is relative to /api/v1/."""
        try:
            response = self._http.request(method, path, **options)
        except httpx.TimeoutException as error:
            raise UnreachableError(f"{self.url} did not answer in time ({type(error).__name__}).") from error
        except httpx.UnsupportedProtocol as error:
            raise UsageError(f"{self.url} is no address: write http://HOST:PORT or https://HOST.") from error
        except httpx.TransportError as error:
            raise self._nothing_answers() from error
        if response.status_code >= 400:
            raise _problem(response)
        if response.is_redirect:
            raise ClientError(f"{self.url} sends callers elsewhere ({response.headers.get('Location')}): use that.")
        return response

    def get(self, path: str, **parameters: Any) -> Json:
        return _json(self.request("GET", path, params=_given(parameters)))

    def post(self, path: str, body: Any = None, *, once: bool = False) -> Json:
        """`once`: sent with an Idempotency-Key, and again where the answer was lost; it takes effect once."""
        headers = {"Idempotency-Key": str(uuid.uuid4())} if once else {}
        try:
            return _json(self.request("POST", path, json=body, headers=headers))
        except UnreachableError as error:
            if not once or isinstance(error.__cause__, httpx.ConnectError):
                raise
            return _json(self.request("POST", path, json=body, headers=headers))

    def pages(self, path: str, *, limit: int | None = None, **parameters: Any) -> Iterator[Json]:
        """The rows of a list, over all its pages, or the first `limit`."""
        left = limit
        cursor: str | None = None
        while left is None or left > 0:
            size = _PAGE if left is None else min(_PAGE, left)
            page = self.get(path, **parameters, limit=size, cursor=cursor)
            yield from page["results"]
            left = None if left is None else left - len(page["results"])
            if not page["next"]:
                return
            cursor = httpx.URL(page["next"]).params.get("cursor")

    def looks(self, look: Callable[[], _Found]) -> Iterator[_Found | None]:
        """What each look finds, for as long as the caller goes on, and None where nothing answered: a service that is
        started again is waited for. Raises UnreachableError once it is away for a minute."""
        pause, is_told = 0.2, False
        silent_since: float | None = None
        while True:
            began = time.monotonic()
            found = None
            if silent_since is None:
                self._http.timeout = httpx.Timeout(_LOOK_SECONDS)
            try:
                found = look()
            except (UnreachableError, ApiError) as error:
                if isinstance(error, ApiError) and error.status not in _AWAY:
                    raise
                silent_since = began if silent_since is None else silent_since
                silence = time.monotonic() - silent_since
                if silence > _PATIENCE_SECONDS:
                    raise UnreachableError(f"{error} Nothing has answered for {silence:.0f} s.") from error
                if silence >= _SILENT_SECONDS and not is_told:
                    is_told = True
                    self.on_silence(
                        f"The service does not answer ({error.__cause__ or error}); waiting for it, for up to"
                        f" {_PATIENCE_SECONDS:.0f} s."
                    )
            else:
                if is_told:
                    self.on_silence("The service answers again.")
                silent_since, is_told = None, False
            finally:
                self._http.timeout = self._timeout
            yield found
            time.sleep(pause)
            pause = min(pause * 1.2, 2.0)

    # ---- knowledge bases and documents
    def knowledge_bases(self) -> list[Json]:
        return list(self.pages("knowledge-bases"))

    def find_knowledge_base(self, name_or_id: str) -> Json | None:
        if _is_id(name_or_id):
            return self.get(f"knowledge-bases/{name_or_id}")
        return next(iter(self.get("knowledge-bases", name=name_or_id, limit=1)["results"]), None)

    def create_knowledge_base(self, name: str, *, settings: Mapping[str, Any] | None = None) -> Json:
        return self.post("knowledge-bases", _given({"name": name, "settings": settings}), once=True)

    def sources(self, base_id: str) -> list[Json]:
        return list(self.pages(f"knowledge-bases/{base_id}/sources"))

    def create_source(self, base_id: str, name: str, *, folder: str | None = None) -> Json:
        """An upload area, or with `folder` (an absolute path of the server) one that `sync` reads again."""
        body = {"name": name, "kind": "folder", "folder": folder} if folder else {"name": name}
        return self.post(f"knowledge-bases/{base_id}/sources", body, once=True)

    def sync(self, base_id: str, source_id: str) -> Json:
        return self.post(f"knowledge-bases/{base_id}/sources/{source_id}/sync")

    def documents(self, base_id: str, **filters: Any) -> Iterator[Json]:
        """By path; `state`, `source` (an id), `collection` and `path` narrow the list."""
        return self.pages(f"knowledge-bases/{base_id}/documents", **filters)

    def upload(
        self, base_id: str, files: Sequence[tuple[str, Path]], *, source: str = "", collection: str = ""
    ) -> Json:
        """Send some files, each with the path it shall have; answers before they are read."""
        with ExitStack() as opened:
            parts = [("file", (place.name, opened.enter_context(place.open("rb")))) for _, place in files]
            data = {"path": [path for path, _ in files], **_given({"source": source, "collection": collection})}
            return _json(self.request("POST", f"knowledge-bases/{base_id}/documents", data=data, files=parts))

    def delete_document(self, base_id: str, document_id: str) -> None:
        self.request("DELETE", f"knowledge-bases/{base_id}/documents/{document_id}")

    def ingestion(self, base_id: str, ingestion_id: str) -> Json:
        return self.get(f"knowledge-bases/{base_id}/ingestions/{ingestion_id}")

    def set_files(self, base_id: str) -> list[Json]:
        """The question-set files found in the base's sources."""
        return list(self.pages(f"knowledge-bases/{base_id}/set-files"))

    # ---- search
    def search(self, query: str, *, scope: Mapping[str, Any], **options: Any) -> Json:
        """`modes`, `top_k`, `level`, `reranker` as in the API."""
        return self.post("search", {"query": query, "scope": scope, **_given(options)})

    # ---- question sets
    def question_sets(self) -> list[Json]:
        return list(self.pages("question-sets"))

    def find_question_set(self, name_or_id: str) -> Json | None:
        if _is_id(name_or_id):
            return self.get(f"question-sets/{name_or_id}")
        return next(iter(self.get("question-sets", name=name_or_id, limit=1)["results"]), None)

    def upload_question_set(self, path: Path, *, name: str = "", format: str = "") -> str:  # noqa: A002  as in the API
        """A file becomes the set of that name (the file's unless given), or its next version. Returns `id@version`."""
        name = name or path.stem
        there = self.find_question_set(name)
        address = f"question-sets/{there['id']}/versions" if there else "question-sets"
        data = _given({"format": format, **({} if there else {"name": name})})
        with path.open("rb") as stream:
            made = _json(self.request("POST", address, data=data, files=[("file", (path.name, stream))]))
        return f"{there['id']}@{made['number']}" if there else f"{made['id']}@{made['version']['number']}"

    def questions(self, set_id: str, *, version: int | None = None) -> Iterator[Json]:
        """In file order, in the full form; of the latest version unless one is given."""
        if version is None:
            return self.pages(f"question-sets/{set_id}/questions")
        return self.pages(f"question-sets/{set_id}/versions/{version}/questions")

    def preflight(self, set_id: str, *, scope: Mapping[str, Any], version: int | None = None) -> Json:
        """What each label finds in a scope, before anything is searched; `findings` has those that find nothing."""
        body = _given({"scope": dict(scope), "version": version})
        return self._document(self.post(f"question-sets/{set_id}/preflight", body, once=True))

    def delete_question_set(self, set_id: str, *, force: bool = False) -> None:
        self.request("DELETE", f"question-sets/{set_id}", params={"force": "true"} if force else {})

    # ---- evaluations and runs
    def evaluate(
        self,
        *,
        question_set: str | None = None,
        file: str | None = None,
        knowledge_base: str | None = None,
        scope: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Json:
        """Submit; answers at once. `question_set` is an id or id@version, `file` a `<source>:<path>`; the rest
        (`modes`, `configurations`, `top_k`, `k`, `level`, `reranker`, `label`, …) as in `POST evaluations`."""
        where = dict(scope or {}) | _given({"knowledge_base": knowledge_base})
        body = _given({"question_set": question_set, "file": file, "scope": where, **options})
        return self.post("evaluations", body, once=True)

    def evaluation(self, evaluation_id: str) -> Json:
        return self.get(f"evaluations/{evaluation_id}")

    def evaluations(self, *, limit: int | None = None) -> Iterator[Json]:
        return self.pages("evaluations", limit=limit)

    def wait(
        self, evaluation_id: str, *, on_progress: Callable[[Json], Any] | None = None, seconds: float | None = None
    ) -> Json:
        """The evaluation once it has ended. `on_progress` gets it at every look. Raises TimeoutError."""
        give_up_at = None if seconds is None else time.monotonic() + seconds
        for found in self.looks(lambda: self.evaluation(evaluation_id)):
            if found is not None:
                if on_progress is not None:
                    on_progress(found)
                if found["state"] in FINAL_EVALUATIONS:
                    return found
            if give_up_at is not None and time.monotonic() > give_up_at:
                break
        raise TimeoutError(f"evaluation {evaluation_id} has not ended after {seconds:g} s")

    def cancel(self, evaluation_id: str) -> Json:
        return self.post(f"evaluations/{evaluation_id}/cancel")

    def retry(self, evaluation_id: str) -> Json:
        return self.post(f"evaluations/{evaluation_id}/retry")

    def runs(self, *, limit: int | None = 50, **filters: Any) -> Iterator[Json]:
        """Newest first; `knowledge_base`, `question_set` (ids), `mode` and `since` narrow the list."""
        return self.pages("runs", limit=limit, **filters)

    def run(self, run_id: str) -> Json:
        return self.get(f"runs/{run_id}")

    def results(self, run_id: str, **filters: Any) -> Iterator[Json]:
        """What became of each question; `outcome`, `tag`, `k` and `order` as in the API."""
        return self.pages(f"runs/{run_id}/results", **filters)

    def compare(self, baseline: str, candidates: Sequence[str], *, primary_metric: str | None = None) -> Json:
        body = {"baseline": baseline, "candidates": list(candidates), "primary_metric": primary_metric}
        return self._document(self.post("comparisons", _given(body), once=True))

    # ---- what runs by itself
    def schedules(self) -> list[Json]:
        return list(self.pages("schedules"))

    def find_schedule(self, name_or_id: str) -> Json | None:
        return _found(self.schedules(), name_or_id)

    def create_schedule(self, name: str, *, cron: str, evaluation: Mapping[str, Any], **options: Any) -> Json:
        """`evaluation` is the body of `POST evaluations`; `time_zone`, `grace_seconds`, `enabled` as in the API."""
        body = {"name": name, "cron": cron, "evaluation": dict(evaluation), **_given(options)}
        return self.post("schedules", body, once=True)

    def change_schedule(self, schedule_id: str, **changes: Any) -> Json:
        return _json(self.request("PATCH", f"schedules/{schedule_id}", json=changes))

    def delete_schedule(self, schedule_id: str) -> None:
        self.request("DELETE", f"schedules/{schedule_id}")

    def run_schedule(self, schedule_id: str) -> Json:
        """Outside its times; the answer names the evaluation."""
        return self.post(f"schedules/{schedule_id}/run-now", once=True)

    def history(self, schedule_id: str, *, limit: int | None = None) -> Iterator[Json]:
        """What came of each slot, the latest first."""
        return self.pages(f"schedules/{schedule_id}/history", limit=limit)

    def baselines(self, *, retired: bool = False) -> list[Json]:
        return list(self.pages("baselines", retired="true" if retired else None))

    def approve(self, run_id: str, *, label: str = "") -> Json:
        """Make a run the baseline of its set, scope and configuration name."""
        return self.post("baselines", _given({"run": run_id, "label": label}), once=True)

    def retire(self, baseline_id: str) -> None:
        self.request("DELETE", f"baselines/{baseline_id}")

    def gates(self) -> list[Json]:
        return list(self.pages("gates"))

    def find_gate(self, name_or_id: str) -> Json | None:
        return _found(self.gates(), name_or_id)

    def create_gate(self, name: str, rules: Sequence[Mapping[str, Any]], *, schedule: str | None = None) -> Json:
        return self.post("gates", _given({"name": name, "rules": list(rules), "schedule": schedule}), once=True)

    def check(self, **what: Any) -> Json:
        """Check a `run` or an `evaluation` by a `gate` or by `rules`; `baseline` and `include` as in the API."""
        return self.post("gates/check", _given(what))

    def dry_run(self, gate_id: str, *, limit: int = 20) -> list[Json]:
        """What a gate would have said of past evaluations, newest first."""
        return list(self.post(f"gates/{gate_id}/dry-run", {"limit": limit})["checks"])

    def alerts(self, *, state: str | None = None, limit: int | None = None) -> Iterator[Json]:
        return self.pages("alerts", limit=limit, state=state)

    def diagnosis(self, run_id: str, *, k: int | None = None) -> Json:
        """Where its questions were lost, over the set and by tag."""
        return self.get(f"runs/{run_id}/diagnosis", k=k)

    def advice(self, run_id: str) -> list[Json]:
        return list(self.get(f"runs/{run_id}/advice")["advice"])

    def slices(self, run_id: str, *, metrics: Sequence[str] = ()) -> Json:
        """Figures by tag, and those of the must-pass and of the unanswerable questions."""
        return self.get(f"runs/{run_id}/slices", metrics=",".join(metrics) or None)

    def arithmetic(self, run_id: str, question: str, *, metric: str | None = None) -> Json:
        """A metric of one question, term by term; the question by key, else by its number from 0."""
        return self.get(f"runs/{run_id}/results/{quote(question, safe='')}/arithmetic", metric=metric)

    def rescore(self, run_id: str, **rules: Any) -> Json:
        """A new run over the stored rankings; `version`, `level`, `threshold`, `top_k`, `k`, … as in the API."""
        return self._run_made(self.post(f"runs/{run_id}/rescore", _given(rules), once=True))

    def import_run(self, path: Path, *, question_set: str, **options: Any) -> Json:
        """Rankings of a file scored against a set (id or id@version); the options as in the API."""
        data = _given({"question_set": question_set, **options})
        with path.open("rb") as stream:
            made = self.request("POST", "runs/import", data=data, files=[("file", (path.name, stream))])
        return self._run_made(_json(made))

    def export(self, run_id: str, *, format: str = "json", baseline: str | None = None) -> bytes:  # noqa: A002  the name in the API
        params = _given({"format": format, "baseline": baseline})
        response = self.request("GET", f"runs/{run_id}/export", params=params)
        if _JOBS not in response.headers.get("Location", ""):
            return response.content
        return self.job_file(self.job_done(_json(response))["id"])

    # ---- jobs: what takes longer than a request
    def jobs(self, *, limit: int | None = 50, **filters: Any) -> Iterator[Json]:
        """Newest first; `kind` and `state` narrow the list."""
        return self.pages("jobs", limit=limit, **filters)

    def job(self, job_id: str) -> Json:
        return self.get(f"jobs/{job_id}")

    def job_file(self, job_id: str) -> bytes:
        """What a job made, where that is a file."""
        return self.request("GET", f"jobs/{job_id}/file").content

    def cancel_job(self, job_id: str) -> Json:
        return self.post(f"jobs/{job_id}/cancel")

    def job_done(self, job: Json) -> Json:
        """The job once it is completed. Raises ApiError, as the address that began it would have, where it failed."""
        job_id = job["id"]
        self.on_job(job)
        if not job["is_final"]:
            for found in self.looks(lambda: self.job(job_id)):
                if found is not None:
                    job = found
                    self.on_job(job)
                if job["is_final"]:
                    break
        if job["state"] != "completed":
            raise _failed_job(job)
        return job

    def _document(self, answered: Json) -> Json:
        """The answer itself, or the document of the job that was answered."""
        if not _is_job(answered):
            return answered
        found: Json = json.loads(self.job_file(self.job_done(answered)["id"]))
        return found

    def _run_made(self, answered: Json) -> Json:
        return self.run(self.job_done(answered)["result"]["run"]) if _is_job(answered) else answered

    def generate(self, knowledge_base: str, **options: Any) -> Json:
        """Begin to make questions from a base's documents; answers at once (`POST question-sets/generate`)."""
        wanted = {name: value for name, value in options.items() if value is not None and value != ""}
        return self.post("question-sets/generate", {"knowledge_base": knowledge_base, **wanted}, once=True)

    def generation(self, generation_id: str) -> Json:
        return self.get(f"generations/{generation_id}")

    def generation_done(self, generation_id: str, *, on_progress: Callable[[Json], Any] | None = None) -> Json:
        """The generation once its job has ended, however it ended: what was made is there in any case."""
        for made in self.looks(lambda: self.generation(generation_id)):
            if made is None:
                continue
            job = made["job"]
            if job is None or job["state"] in FINAL_EVALUATIONS:
                return made
            if on_progress is not None:
                on_progress(job)
        raise AssertionError("looks end by an error only")

    def drafts(self, generation_id: str, **filters: Any) -> Iterator[Json]:
        return self.pages(f"generations/{generation_id}/drafts", **filters)

    def review(self, draft_id: str, action: str, *, question: str | None = None, answer: str | None = None) -> Json:
        """`accept`, `reject` or `reopen`; another wording goes with accept."""
        return self.post(
            f"drafts/{draft_id}/review", _given({"action": action, "question": question, "answer": answer})
        )

    def put_into_set(self, generation_id: str, *, name: str = "", question_set: str = "") -> Json:
        """The accepted drafts, as a new set or as the next version of one."""
        body = {"name": name} if name else {"question_set": question_set}
        return self.post(f"generations/{generation_id}/question-set", body, once=True)

    def export_question_set(
        self,
        set_id: str,
        *,
        format: str = "full",  # noqa: A002  the name in the API
        version: int | None = None,
        lossy: bool = False,
    ) -> bytes:
        params = _given({"format": format, "version": version, "lossy": "true" if lossy else None})
        return self.request("GET", f"question-sets/{set_id}/export", params=params).content

    def ready(self) -> Json:
        """What the service lacks to do its work: `status` and `checks` of /readyz."""
        try:
            response = self._http.get(f"{self.url}/readyz")
        except httpx.TransportError as error:
            raise self._nothing_answers() from error
        # 503 says what is missing; anything else is no answer of ours.
        if response.status_code not in {200, 503} or "checks" not in (found := _json(response)):
            raise _problem(response)
        return found

    def _nothing_answers(self) -> UnreachableError:
        sentence = f"Nothing answers at {self.url}. Is `touchstone up` running?"
        if self._guessed:
            sentence += (
                " If it runs in another folder, run this there (there is no .touchstone/ with its address here or"
                " above), or set TOUCHSTONE_URL and TOUCHSTONE_TOKEN."
            )
        return UnreachableError(sentence)


def _given(values: Mapping[str, Any]) -> Json:
    """Without what was left out, so that the service's own defaults hold."""
    return {name: value for name, value in values.items() if value is not None and value != ""}


def _found(rows: Sequence[Json], name_or_id: str) -> Json | None:
    return next((row for row in rows if name_or_id in {row["id"], row["name"]}), None)


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _json(response: httpx.Response) -> Json:
    if response.status_code == 204 or not response.content:
        return {}
    try:
        found = response.json()
    except ValueError as error:
        raise ClientError(f"{response.url} did not answer with JSON: is this a Touchstone service?") from error
    if not isinstance(found, dict):
        raise ClientError(f"{response.url} did not answer as Touchstone does.")
    return found


def _is_job(answered: Json) -> bool:
    """Jobs alone tell how much of what is done; what they are begun for does not."""
    return {"kind", "is_final", "n_done", "n_total"} <= set(answered)


def _failed_job(job: Json) -> ApiError:
    faults = [
        Fault(
            code=str(fault.get("code", "")),
            detail=str(fault.get("detail", "")),
            line=fault.get("line"),
            field=fault.get("field"),
        )
        for fault in job["errors"]
    ]
    detail = job["reason"] or f"The job {job['id']} was {job['state']}."
    return ApiError(detail, status=422, code=job["code"] or "CONFLICT", faults=faults, n_faults=len(faults))


def _problem(response: httpx.Response) -> ApiError:
    """RFC 9457, or whatever stands between us and the service."""
    try:
        body = json.loads(response.content)
    except ValueError:
        body = {}
    if not isinstance(body, dict) or "detail" not in body:
        detail = f"{response.url} answered {response.status_code} {response.reason_phrase}.".replace(" .", ".")
        return ApiError(detail, status=response.status_code, code="HTTP")
    faults = [
        Fault(
            code=str(fault.get("code", "")),
            detail=str(fault.get("detail", "")),
            line=fault.get("line"),
            field=fault.get("field"),
        )
        for fault in body.get("errors") or ()
    ]
    return ApiError(
        str(body["detail"]),
        status=response.status_code,
        code=str(body.get("code", "HTTP")),
        faults=faults,
        n_faults=int(body.get("n_errors", 0)),
        request_id=str(body.get("request_id", "")),
    )
