"""Answers: asked for from the first passages, judged claim by claim, counted and averaged apart from retrieval."""
