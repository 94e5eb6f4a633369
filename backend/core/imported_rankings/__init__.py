"""Rankings that another engine made: read from a TREC run or JSONL, with every fault by its line."""

from backend.core.imported_rankings.reading import MAX_RESULTS, Format, Hit, ParsedRankings, Ranking, parse, parse_items

__all__ = ["MAX_RESULTS", "Format", "Hit", "ParsedRankings", "Ranking", "parse", "parse_items"]
