"""What an evaluation is asked to be: the request, what it names, and by what it is measured. Nothing is written here,
but a set file is read into its set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from backend.core import configs, metric_keys
from backend.core.configs import RetrievalConfig, fingerprint
from backend.core.errors import TouchstoneError, ValidationError, together
from backend.core.metric_keys import MetricKey
from backend.core.types import Level
from backend.models import QuestionSetVersion, Workspace
from backend.providers.base import ProviderError
from backend.search import ann, providers
from backend.search.types import IndexRef
from backend.services import answer_requests, question_sets, scopes
from backend.services.answer_requests import AnswerPlan
from backend.services.scopes import ResolvedScope

MAX_TOP_K = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What `POST evaluations` says, parsed but not yet resolved (spec: docs/http-api.md)."""

    question_set: str = ""
    file: str = ""
    scope: Mapping[str, Any] = field(default_factory=dict)
    modes: Sequence[Any] | None = None
    configurations: Sequence[Any] | None = None
    reranker: str = ""
    top_k: int | None = None
    k: int | Sequence[int] | None = None
    level: str = ""
    primary_metric: str = ""
    evaluate_answers: bool = False
    llm: str = ""
    judge: str = ""
    answer_passages: int = answer_requests.DEFAULT_PASSAGES
    judge_repeats: int = 1
    cache: bool = True
    label: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    wait_for_index: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A request with what it names: the questions, where to search, how."""

    scoped: ResolvedScope
    version: QuestionSetVersion
    configs: tuple[RetrievalConfig, ...]
    answers: AnswerPlan | None = None

    def config_fingerprint(self, config: RetrievalConfig) -> str:
        """Over the canonical configuration and the settings of the Indexes it reads (which ones is no part)."""
        return _config_fingerprint(config, self.scoped.scope.indexes_for(config.index))


def resolve(workspace: Workspace, request: Request) -> Resolved:
    """Raises TouchstoneError for what cannot be run, with all that is wrong in what the request names. Writes nothing,
    but a set file is read into its set."""
    refused: list[TouchstoneError] = []
    answers = scoped = version = None
    retrievals: Sequence[RetrievalConfig] = ()
    if request.evaluate_answers:
        try:
            answers = answer_requests.resolve(
                workspace.id,
                llm=request.llm,
                judge=request.judge,
                passages=request.answer_passages,
                repeats=request.judge_repeats,
            )
        except TouchstoneError as error:
            refused.append(error)
    try:
        scoped = scopes.resolve(
            workspace,
            request.scope,
            wait_for_index=request.wait_for_index,
            index_overrides=_overrides(request.configurations),
        )
    except TouchstoneError as error:
        refused.append(error)
    base = scoped.knowledge_base if scoped is not None else None
    # A file is looked for in the scope's base, and read into a set: not for what is refused already.
    if request.question_set or not refused:
        try:
            version = question_sets.resolve(
                workspace, request.question_set or None, file=request.file or None, knowledge_base=base
            )
        except TouchstoneError as error:
            refused.append(error)
    if scoped is not None:
        try:
            retrievals = _retrievals(workspace, request, scoped)
        except TouchstoneError as error:
            refused.append(error)
    if refused or scoped is None or version is None:
        raise together(refused)
    return Resolved(scoped=scoped, version=version, configs=tuple(retrievals), answers=answers)


def _retrievals(workspace: Workspace, request: Request, scoped: ResolvedScope) -> Sequence[RetrievalConfig]:
    base_settings = scoped.knowledge_base.settings if scoped.knowledge_base is not None else {}
    found = configs.parse_all(
        modes=request.modes,
        configurations=request.configurations,
        reranker=request.reranker or str(base_settings.get("reranker") or "") or settings.RERANKER,
        base_fusion=base_settings.get("fusion"),
        exact=not ann.pays(scoped.scope.all_indexes),
    )
    for config in found:
        _check_reranker(config, workspace)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    level: Level
    top_k: int
    ks: tuple[int, ...]
    keys: tuple[MetricKey, ...]
    primary: MetricKey


def measured_by(request: Request, version: QuestionSetVersion) -> Measured:
    """At which level and ranks, by which metrics."""
    cutoffs = metric_keys.resolve_cutoffs(k=request.k, top_k=request.top_k)
    if cutoffs.top_k > MAX_TOP_K:
        raise ValidationError(f"top_k is at most {MAX_TOP_K}, not {cutoffs.top_k}.", field="top_k")
    if request.level and request.level not in set(Level):
        raise ValidationError(f"level is document or passage, not {request.level!r}.", field="level")
    graded = version.is_graded
    keys = metric_keys.default_keys(ks=cutoffs.ks, top_k=cutoffs.top_k, graded=graded)
    primary = metric_keys.default_primary(top_k=cutoffs.top_k, graded=graded)
    if request.primary_metric:
        primary = MetricKey.parse(request.primary_metric, top_k=cutoffs.top_k)
        if primary not in keys:
            keys = (*keys, primary)
    return Measured(
        level=Level(request.level or version.level),
        top_k=cutoffs.top_k,
        ks=cutoffs.ks,
        keys=tuple(keys),
        primary=primary,
    )


def _overrides(configurations: Sequence[Any] | None) -> list[str]:
    return [str(item["index"]) for item in configurations or () if isinstance(item, Mapping) and item.get("index")]


def _check_reranker(config: RetrievalConfig, workspace: Workspace) -> None:
    """Refuse at submit what no question could be reranked with. Whether a server answers is seen when it runs."""
    if config.reranker:
        try:
            providers.describe_reranker(config.reranker, workspace_id=workspace.id)
        except ProviderError as error:
            raise TouchstoneError(error.code, error.message, field="reranker") from error


def _config_fingerprint(config: RetrievalConfig, indexes: Sequence[IndexRef]) -> str:
    canonical = {name: value for name, value in config.canonical().items() if name != "index"}
    return fingerprint([canonical, sorted((dict(index.settings) for index in indexes), key=fingerprint)])
