"""Loaded by schemathesis: gives most cases ids of things that are there, and writes down every answer.

What a list or a creating POST returns is remembered by its address, so that operations follow each other without being
told how. FUZZ_FOLDER holds `world.json` (ids and bodies to begin with) and gets `answers.jsonl`.
"""

import json
import os
import random
import threading
from pathlib import Path
from typing import Any

import schemathesis

FOLDER = Path(os.environ["FUZZ_FOLDER"])
WORLD: dict[str, Any] = json.loads((FOLDER / "world.json").read_text())
_random = random.Random(7)
_lock = threading.Lock()
_pools: dict[str, list[str]] = {path: list(ids) for path, ids in WORLD["ids"].items()}
_answers = (FOLDER / "answers.jsonl").open("a")
# In bodies and filters: what stands for a thing, and where its ids are.
_FIELDS = {
    "knowledge_base": "/api/v1/knowledge-bases",
    "question_set": "/api/v1/question-sets",
    "run": "/api/v1/runs",
    "evaluation": "/api/v1/evaluations",
    "schedule": "/api/v1/schedules",
    "gate": "/api/v1/gates",
    "target": "/api/v1/alerts/targets",
}


@schemathesis.hook
def map_case(context: Any, case: Any) -> Any:
    """Two of three cases get known ids, one of two a body that is known to be taken."""
    with _lock:
        operation = case.operation
        label = f"{case.method.upper()} {operation.path}"
        if label in WORLD["never"]:
            case.path_parameters = dict.fromkeys(case.path_parameters or {}, "00000000-0000-7000-8000-000000000000")
            return case
        # What would lock the caller out is done to spare ones only.
        always = operation.path.startswith(("/api/v1/tokens/", "/api/v1/members/"))
        if case.path_parameters and (always or _random.random() < 0.67):
            is_end = label in WORLD["kept"]
            case.path_parameters = {
                name: _known(operation.path, name, value, others=is_end) for name, value in case.path_parameters.items()
            }
        body = WORLD["bodies"].get(label)
        if body is not None and _random.random() < 0.5:
            case.body = body
            case.media_type = "application/json"
        elif isinstance(case.body, dict) and _random.random() < 0.67:
            case.body = _filled(case.body)
    return case


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    path = case.operation.path
    label = f"{case.method.upper()} {path}"
    line = {"operation": label, "status": response.status_code}
    try:
        data = json.loads(response.content) if b"json" in _type(response) else None
    except ValueError:
        data = None
    if response.status_code >= 500:
        line["body"] = str(response.content[:600])
        line["case"] = [str(case.path_parameters), str(case.query), str(case.body)[:600]]
    with _lock:
        if response.status_code < 300 and isinstance(data, dict):
            _learn(path, data)
        _answers.write(json.dumps(line) + "\n")
        _answers.flush()


def _type(response: Any) -> bytes:
    found = response.headers.get("content-type") or [""]
    return (found if isinstance(found, str) else str(found[0])).encode()


def _learn(path: str, data: dict[str, Any]) -> None:
    rows = data.get("results")
    for row in rows if isinstance(rows, list) else [data]:
        if isinstance(row, dict):
            found = row.get("id") or row.get("question_key") or row.get("provider")
            if isinstance(found, str):
                pool = _pools.setdefault(path, [])
                if found not in pool:
                    pool.append(found)
                    del pool[:-40]


def _known(path: str, name: str, value: Any, *, others: bool) -> Any:
    """An id from the list before this part of the path; mostly the first ones. `others`: one that came later."""
    before = path.partition("/{" + name + "}")[0]
    pool = _pools.get(before, []) if others else WORLD["parts"].get(name) or _pools.get(before, [])
    if others:
        pool = [one for one in pool if one not in WORLD["ids"].get(before, [])]
    if not pool:
        return value
    return pool[0] if _random.random() < 0.5 else _random.choice(pool)


def _filled(body: Any) -> Any:
    if isinstance(body, dict):
        return {
            key: _pools[_FIELDS[key]][0] if key in _FIELDS and _pools.get(_FIELDS[key]) else _filled(value)
            for key, value in body.items()
        }
    return [_filled(one) for one in body] if isinstance(body, list) else body
