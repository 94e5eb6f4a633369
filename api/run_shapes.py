"""How runs and evaluations look in JSON."""

from typing import Any

from rest_framework import serializers

from api.enums import CAUSES, EVALUATION_STATES, LEVELS, OUTCOMES, RUN_KINDS, RUN_STATES, WAITING_STATES


class SetRefSerializer(serializers.Serializer[Any]):
    """`id` is null when the set was deleted: a run outlives it by name and fingerprint."""

    id = serializers.UUIDField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    name = serializers.CharField()
    content_hash = serializers.CharField()


class BaseRefSerializer(serializers.Serializer[Any]):
    """`id` is null when the base was deleted, or the run searched several."""

    id = serializers.UUIDField(allow_null=True)
    name = serializers.CharField(allow_blank=True)


class FingerprintsSerializer(serializers.Serializer[Any]):
    """Two runs are comparable as far as these agree."""

    config = serializers.CharField()
    question_set = serializers.CharField()
    corpus = serializers.CharField(allow_blank=True)
    code = serializers.CharField()
    metric_definitions = serializers.CharField()


class MetricSerializer(serializers.Serializer[Any]):
    """A mean over `n` scored questions of `n_total`, with its 95 % interval."""

    mean = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    n_total = serializers.IntegerField()


class RunSerializer(serializers.Serializer[Any]):
    """One configuration's record. `metrics` is by metric key, such as `ndcg@10`; `headline` is the primary one.
    `partial`: the numbers are those of the questions done so far. `kind`: `searched` here, `rescored` from the run
    `derived_from`, or `imported`; `origin` has the particulars. `answers` has the figures of judged answers, apart from
    retrieval's. `caution`: what belongs beside the numbers, such as that questions were generated."""

    id = serializers.UUIDField()
    evaluation_id = serializers.UUIDField()
    knowledge_base = BaseRefSerializer()
    question_set = SetRefSerializer()
    ordinal = serializers.IntegerField()
    name = serializers.CharField()
    mode = serializers.CharField()
    kind = serializers.ChoiceField(choices=RUN_KINDS)
    derived_from = serializers.UUIDField(allow_null=True)
    origin = serializers.DictField()
    config = serializers.DictField()
    fingerprints = FingerprintsSerializer()
    generations = serializers.DictField(child=serializers.IntegerField())
    corpus_changed = serializers.BooleanField()
    level = serializers.ChoiceField(choices=LEVELS)
    threshold = serializers.FloatField()
    top_k = serializers.IntegerField()
    ks = serializers.ListField(child=serializers.IntegerField())
    primary_metric = serializers.CharField()
    state = serializers.ChoiceField(choices=RUN_STATES)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    partial = serializers.BooleanField()  # type: ignore[assignment]  # a field of ours, not the base class's
    n_questions = serializers.IntegerField()
    metrics = serializers.DictField(child=MetricSerializer())
    headline = MetricSerializer(allow_null=True)
    counts = serializers.DictField()
    answers = serializers.DictField()
    caution = serializers.CharField(allow_blank=True)
    timings = serializers.DictField()
    cost = serializers.DictField(child=serializers.FloatField())
    label = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # as above
    pinned = serializers.BooleanField()
    pruned_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when its rankings are gone; its figures stay."
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class EvaluationSerializer(serializers.Serializer[Any]):
    """One submission: a set version, a scope, and a run for each configuration."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=EVALUATION_STATES)
    is_final = serializers.BooleanField()
    question_set = SetRefSerializer()
    scope = serializers.DictField()
    n_questions = serializers.IntegerField()
    level = serializers.ChoiceField(choices=LEVELS)
    top_k = serializers.IntegerField()
    ks = serializers.ListField(child=serializers.IntegerField())
    primary_metric = serializers.CharField()
    cache = serializers.BooleanField()
    wait_for_index = serializers.BooleanField()
    label = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # as above
    metadata = serializers.DictField()
    epoch = serializers.IntegerField()
    revision = serializers.IntegerField()
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    deadline_at = serializers.DateTimeField()
    elapsed_seconds = serializers.FloatField()
    runs = RunSerializer(many=True)


class OutcomesSerializer(serializers.Serializer[Any]):
    """How many rows ended in each way."""

    ok = serializers.IntegerField()
    empty = serializers.IntegerField()
    error = serializers.IntegerField()
    cancelled = serializers.IntegerField()
    not_run = serializers.IntegerField()


class ProgressSerializer(serializers.Serializer[Any]):
    """`n_done` of `n_questions` questions have a result in the run that is furthest behind; `n_results` of
    `n_results_total` are there."""

    n_questions = serializers.IntegerField()
    n_done = serializers.IntegerField()
    n_results = serializers.IntegerField()
    n_results_total = serializers.IntegerField()
    by_outcome = OutcomesSerializer()


class WaitingForSerializer(serializers.Serializer[Any]):
    """A provider that keeps an evaluation from going on. `stalled`: it failed 20 times in a row, and is asked again at
    `retry_at`; what waits for it ends PROVIDER_UNAVAILABLE at `gives_up_at`. `held`: it asked for a pause (429)."""

    provider = serializers.CharField()
    state = serializers.ChoiceField(choices=WAITING_STATES)
    since = serializers.DateTimeField(allow_null=True)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    retry_at = serializers.DateTimeField(allow_null=True)
    gives_up_at = serializers.DateTimeField(allow_null=True)


class EvaluationDetailSerializer(EvaluationSerializer):
    """An evaluation with its progress; the runs' numbers are `partial` until they are final."""

    progress = ProgressSerializer()
    eta_seconds = serializers.FloatField(allow_null=True)
    questions_per_second = serializers.FloatField(allow_null=True)
    waiting_for = WaitingForSerializer(many=True)


class StageSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField()
    score = serializers.FloatField()


class PlaceSerializer(serializers.Serializer[Any]):
    """A passage of the ranking. `stages`: its rank and score in `meaning`, `words`, `fused`, `reranker`, as far as each
    ranked it."""

    rank = serializers.IntegerField()
    document = serializers.CharField()
    passage = serializers.CharField()
    path = serializers.CharField()
    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # as above
    heading = serializers.CharField(allow_blank=True)
    page = serializers.IntegerField(allow_null=True)
    snippet = serializers.CharField(allow_blank=True)
    stages = serializers.DictField(child=StageSerializer())


class LossSerializer(serializers.Serializer[Any]):
    """An expectation that was missed. `ranks`: the best at the run's level by stage, `final` included."""

    expectation = serializers.IntegerField()
    cause = serializers.ChoiceField(choices=CAUSES)
    ranks = serializers.DictField(child=serializers.IntegerField())
    wrong_passage = serializers.BooleanField()


class ResultSerializer(serializers.Serializer[Any]):
    """One question of one run. `found` is derived at `k`; null where the question has no figure. `cause`: where a
    missed question was lost (docs/diagnosis.md); `wrong_passage`: its document came within k."""

    ordinal = serializers.IntegerField()
    key = serializers.CharField()
    question = serializers.CharField(allow_null=True)
    expect = serializers.ListField(child=serializers.JSONField())
    tags = serializers.ListField(child=serializers.CharField())
    unanswerable = serializers.BooleanField()
    outcome = serializers.ChoiceField(choices=OUTCOMES)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    k = serializers.IntegerField()
    found = serializers.BooleanField(allow_null=True)
    found_at = serializers.DictField(child=serializers.BooleanField())
    first_rank = serializers.IntegerField(allow_null=True)
    first_relevant = PlaceSerializer(allow_null=True)
    found_instead = PlaceSerializer(many=True)
    depth = serializers.IntegerField()
    latency_ms = serializers.FloatField(allow_null=True)
    timings_ms = serializers.DictField(child=serializers.FloatField())
    epoch = serializers.IntegerField()
    units = serializers.DictField(child=serializers.FloatField())
    must_pass = serializers.BooleanField()
    cause = serializers.CharField(allow_blank=True)
    wrong_passage = serializers.BooleanField()
    losses = LossSerializer(many=True)
