"""What is searched: bases, their sources and documents, the Indexes built from them, and their chunks."""

from enum import StrEnum

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from pgvector.django import VectorField

from backend.core.states import DocumentState, IndexState, IngestionState
from backend.models.accounts import Workspace
from backend.models.base import choices, new_id, one_of


class SourceKind(StrEnum):
    UPLOAD = "upload"
    FOLDER = "folder"


class KnowledgeBase(models.Model):
    """A set of documents that is searched as one. `settings` are the wanted ones; the live Index has its own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="knowledge_bases", db_index=False)
    name = models.CharField(max_length=200)
    settings = models.JSONField(default=dict, blank=True)
    live_index = models.ForeignKey("Index", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="knowledge_base_name_is_unique_in_workspace")
        ]

    def __str__(self) -> str:
        return self.name


class Source(models.Model):
    """Where documents come from: an upload area, or a folder of the server that is read again at each sync."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="sources", db_index=False)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=choices(SourceKind), default=SourceKind.UPLOAD)
    folder = models.CharField(max_length=1000, blank=True)
    collection = models.CharField(max_length=200, blank=True)
    synced_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["knowledge_base", "name"], name="source_name_is_unique_in_base"),
            one_of("kind", SourceKind, name="source_kind_is_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Blob(models.Model):
    """The bytes of an uploaded or synced file, kept once per workspace and content."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    data = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "sha256"], name="blob_is_kept_once")]

    def __str__(self) -> str:
        return self.sha256[:12]


class Document(models.Model):
    """A file. `state` is that of the live Index (or of the reading, while there is none).

    `text` and `marks` are what the reader made of the bytes whose hash is `text_hash`; chunk offsets count its
    characters. A document whose bytes changed has `bytes_hash` != `text_hash` until it is read again.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="documents", db_index=False)
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="documents", db_index=False
    )
    path = models.CharField(max_length=1000, db_collation="C")
    collection = models.CharField(max_length=200, blank=True)
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="documents")
    bytes_hash = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    modified_ns = models.BigIntegerField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=choices(DocumentState), default=DocumentState.PENDING)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    text = models.TextField(blank=True)
    text_hash = models.CharField(max_length=64, blank=True)
    marks = models.JSONField(default=list, blank=True)
    reader = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "path"], name="document_path_is_unique_in_source"),
            one_of("state", DocumentState, name="document_state_is_known"),
        ]
        indexes = [
            models.Index(fields=["knowledge_base", "state"], name="document_by_base_and_state"),
            models.Index(fields=["knowledge_base", "path"], name="document_by_base_and_path"),
        ]

    def __str__(self) -> str:
        return self.path


class Index(models.Model):
    """Immutable settings and what was built under them. `generation` rises with each committed batch of changes."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="indexes", db_index=False)
    settings = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=choices(IndexState), default=IndexState.BUILDING)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    generation = models.PositiveBigIntegerField(default=0)
    dimensions = models.PositiveIntegerField(null=True, blank=True)
    n_documents = models.PositiveIntegerField(default=0)
    n_chunks = models.PositiveIntegerField(default=0)
    n_chunks_truncated = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    ready_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [one_of("state", IndexState, name="index_state_is_known")]
        indexes = [models.Index(fields=["knowledge_base", "state"], name="index_by_base_and_state")]

    def __str__(self) -> str:
        return f"{self.id} generation {self.generation}"


class IndexedDocument(models.Model):
    """That an Index holds a document, and the bytes it was made from."""

    id = models.BigAutoField(primary_key=True)
    index = models.ForeignKey(Index, on_delete=models.CASCADE, related_name="indexed_documents", db_index=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="indexed_in")
    bytes_hash = models.CharField(max_length=64)
    generation = models.PositiveBigIntegerField()
    n_chunks = models.PositiveIntegerField()
    n_chunks_truncated = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["index", "document"], name="document_is_once_in_an_index")]

    def __str__(self) -> str:
        return f"{self.document_id} in {self.index_id}"


class Chunk(models.Model):
    """A passage: `document.text[start:end]`. Path, source name and collection are copied from the document, since
    every search orders and filters by them."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    index = models.ForeignKey(Index, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks")
    ordinal = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    text = models.TextField()
    heading = models.TextField(blank=True)
    page = models.PositiveIntegerField(null=True, blank=True)
    truncated = models.BooleanField(default=False)
    path = models.CharField(max_length=1000, db_collation="C")
    source_name = models.CharField(max_length=200, db_collation="C")
    collection = models.CharField(max_length=200, blank=True)
    embedding = VectorField(null=True)
    lexemes = SearchVectorField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["index", "document", "ordinal"], name="chunk_ordinal_is_unique"),
            models.CheckConstraint(condition=models.Q(end__gt=models.F("start")), name="chunk_is_not_empty"),
        ]
        indexes = [GinIndex(fields=["lexemes"], name="chunk_by_lexeme", fastupdate=False)]

    def __str__(self) -> str:
        return f"{self.path}#{self.ordinal}"


class Ingestion(models.Model):
    """One round of reading and indexing: of some documents into the live Index, or of all into a new one."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="ingestions", db_index=False
    )
    index = models.ForeignKey(Index, on_delete=models.CASCADE, related_name="ingestions")
    source = models.ForeignKey(Source, on_delete=models.SET_NULL, null=True, blank=True, related_name="ingestions")
    state = models.CharField(max_length=10, choices=choices(IngestionState), default=IngestionState.QUEUED)
    n_documents = models.PositiveIntegerField(default=0)
    n_unchanged = models.PositiveIntegerField(default=0)
    n_removed = models.PositiveIntegerField(default=0)
    code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [one_of("state", IngestionState, name="ingestion_state_is_known")]
        indexes = [models.Index(fields=["knowledge_base", "state"], name="ingestion_by_base_and_state")]

    def __str__(self) -> str:
        return f"ingestion {self.id} {self.state}"


class CachedEmbedding(models.Model):
    """A vector by content: `key` hashes provider, base_url, model, options with prefix, and the text."""

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.BinaryField(max_length=32)
    vector = models.BinaryField()
    used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="embedding_is_cached_once")]
        indexes = [models.Index(fields=["used_at"], name="cached_embedding_by_use")]

    def __str__(self) -> str:
        return f"embedding {bytes(self.key).hex()[:12]}"


class CachedScore(models.Model):
    """A reranker's score of one passage for one query, by content."""

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.BinaryField(max_length=32)
    score = models.FloatField()
    used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="score_is_cached_once")]
        indexes = [models.Index(fields=["used_at"], name="cached_score_by_use")]

    def __str__(self) -> str:
        return f"score {bytes(self.key).hex()[:12]}"
