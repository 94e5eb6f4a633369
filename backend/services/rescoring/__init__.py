"""Stored rankings scored anew: another level, cut, threshold or metric, or another version of the set. No search."""

from backend.services.rescoring.requests import Request, rescore

__all__ = ["Request", "rescore"]
