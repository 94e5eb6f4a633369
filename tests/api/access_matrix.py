"""Which scope each method of each address needs: one row an address, as Django prints its route.

A new address needs a row here, else test_access.py fails; a part of a route that is new (`<str:job_id>`) also needs
the id that stands for it, in addresses.py `ids_of`. A value is

* a Scope: whoever has it may; an anonymous caller gets 401 (a page: the way to the login), one without it 403;
* LOGIN: whoever is logged in or sends a valid token may, whatever their scopes;
* OPEN: everybody may, logged in or not.

A method that has no entry must be answered 405. HEAD goes with GET. Addresses under `api/` take tokens and sessions,
all others are pages and take sessions only.
"""

from typing import Final

from backend.models import Scope

READ, WRITE, EVALUATE, SCHEDULES, ADMIN = Scope.READ, Scope.WRITE, Scope.EVALUATE, Scope.SCHEDULES, Scope.ADMIN
LOGIN: Final = "login"
OPEN: Final = "open"

_V1 = "api/v1/"
_BASE = f"{_V1}knowledge-bases/<str:base_id>"
_SET = f"{_V1}question-sets/<str:set_id>"
_EVALUATION = f"{_V1}evaluations/<str:evaluation_id>"
_GENERATION = f"{_V1}generations/<str:generation_id>"
_RUN = f"{_V1}runs/<str:run_id>"

ROWS: dict[str, dict[str, str]] = {
    # ---- health and descriptions
    "healthz": {"get": OPEN},
    "readyz": {"get": OPEN},
    "metrics": {"get": OPEN},
    f"{_V1}schema": {"get": OPEN},
    f"{_V1}docs": {"get": OPEN},
    # ---- knowledge bases
    f"{_V1}knowledge-bases": {"get": READ, "post": WRITE},
    _BASE: {"get": READ, "patch": WRITE, "delete": WRITE},
    f"{_BASE}/sources": {"get": READ, "post": WRITE},
    f"{_BASE}/sources/<str:source_id>": {"get": READ, "delete": WRITE},
    f"{_BASE}/sources/<str:source_id>/sync": {"post": WRITE},
    f"{_BASE}/set-files": {"get": READ},
    f"{_BASE}/documents": {"get": READ, "post": WRITE},
    f"{_BASE}/documents/<str:document_id>": {"get": READ, "delete": WRITE},
    f"{_BASE}/indexes": {"get": READ},
    f"{_BASE}/ingestions": {"get": READ},
    f"{_BASE}/ingestions/<str:ingestion_id>": {"get": READ},
    f"{_V1}search": {"post": READ},
    # ---- question sets
    f"{_V1}question-sets": {"get": READ, "post": WRITE},
    _SET: {"get": READ, "delete": WRITE},
    f"{_SET}/versions": {"get": READ, "post": WRITE},
    f"{_SET}/versions/<str:number>/questions": {"get": READ},
    f"{_SET}/preflight": {"post": READ},
    f"{_SET}/export": {"get": READ},
    f"{_SET}/questions": {"get": READ, "post": WRITE},
    f"{_SET}/questions/count": {"get": READ},
    f"{_SET}/questions/<path:question_key>": {"get": READ, "delete": WRITE},
    # ---- questions made from documents
    f"{_V1}question-sets/generate": {"post": WRITE},
    f"{_V1}generations": {"get": READ},
    f"{_V1}generation-rates": {"get": READ},
    _GENERATION: {"get": READ},
    f"{_GENERATION}/cancel": {"post": WRITE},
    f"{_GENERATION}/retry": {"post": WRITE},
    f"{_GENERATION}/question-set": {"post": WRITE},
    f"{_GENERATION}/drafts": {"get": READ},
    f"{_V1}drafts/<str:draft_id>": {"get": READ},
    f"{_V1}drafts/<str:draft_id>/review": {"post": WRITE},
    # ---- what the workspace may have
    f"{_V1}limits": {"get": READ, "patch": ADMIN},
    f"{_V1}spending": {"get": READ},
    # ---- evaluations and runs
    f"{_V1}evaluations": {"get": READ, "post": EVALUATE},
    f"{_V1}evaluations/estimate": {"post": READ},
    _EVALUATION: {"get": READ},
    f"{_EVALUATION}/cancel": {"post": EVALUATE},
    f"{_EVALUATION}/retry": {"post": EVALUATE},
    f"{_V1}runs": {"get": READ},
    f"{_V1}runs/import": {"post": WRITE},
    _RUN: {"get": READ, "patch": EVALUATE, "delete": EVALUATE},
    f"{_RUN}/results": {"get": READ},
    f"{_RUN}/results/<path:question>/arithmetic": {"get": READ},
    f"{_RUN}/slices": {"get": READ},
    f"{_RUN}/answers": {"get": READ},
    f"{_RUN}/diagnosis": {"get": READ},
    f"{_RUN}/advice": {"get": READ},
    f"{_RUN}/export": {"get": READ},
    f"{_RUN}/rescore": {"post": EVALUATE},
    f"{_V1}comparisons": {"post": READ},
    # ---- jobs; which scope stopping one takes depends on its kind (test_jobs.py)
    f"{_V1}jobs": {"get": READ},
    f"{_V1}jobs/<str:job_id>": {"get": READ},
    f"{_V1}jobs/<str:job_id>/file": {"get": READ},
    f"{_V1}jobs/<str:job_id>/cancel": {"post": READ},
    f"{_V1}tokens": {"get": READ, "post": READ},
    f"{_V1}tokens/<str:token_id>": {"get": READ, "delete": READ},
    f"{_V1}members": {"get": ADMIN, "post": ADMIN},
    f"{_V1}members/<str:member_id>": {"get": ADMIN, "patch": ADMIN, "delete": ADMIN},
    f"{_V1}members/<str:member_id>/login-link": {"post": ADMIN},
    f"{_V1}workspaces": {"get": READ, "post": ADMIN},
    f"{_V1}workspaces/<str:workspace_id>": {"get": READ, "patch": ADMIN, "delete": ADMIN},
    f"{_V1}provider-keys": {"get": ADMIN, "post": ADMIN},
    f"{_V1}provider-keys/<str:provider>": {"get": ADMIN, "delete": ADMIN},
    f"{_V1}audit": {"get": ADMIN},
    # ---- every night
    f"{_V1}schedules": {"get": READ, "post": SCHEDULES},
    f"{_V1}schedules/<str:schedule_id>": {"get": READ, "patch": SCHEDULES, "delete": SCHEDULES},
    f"{_V1}schedules/<str:schedule_id>/run-now": {"post": SCHEDULES},
    f"{_V1}schedules/<str:schedule_id>/history": {"get": READ},
    f"{_V1}baselines": {"get": READ, "post": SCHEDULES},
    f"{_V1}baselines/<str:baseline_id>": {"get": READ, "delete": SCHEDULES},
    f"{_V1}gates": {"get": READ, "post": SCHEDULES},
    f"{_V1}gates/check": {"post": READ},
    f"{_V1}gates/<str:gate_id>": {"get": READ, "patch": SCHEDULES, "delete": SCHEDULES},
    f"{_V1}gates/<str:gate_id>/checks": {"get": READ},
    f"{_V1}gates/<str:gate_id>/dry-run": {"post": READ},
    f"{_V1}alerts": {"get": READ},
    f"{_V1}alerts/<str:alert_id>": {"get": READ},
    f"{_V1}alert-targets": {"get": READ, "post": SCHEDULES},
    f"{_V1}alert-targets/<str:target_id>": {"get": READ, "patch": SCHEDULES, "delete": SCHEDULES},
    f"{_V1}alert-targets/<str:target_id>/test": {"post": SCHEDULES},
    f"{_V1}alert-targets/<str:target_id>/secret": {"post": SCHEDULES},
    # ---- pages
    "evaluations": {"get": READ},
    "evaluations/new": {"get": EVALUATE, "post": EVALUATE},
    "evaluations/<str:evaluation_id>": {"get": READ},
    "evaluations/<str:evaluation_id>/progress": {"get": READ},
    "evaluations/<str:evaluation_id>/cancel": {"post": EVALUATE},
    "evaluations/<str:evaluation_id>/retry": {"post": EVALUATE},
    "runs/<str:run_id>": {"get": READ, "post": EVALUATE},
    "runs/<str:run_id>/survey": {"get": READ},
    "runs/<str:run_id>/questions/<int:ordinal>": {"get": READ},
    "runs/<str:run_id>/plots/<str:name>.<str:form>": {"get": READ},
    "compare": {"get": READ},
    "compare/plots/<str:name>.<str:form>": {"get": READ},
    "plots/<str:name>.<str:form>": {"get": READ},
    "": {"get": READ},
    "workspace": {"post": READ},
    "bases": {"get": READ},
    "bases/new": {"get": WRITE, "post": WRITE},
    "bases/sample": {"post": WRITE},
    "bases/<str:base_id>": {"get": READ},
    "bases/<str:base_id>/progress": {"get": READ},
    "bases/<str:base_id>/upload": {"post": WRITE},
    "bases/<str:base_id>/documents/<str:document_id>/delete": {"get": WRITE, "post": WRITE},
    "bases/<str:base_id>/sources": {"get": READ, "post": WRITE},
    "bases/<str:base_id>/sources/<str:source_id>/sync": {"post": WRITE},
    "bases/<str:base_id>/sources/<str:source_id>/delete": {"get": WRITE, "post": WRITE},
    "bases/<str:base_id>/indexes": {"get": READ},
    "bases/<str:base_id>/settings": {"get": READ, "post": WRITE},
    "bases/<str:base_id>/delete": {"get": WRITE, "post": WRITE},
    "sets": {"get": READ},
    "sets/new": {"get": WRITE, "post": WRITE},
    "sets/from-file": {"post": WRITE},
    "sets/question": {"get": WRITE},
    "sets/<str:set_id>": {"get": READ},
    "sets/<str:set_id>/versions": {"get": READ},
    "sets/<str:set_id>/versions/new": {"get": WRITE, "post": WRITE},
    "sets/<str:set_id>/check": {"get": READ},
    "sets/<str:set_id>/delete": {"get": WRITE, "post": WRITE},
    "sets/<str:set_id>/add": {"get": WRITE, "post": WRITE},
    "sets/<str:set_id>/change/<path:question_key>": {"get": WRITE, "post": WRITE},
    "sets/<str:set_id>/remove/<path:question_key>": {"get": WRITE, "post": WRITE},
    "search": {"get": READ},
    "history": {"get": READ},
    "login": {"get": OPEN, "post": OPEN},
    "login/<str:secret>": {"get": OPEN},
    "logout": {"post": OPEN},
}
