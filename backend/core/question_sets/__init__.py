"""Question-set files: read in any known format, held in one full form, written again."""

from backend.core.question_sets.full_form import from_full_form, to_full_form
from backend.core.question_sets.hashing import content_hash
from backend.core.question_sets.reading import parse, parse_files, parse_items

__all__ = ["content_hash", "from_full_form", "parse", "parse_files", "parse_items", "to_full_form"]
