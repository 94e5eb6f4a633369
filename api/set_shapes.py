"""How question sets look in JSON."""

from typing import Any

from rest_framework import serializers

from api.enums import LEVELS
from backend.core.question_sets import format_names


class VersionSerializer(serializers.Serializer[Any]):
    """Immutable. `content_hash` is the same for the same questions in any file format."""

    id = serializers.UUIDField()
    number = serializers.IntegerField()
    content_hash = serializers.CharField()
    format = serializers.CharField()
    filename = serializers.CharField(allow_blank=True)
    level = serializers.ChoiceField(choices=LEVELS)
    threshold = serializers.FloatField()
    n_questions = serializers.IntegerField()
    warnings = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


class QuestionSetSerializer(serializers.Serializer[Any]):
    """A golden set. `version` is its latest."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    n_questions = serializers.IntegerField()
    version = VersionSerializer()
    created_at = serializers.DateTimeField()


class QuestionSetRowSerializer(serializers.Serializer[Any]):
    """A set in a list."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    latest_version = serializers.IntegerField(source="latest_number", allow_null=True)
    n_questions = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()


class QuestionSerializer(serializers.Serializer[Any]):
    """The full form (docs/question-sets.md). What is empty is left out."""

    id = serializers.CharField()
    question = serializers.CharField()
    expect = serializers.ListField(child=serializers.JSONField())
    tags = serializers.ListField(child=serializers.CharField(), required=False)
    note = serializers.CharField(required=False)
    must_pass = serializers.BooleanField(required=False)
    unanswerable = serializers.BooleanField(required=False)
    reference_answer = serializers.CharField(required=False)
    generated = serializers.CharField(required=False)
    source = serializers.CharField(required=False)  # type: ignore[assignment]  # a field of ours, not the base class's
    collection = serializers.CharField(required=False)
    line = serializers.IntegerField(required=False)


class SetRequestSerializer(serializers.Serializer[Any]):
    """Questions in the body. `name` only for a new set. A question may be in any form that a line of a file has."""

    name = serializers.CharField(max_length=200)
    questions = serializers.ListField(child=serializers.JSONField())


class SetUploadSerializer(serializers.Serializer[Any]):
    """A file. Its format is recognised by content; `format` overrides. `name` is the file's unless given."""

    file = serializers.FileField()
    name = serializers.CharField(required=False, max_length=200)
    format = serializers.ChoiceField(choices=list(format_names()), required=False)


class VersionRequestSerializer(serializers.Serializer[Any]):
    """As for a new set, without the name."""

    questions = serializers.ListField(child=serializers.JSONField())


class VersionUploadSerializer(serializers.Serializer[Any]):
    file = serializers.FileField()
    format = serializers.ChoiceField(choices=list(format_names()), required=False)


class QuestionsRequestSerializer(serializers.Serializer[Any]):
    """One question as the body itself, or several as `questions`."""

    questions = serializers.ListField(child=serializers.JSONField())


class QuestionEditSerializer(serializers.Serializer[Any]):
    """An edit makes a new version: this one."""

    version = VersionSerializer()
    questions = QuestionSerializer(many=True)


class QuestionCountSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    count = serializers.IntegerField()
    by_source = serializers.DictField(child=serializers.IntegerField())
    by_collection = serializers.DictField(child=serializers.IntegerField())
