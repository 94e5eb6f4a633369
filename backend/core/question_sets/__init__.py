"""Question-set files: read in any known format, held in one full form, written again."""

from backend.core.question_sets.export import to_beir, to_csv, to_jsonl, to_qrels, to_topics
from backend.core.question_sets.full_form import from_full_form, to_full_form
from backend.core.question_sets.hashing import content_hash
from backend.core.question_sets.reading import MAX_BYTES, MAX_QUESTIONS, parse, parse_files, parse_items
from backend.core.question_sets.registry import format_names

__all__ = [
    "MAX_BYTES",
    "MAX_QUESTIONS",
    "content_hash",
    "format_names",
    "from_full_form",
    "parse",
    "parse_files",
    "parse_items",
    "to_beir",
    "to_csv",
    "to_full_form",
    "to_jsonl",
    "to_qrels",
    "to_topics",
]
