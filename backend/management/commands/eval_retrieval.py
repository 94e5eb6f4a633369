"""`manage.py eval_retrieval`: evaluate search modes with a question set, through the same queue as the API."""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from backend.core.errors import NotFoundError, TouchstoneError, ValidationError
from backend.core.states import Lane
from backend.core.types import Level
from backend.management import following
from backend.models import Document, Evaluation, KnowledgeBase, QuestionSet, QuestionSetVersion, Workspace
from backend.queries import pulses
from backend.queries.evaluations import EvaluationDetail
from backend.queries.lookups import as_uuid, get
from backend.services import evaluations, preflight, question_sets, submissions
from touchstone import rules, tables
from touchstone.rules import Rule, RuleError

MODES = "semantic,keyword,hybrid,hybrid_rerank"
_EXAMPLES = """examples:
  python manage.py eval_retrieval golden.json --knowledge-base 0192f0c0-11aa-7f00-8000-000000000001
  python manage.py eval_retrieval evals.jsonl --workspace ID --modes keyword,hybrid --top-k 5
  python manage.py eval_retrieval handbook:.touchstone/handbook.jsonl --knowledge-base ID --json
  python manage.py eval_retrieval golden.json --knowledge-base ID --fail-under 'hybrid:mrr@10=0.70'

exit codes: 0 done or passed, 1 could not run, 2 wrong usage, 3 a rule broke, 4 only questions failed, 130 interrupted
"""


class Command(BaseCommand):
    help = "Evaluate search modes with a question set, in the background workers, and print both tables."

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **options)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = _EXAMPLES
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "questions", nargs="?", help="a file, <source>:<path> of a file found in a source, or a set's id[@version]"
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--workspace", metavar="ID", help="search every ready knowledge base of this workspace")
        where.add_argument("--knowledge-base", metavar="ID", help="search this knowledge base")
        where.add_argument("--documents", metavar="ID,ID", help="search only these documents")
        parser.add_argument("--source", default="", help="only what comes from this source")
        parser.add_argument("--collection", default="", help="only this collection")
        parser.add_argument("--modes", default=MODES, help=f"separated by commas ({MODES})")
        parser.add_argument("--top-k", type=int, metavar="N", help="how many results are judged (10)")
        parser.add_argument("--level", choices=[level.value for level in Level], help="instead of the set's own")
        parser.add_argument("--reranker", default="", help="for the _rerank modes, such as http:NAME")
        parser.add_argument("--no-cache", action="store_true", help="ask, embed and rerank again what is known already")
        parser.add_argument("--label", default="", help="a note kept with the runs")
        parser.add_argument("--follow", metavar="ID", help="wait for this evaluation instead of starting one")
        parser.add_argument("--json", action="store_true", help="print JSON in the shape of the API")
        parser.add_argument("--wait", action=argparse.BooleanOptionalAction, default=True, help="wait for the end")
        parser.add_argument(
            "--fail-under",
            action="append",
            default=[],
            metavar="RULE",
            help="end with 3 below it: 'mrr@10=0.70' for every mode, 'hybrid:mrr@10=0.70' for one; may be repeated",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            wanted = [rules.parse(text) for text in options["fail_under"]]
            if wanted and not options["wait"]:
                self._usage("--fail-under needs --wait: without the end there is nothing to check.")
            workspace, evaluation_id = self._begun(options, wanted)
            told = following.detail(workspace, evaluation_id)
            rules.check_modes(wanted, [run.name for run in told.evaluation.runs])
        except RuleError as error:
            self._usage(str(error))
        except ValidationError as error:
            self._usage(following.faults(error))
        except TouchstoneError as error:
            self._end(following.faults(error), rules.COULD_NOT_RUN)
        needed = _lanes(told)
        if not options["wait"]:
            self._say_missing(needed)
            self._say(following.as_json(told, with_results=False) if options["json"] else self._how(evaluation_id))
            return
        if not told.evaluation.is_final:
            self._say_missing(needed)
        try:
            if not options["follow"]:
                self._say_unmet(workspace, evaluation_id)
            told = following.follow(
                workspace, [evaluation_id], stream=sys.stderr, say=self.stderr.write, needed=needed
            )[0]
        except KeyboardInterrupt:
            self._end(f"The evaluation goes on. {self._how(evaluation_id)}", rules.INTERRUPTED)
        self._tell(told, wanted, as_json=options["json"])

    def _begun(self, options: dict[str, Any], wanted: list[Rule]) -> tuple[Workspace, UUID]:
        """The evaluation to follow, started where none is named."""
        if options["follow"]:
            if options["questions"]:
                self._usage("Name a question set or --follow, not both.")
            return _workspace_of_evaluation(options["follow"])
        if not options["questions"]:
            self._usage("Name a question-set file. --help shows examples.")
        found = _scope(options)
        if found is None:
            there = ", ".join(f"{base.id} ({base.name})" for base in KnowledgeBase.objects.order_by("-id")[:10])
            self._usage(
                "Say where to search: --knowledge-base ID, --workspace ID or --documents ID,ID. "
                f"Knowledge bases: {there or 'none yet; `touchstone ingest` makes one'}."
            )
        workspace, scope = found
        modes = [mode.strip() for mode in options["modes"].split(",") if mode.strip()]
        rules.check_modes(wanted, rules.run_names(modes))
        body = {
            **_questions(workspace, options["questions"]),
            "scope": scope,
            "modes": modes,
            "top_k": options["top_k"],
            "k": rules.cutoffs(wanted, top_k=options["top_k"]),
            "primary_metric": rules.unusual_metric(wanted),
            "level": options["level"],
            "reranker": options["reranker"],
            "cache": not options["no_cache"],
            "label": options["label"],
        }
        request = submissions.parse({name: value for name, value in body.items() if value is not None and value != ""})
        return workspace, evaluations.start(workspace, request, now=timezone.now()).id

    def _tell(self, told: EvaluationDetail, wanted: list[Rule], *, as_json: bool) -> None:
        runs = following.run_values(told)
        self._say(following.as_json(told, with_results=True) if as_json else following.shown(told))
        if not as_json and (reused := tables.taken_over(runs)):
            self._say(f"\n{reused}")
        try:
            rules.check_metrics(wanted, runs)
        except RuleError as error:
            self._usage(str(error))
        for sentence in rules.broken(wanted, runs):
            self.stderr.write(f"rule broken: {sentence}")
        code = rules.exit_code(wanted, {"state": told.evaluation.state, "runs": runs})
        if code == rules.NOT_COVERED:
            for sentence in rules.uncovered(runs):
                self.stderr.write(sentence)
        if code:
            sys.exit(code)

    def _say(self, text: str) -> None:
        self.stdout.write(text)

    def _say_unmet(self, workspace: Workspace, evaluation_id: UUID) -> None:
        """Labels that nothing can satisfy. A wrong path looks like a bad search otherwise: every mode misses it."""
        submitted = Evaluation.objects.select_related("question_set_version").get(workspace=workspace, id=evaluation_id)
        if submitted.question_set_version is None:
            return
        try:
            report = preflight.run(workspace, submitted.question_set_version, submitted.scope)
        except TouchstoneError:
            # It could still become searchable (an Index that is being built); the figures do not depend on this.
            return
        for sentence in following.unmet(report):
            self.stderr.write(sentence)

    def _say_missing(self, needed: list[Lane]) -> None:
        missing = pulses.silent_lanes(needed)
        if missing:
            names = ", ".join(missing)
            self.stderr.write(f"No worker has shown life in the last minute ({names}). {following.START_WORKERS}")

    def _how(self, evaluation_id: UUID) -> str:
        return f"Follow it with: python manage.py eval_retrieval --follow {evaluation_id}"

    def _usage(self, sentence: str) -> NoReturn:
        self._end(sentence, rules.WRONG_USAGE)

    def _end(self, sentence: str, code: int) -> NoReturn:
        self.stderr.write(sentence)
        sys.exit(code)


def _scope(options: dict[str, Any]) -> tuple[Workspace, dict[str, Any]] | None:
    """The workspace that the named thing is in, and the request's scope; None where nothing was named."""
    narrowed = {name: options[name] for name in ("source", "collection") if options[name]}
    if options["knowledge_base"]:
        base = get(KnowledgeBase.objects.select_related("workspace"), options["knowledge_base"], what="knowledge base")
        return base.workspace, {"knowledge_base": str(base.id), **narrowed}
    if options["workspace"]:
        workspace = get(Workspace.objects.all(), options["workspace"], what="workspace")
        return workspace, {"workspace": str(workspace.id), **narrowed}
    if options["documents"]:
        ids = [part.strip() for part in options["documents"].split(",") if part.strip()]
        document = get(
            Document.objects.select_related("knowledge_base__workspace"), ids[0] if ids else "", what="document"
        )
        return document.knowledge_base.workspace, {"documents": ids, **narrowed}
    return None


def _questions(workspace: Workspace, name: str) -> dict[str, str]:
    """The request's field for what was named: a file of this machine becomes a set of its name, or its next version."""
    path = Path(name)
    if path.is_file():
        version = _stored(workspace, path)
        return {"question_set": f"{version.question_set_id}@{version.number}"}
    try:
        as_uuid(name.partition("@")[0], what="question set")
    except NotFoundError:
        if ":" in name:
            return {"file": name}
        raise NotFoundError("question-set file", name) from None
    return {"question_set": name}


def _stored(workspace: Workspace, path: Path) -> QuestionSetVersion:
    there = QuestionSet.objects.filter(workspace=workspace, name=path.stem).first()
    if there is None:
        return question_sets.create(workspace, name=path.stem, data=path.read_bytes(), filename=path.name)
    return question_sets.add_version(there, data=path.read_bytes(), filename=path.name)


def _workspace_of_evaluation(key: str) -> tuple[Workspace, UUID]:
    evaluation_id = as_uuid(key, what="evaluation")
    workspace = Workspace.objects.filter(evaluations=evaluation_id).first()
    if workspace is None:
        raise NotFoundError("evaluation", key)
    return workspace, evaluation_id


def _lanes(told: EvaluationDetail) -> list[Lane]:
    waits = any(run.mode.endswith("_rerank") for run in told.evaluation.runs)
    return [Lane.CONTROL, Lane.SEARCH, *([Lane.PROVIDER] if waits else [])]
