"""How knowledge bases, sources, documents and ingestions look in JSON."""

from typing import Any

from rest_framework import serializers

from api.enums import BASE_STATES, DOCUMENT_STATES, INGESTION_STATES, SOURCE_KINDS
from backend.core.states import DocumentState


class QualitySerializer(serializers.Serializer[Any]):
    """The latest figure: of the last scored run over the base, by its primary metric. `set_name`: `name@number`."""

    run_id = serializers.UUIDField()
    set_name = serializers.CharField()
    mode = serializers.CharField()
    metric = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class KnowledgeBaseSerializer(serializers.Serializer[Any]):
    """A set of documents that is searched as one."""

    id = serializers.UUIDField(source="base.id")
    name = serializers.CharField(source="base.name")
    settings = serializers.DictField(source="base.settings")
    state = serializers.ChoiceField(choices=BASE_STATES)
    is_rebuilding = serializers.BooleanField()
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    n_documents = serializers.IntegerField()
    n_indexed = serializers.IntegerField()
    n_pending = serializers.IntegerField()
    n_failed = serializers.IntegerField()
    n_chunks = serializers.IntegerField()
    n_chunks_truncated = serializers.IntegerField()
    live_index = serializers.UUIDField(source="base.live_index_id", allow_null=True)
    generation = serializers.IntegerField()
    quality = QualitySerializer(allow_null=True)
    created_at = serializers.DateTimeField(source="base.created_at")
    updated_at = serializers.DateTimeField(source="base.updated_at")


class KnowledgeBaseRequestSerializer(serializers.Serializer[Any]):
    """What is left out of `settings` has its default."""

    name = serializers.CharField(max_length=200)
    settings = serializers.DictField(
        required=False, help_text="Groups: chunking, embedding, keyword, fusion; and reranker."
    )


class KnowledgeBaseChangeSerializer(serializers.Serializer[Any]):
    """Settings that are not given stay as they are."""

    name = serializers.CharField(max_length=200, required=False)
    settings = serializers.DictField(required=False)


class SourceSerializer(serializers.Serializer[Any]):
    """An upload area, or a folder of the server that is read again at each sync."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=SOURCE_KINDS)
    folder = serializers.CharField(allow_blank=True)
    collection = serializers.CharField(allow_blank=True)
    n_documents = serializers.IntegerField(default=0)
    n_indexed = serializers.IntegerField(default=0)
    n_pending = serializers.IntegerField(default=0)
    n_failed = serializers.IntegerField(default=0)
    synced_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class SourceRequestSerializer(serializers.Serializer[Any]):
    """`folder` is an absolute path of the server; only for the kind `folder`."""

    name = serializers.CharField(max_length=200)
    kind = serializers.ChoiceField(choices=SOURCE_KINDS, required=False)
    folder = serializers.CharField(required=False, allow_blank=True)
    collection = serializers.CharField(required=False, allow_blank=True)


class DocumentSerializer(serializers.Serializer[Any]):
    """A file. `code` and `reason` say why one that failed is not indexed."""

    id = serializers.UUIDField()
    path = serializers.CharField()
    source = serializers.CharField(source="source.name")  # type: ignore[assignment]  # a field of ours
    source_id = serializers.UUIDField()
    collection = serializers.CharField(allow_blank=True)
    size = serializers.IntegerField()
    bytes_hash = serializers.CharField()
    state = serializers.ChoiceField(choices=DOCUMENT_STATES)
    code = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_code(self, document: Any) -> str:
        # On others they may speak of an Index that is being built.
        return str(document.code) if document.state == DocumentState.FAILED else ""

    def get_reason(self, document: Any) -> str:
        return str(document.reason) if document.state == DocumentState.FAILED else ""


class SkippedSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()


class SetFileSerializer(serializers.Serializer[Any]):
    """A question-set file found in a source's hidden folder. `file` is what an evaluation calls it."""

    file = serializers.SerializerMethodField()
    path = serializers.CharField()
    source = serializers.CharField(source="source.name")  # type: ignore[assignment]  # as above
    n_questions = serializers.IntegerField(allow_null=True)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    found_at = serializers.DateTimeField()

    def get_file(self, found: Any) -> str:
        return f"{found.source.name}:{found.path}"


class IngestionSerializer(serializers.Serializer[Any]):
    """One round of reading and indexing."""

    id = serializers.UUIDField()
    knowledge_base = serializers.UUIDField(source="knowledge_base_id")
    source = serializers.UUIDField(source="source_id", allow_null=True)  # type: ignore[assignment]  # as above
    state = serializers.ChoiceField(choices=INGESTION_STATES)
    n_documents = serializers.IntegerField()
    n_indexed = serializers.IntegerField()
    n_pending = serializers.IntegerField()
    n_failed = serializers.IntegerField()
    n_unchanged = serializers.IntegerField()
    n_removed = serializers.IntegerField()
    documents_per_second = serializers.FloatField(allow_null=True)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class AddedSerializer(serializers.Serializer[Any]):
    """What became of an upload. `ingestion` is null when nothing had to be read again."""

    documents = DocumentSerializer(many=True)
    ingestion = IngestionSerializer(allow_null=True)
    set_files = SetFileSerializer(many=True)
    skipped = SkippedSerializer(many=True)


class SyncedSerializer(serializers.Serializer[Any]):
    """The round that a sync began, and the question sets found."""

    ingestion = IngestionSerializer()
    set_files = SetFileSerializer(many=True)
