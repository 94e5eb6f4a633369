"""A small corpus whose questions have known answers: what the end-to-end tests measure."""

import random
from dataclasses import dataclass
from typing import Any

from tests.e2e.cluster import Cluster

_THINGS = [
    "pump",
    "valve",
    "lens",
    "motor",
    "sensor",
    "cable",
    "filter",
    "bearing",
    "rotor",
    "gasket",
    "relay",
    "antenna",
    "mirror",
    "spindle",
    "nozzle",
]
_DEEDS = [
    "cleaned",
    "replaced",
    "calibrated",
    "inspected",
    "ordered",
    "stored",
    "shipped",
    "tested",
    "painted",
    "measured",
]
_PLACES = [
    "Ankara",
    "Bergen",
    "Cork",
    "Dresden",
    "Espoo",
    "Faro",
    "Ghent",
    "Haifa",
    "Izmir",
    "Jena",
    "Kotka",
    "Lyon",
    "Malmo",
    "Narva",
    "Oslo",
]


@dataclass(frozen=True, slots=True)
class Shelf:
    knowledge_base: str
    question_set: str
    n_questions: int


def document(number: int) -> tuple[str, str]:
    """The path and text of a document; every third sentence is shared by many, the code by none."""
    chance = random.Random(number)
    thing, deed, place = chance.choice(_THINGS), chance.choice(_DEEDS), chance.choice(_PLACES)
    text = (
        f"Work order {1000 + number}. The {thing} of line {number % 17} was {deed} in {place}.\n\n"
        f"Afterwards the {chance.choice(_THINGS)} was {chance.choice(_DEEDS)} too, as the plan for {place} says.\n\n"
        "Every order is signed by the shift lead before the machine is started again.\n"
    )
    return f"orders/{1000 + number}.txt", text


def question(number: int, *, n_documents: int) -> dict[str, Any]:
    """Two of three ask by what happened, the third by the order's number; each expects the one document."""
    target = number % n_documents
    path, text = document(target)
    chance = random.Random(target)
    thing, deed, place = chance.choice(_THINGS), chance.choice(_DEEDS), chance.choice(_PLACES)
    asked = f"who {deed} the {thing} in {place} on line {target % 17}" if number % 3 else f"order {1000 + target}"
    assert thing in text
    return {"id": f"q{number}", "question": f"{asked} ({number})", "expected": [path], "tags": [f"t{number % 3}"]}


def fill(
    cluster: Cluster, *, name: str, n_documents: int, n_questions: int, settings: dict[str, Any] | None = None
) -> Shelf:
    """Upload, wait until all is indexed, and make the set."""
    base = cluster.post("knowledge-bases", {"name": name, "settings": settings or {}})["id"]
    files = [document(number) for number in range(n_documents)]
    answer = cluster.http.post(
        f"knowledge-bases/{base}/documents",
        files=[("file", (path, text.encode(), "text/plain")) for path, text in files],
        data={"path": [path for path, _ in files]},
    )
    assert answer.status_code == 202, answer.text
    cluster.wait(lambda: cluster.get(f"knowledge-bases/{base}")["state"] == "ready", f"{name} to be ready", seconds=300)
    questions = [question(number, n_documents=n_documents) for number in range(n_questions)]
    made = cluster.post("question-sets", {"name": name, "questions": questions})
    return Shelf(knowledge_base=base, question_set=made["id"], n_questions=n_questions)
