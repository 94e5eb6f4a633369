"""Rankings made by any engine, scored against a set: a run that everything else works on."""

from backend.services.importing.requests import Request, import_run

__all__ = ["Request", "import_run"]
