"""What generations and drafts look like."""

from typing import Any

from rest_framework import serializers

from api.enums import DRAFT_STATES, JOB_STATES, QUESTION_KINDS, VERDICT_ACTIONS
from backend.core.generation import local
from backend.services.generation import DEFAULT_SAMPLE, MAX_SAMPLE


class GenerateRequestSerializer(serializers.Serializer[Any]):
    """`llm` is `openai:MODEL`, or `NAME:MODEL` of a chat server that the operator or the workspace named; empty:
    TOUCHSTONE_LLM, else `local`, which turns headings and sentences into keyword queries. `prompt` takes the place of
    our instructions (`{language}` and `{kind}` are put in); the form of the reply and the passages are added to it."""

    knowledge_base = serializers.UUIDField()
    sample_size = serializers.IntegerField(required=False, default=DEFAULT_SAMPLE, min_value=1, max_value=MAX_SAMPLE)
    source = serializers.CharField(  # type: ignore[assignment]  # a field of ours, not the base class's
        required=False, allow_blank=True, help_text="Only documents of this source."
    )
    collection = serializers.CharField(required=False, allow_blank=True, help_text="Only documents of this collection.")
    language = serializers.CharField(
        required=False, allow_blank=True, help_text="Only passages in this language, such as english."
    )
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=QUESTION_KINDS),
        required=False,
        help_text="In turn. Default: fact, paraphrase, keyword.",
    )
    llm = serializers.CharField(required=False, allow_blank=True)
    prompt = serializers.CharField(required=False, allow_blank=True, max_length=4000)
    seed = serializers.IntegerField(required=False, default=0, min_value=0, max_value=2**31 - 1)
    answerability = serializers.BooleanField(
        required=False, default=True, help_text="Ask the model whether the passage alone answers the question."
    )


class GenerationJobSerializer(serializers.Serializer[Any]):
    """How far it is; more of it at `jobs/{id}`."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=JOB_STATES)
    n_done = serializers.IntegerField()
    n_total = serializers.IntegerField()
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)


class GenerationSerializer(serializers.Serializer[Any]):
    """`counts` by state add up to `n_drawn`. `faults`: why drafts failed or were dropped. `flags`: what filters
    flagged. `skipped`: passages that were drawn and not asked about. `rungs`: how the form of the replies was asked
    for. `units`: what was billed."""

    id = serializers.UUIDField(source="generation.id")
    knowledge_base = serializers.UUIDField(source="generation.knowledge_base_id", allow_null=True)
    knowledge_base_name = serializers.CharField(source="generation.knowledge_base_name")
    llm = serializers.CharField(source="generation.llm")
    is_local = serializers.SerializerMethodField()
    prompt_version = serializers.CharField(source="generation.prompt_version")
    settings = serializers.DictField(source="generation.settings")
    job = GenerationJobSerializer(source="generation.job", allow_null=True)
    question_set = serializers.UUIDField(source="generation.question_set_id", allow_null=True)
    n_drawn = serializers.IntegerField()
    counts = serializers.DictField(child=serializers.IntegerField())
    faults = serializers.DictField(child=serializers.IntegerField())
    flags = serializers.DictField(child=serializers.IntegerField())
    leakage = serializers.DictField(source="bands", child=serializers.IntegerField())
    rungs = serializers.DictField(child=serializers.IntegerField())
    skipped = serializers.DictField(source="generation.skipped", child=serializers.IntegerField())
    units = serializers.DictField(child=serializers.FloatField())
    created_at = serializers.DateTimeField(source="generation.created_at")

    def get_is_local(self, row: Any) -> bool:
        return bool(row.generation.llm == local.SPEC)


class VerdictSerializer(serializers.Serializer[Any]):
    filter = serializers.CharField()
    action = serializers.ChoiceField(choices=VERDICT_ACTIONS)
    reason = serializers.CharField(allow_blank=True)
    numbers = serializers.DictField()


class DraftPassageSerializer(serializers.Serializer[Any]):
    """A passage as it was when it was asked about, and the snippet that stands for it in the label."""

    path = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field of ours, not the base class's
    collection = serializers.CharField(allow_blank=True)
    heading = serializers.CharField(allow_blank=True)
    page = serializers.IntegerField(allow_null=True)
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    text = serializers.CharField()
    snippet = serializers.CharField(required=False)


class AlternativeSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field of ours, not the base class's
    snippet = serializers.CharField()
    likeness = serializers.FloatField()


class DraftSerializer(serializers.Serializer[Any]):
    """`original` is the first wording of an edited question. `reply` is what the model wrote, as it wrote it. `code` of
    a dropped draft names the filter, of a failed one what was wrong."""

    id = serializers.UUIDField()
    generation = serializers.UUIDField(source="generation_id")
    ordinal = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=QUESTION_KINDS)
    state = serializers.ChoiceField(choices=DRAFT_STATES)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    question = serializers.CharField(allow_blank=True)
    original = serializers.CharField(allow_blank=True)
    answer = serializers.CharField(allow_blank=True)
    passages = DraftPassageSerializer(many=True)
    alternatives = AlternativeSerializer(many=True)
    verdicts = VerdictSerializer(many=True)
    leakage_band = serializers.CharField(allow_blank=True)
    leakage_run = serializers.IntegerField(allow_null=True)
    leakage_copied = serializers.FloatField(allow_null=True)
    model = serializers.CharField(allow_blank=True)
    rung = serializers.CharField(allow_blank=True)
    how = serializers.CharField(allow_blank=True)
    reply = serializers.CharField(allow_blank=True)
    question_key = serializers.CharField(allow_blank=True)
    reviewed_by = serializers.CharField(allow_blank=True)
    reviewed_at = serializers.DateTimeField(allow_null=True)


class ReviewSerializer(serializers.Serializer[Any]):
    """`question` and `answer` with `accept`: another wording."""

    action = serializers.ChoiceField(choices=["accept", "reject", "reopen"])
    question = serializers.CharField(required=False, max_length=1000)
    answer = serializers.CharField(required=False, allow_blank=True, max_length=4000)


class IntoSetSerializer(serializers.Serializer[Any]):
    """A new set (`name`), or the next version of one (`question_set`)."""

    name = serializers.CharField(required=False, max_length=200)
    question_set = serializers.UUIDField(required=False)


class RatesSerializer(serializers.Serializer[Any]):
    """How a wording did. `acceptance`: of the drafts that were decided about; null: none was."""

    llm = serializers.CharField()
    prompt_version = serializers.CharField()
    n_drafts = serializers.IntegerField()
    n_accepted = serializers.IntegerField()
    n_edited = serializers.IntegerField()
    n_rejected = serializers.IntegerField()
    n_dropped = serializers.IntegerField()
    n_failed = serializers.IntegerField()
    acceptance = serializers.FloatField(allow_null=True)


class RatesListSerializer(serializers.Serializer[Any]):
    results = RatesSerializer(many=True)
