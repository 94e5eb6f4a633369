"""The body of `POST evaluations` as the schema describes it. It is read by backend.services.submissions."""

from typing import Any

from rest_framework import serializers

from api.enums import LEVELS
from backend.core.configs import MODES

EXAMPLE = {
    "question_set": "0192f0c1-6a5e-7c3e-9d55-2a1f6e1b7c11",
    "scope": {"knowledge_base": "0192f0c0-11aa-7f00-8000-000000000001"},
    "modes": ["semantic", "keyword", "hybrid", "hybrid_rerank"],
    "top_k": 10,
    "label": "before the new chunking",
}


class ScopeSerializer(serializers.Serializer[Any]):
    """Where to search: one of `workspace`, `knowledge_base`, `documents`; narrowed by `source` and `collection`."""

    workspace = serializers.CharField(required=False, help_text="The workspace's id: every ready base of it.")
    knowledge_base = serializers.UUIDField(required=False)
    documents = serializers.ListField(child=serializers.UUIDField(), required=False)
    source = serializers.CharField(required=False)  # type: ignore[assignment]  # a field of ours, not the base class's
    collection = serializers.CharField(required=False)


class FusionSerializer(serializers.Serializer[Any]):
    formula = serializers.ChoiceField(choices=["rrf", "convex"], required=False)
    constant = serializers.FloatField(required=False)
    rank_base = serializers.IntegerField(required=False)
    weights = serializers.ListField(child=serializers.FloatField(), required=False, help_text="[semantic, keyword]")


class ConfigurationSerializer(serializers.Serializer[Any]):
    """How one ranked list is made. What is left out has its default."""

    name = serializers.CharField(required=False)
    mode = serializers.ChoiceField(choices=list(MODES), required=False)
    keyword = serializers.ChoiceField(choices=["bm25", "fts"], required=False)
    fts = serializers.ChoiceField(choices=["and", "or"], required=False)
    index = serializers.UUIDField(required=False)
    depth = serializers.IntegerField(required=False)
    exact = serializers.BooleanField(required=False)
    ef_search = serializers.IntegerField(required=False)
    fusion = FusionSerializer(required=False)
    reranker = serializers.CharField(required=False, help_text="local, http:NAME, cohere:MODEL, llm:PROVIDER:MODEL")
    rerank_depth = serializers.IntegerField(required=False)
    min_score = serializers.FloatField(required=False)


class EvaluationRequestSerializer(serializers.Serializer[Any]):
    """A question set (or a file of a source), a scope, and how to search."""

    question_set = serializers.CharField(required=False, help_text="Its id, or id@version.")
    file = serializers.CharField(required=False, help_text="<source>:<path> of a question-set file found in a source.")
    scope = ScopeSerializer()
    modes = serializers.ListField(
        child=serializers.ChoiceField(choices=list(MODES)), required=False, help_text="Default: hybrid_rerank, hybrid."
    )
    configurations = ConfigurationSerializer(many=True, required=False)
    reranker = serializers.CharField(required=False, help_text="For `_rerank` modes that name none themselves.")
    top_k = serializers.IntegerField(required=False)
    k = serializers.JSONField(required=False, help_text="A number or a list of numbers, at most top_k.")
    level = serializers.ChoiceField(choices=LEVELS, required=False)
    primary_metric = serializers.CharField(required=False, help_text="Such as mrr@10 or ndcg@10.")
    evaluate_answers = serializers.BooleanField(
        required=False, help_text="Answer each question from its first passages, and judge the answers."
    )
    llm = serializers.CharField(required=False, help_text="The answering model: openai:MODEL or NAME:MODEL.")
    judge = serializers.CharField(required=False, help_text="The judging model; another one than llm is better.")
    answer_passages = serializers.IntegerField(required=False, default=5, min_value=1, max_value=20)
    judge_repeats = serializers.IntegerField(required=False, default=1, min_value=1, max_value=5)
    cache = serializers.BooleanField(required=False)
    label = serializers.CharField(required=False, allow_blank=True)  # type: ignore[assignment]  # as above
    metadata = serializers.DictField(required=False)
    wait_for_index = serializers.BooleanField(required=False)
