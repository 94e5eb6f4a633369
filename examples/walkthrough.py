"""A whole improvement, from a question set to a verdict, with nothing but `touchstone.Client`.

    TOUCHSTONE_URL=http://127.0.0.1:8000 TOUCHSTONE_TOKEN=ts_… python examples/walkthrough.py

It makes a knowledge base and a set of its own, measures, looks at what was missed and why, changes one thing, measures
again, and asks whether that helped. Run it as often as you like: names end with the time.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from touchstone import Client

DOCUMENTS = {
    "leave.txt": "Annual leave is thirty days. Leave that is not taken by March expires.",
    "travel.txt": "The line manager approves a trip before it is booked. Trains come before planes.",
    "laptop.txt": "A new laptop is ordered in the portal. Old ones go back to the help desk.",
    "door.txt": "Error E42 means that the door is open. Close it and press reset.",
    "sick.txt": "Call your manager before nine when you are ill. A doctor's note is due on day three.",
    "parking.txt": "Visitors park behind building C. Staff badges open the barrier.",
    "canteen.txt": "Lunch is served from noon until two. Breakfast ends at ten.",
    "security.txt": "Passwords have fourteen characters and are changed when they leak.",
}
# Each question is in somebody's own words, and names the document that answers it.
QUESTIONS = [
    ("how many days of annual leave do I get", "leave.txt"),
    ("when does leave that was not taken expire exactly", "leave.txt"),
    ("who approves a trip that I want to make", "travel.txt"),
    ("should I take trains or planes for work", "travel.txt"),
    ("where is a new laptop ordered nowadays", "laptop.txt"),
    ("what does the error E42 mean please", "door.txt"),
    ("I am ill, when do I call my manager", "sick.txt"),
    ("when is a doctor's note due at the latest", "sick.txt"),
    ("where do visitors park their cars", "parking.txt"),
    ("until when is lunch served these days", "canteen.txt"),
    ("how many characters do passwords have at least", "security.txt"),
    ("which badge opens the barrier for staff", "parking.txt"),
]


def main() -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    with Client() as touchstone:
        # 1. Something to search, and questions whose answers are known.
        base = touchstone.create_knowledge_base(f"Walk-through {stamp}", settings={"embedding": {"embedder": "none"}})
        with tempfile.TemporaryDirectory() as folder:
            for name, text in DOCUMENTS.items():
                Path(folder, name).write_text(text)
            sent = touchstone.upload(base["id"], [(name, Path(folder, name)) for name in DOCUMENTS])
        while touchstone.ingestion(base["id"], sent["ingestion"]["id"])["state"] not in {"completed", "failed"}:
            time.sleep(0.3)
        golden = touchstone.post(
            "question-sets",
            {
                "name": f"Walk-through {stamp}",
                "questions": [
                    {"id": f"q{number}", "question": question, "expected": [path]}
                    for number, (question, path) in enumerate(QUESTIONS, start=1)
                ],
            },
        )

        # 2. Are the labels right? A path that no document has could never be found.
        scope = {"knowledge_base": base["id"]}
        print("labels that find nothing:", len(touchstone.preflight(golden["id"], scope=scope)["findings"]))

        # 3. Measure what we have: full-text search where every word has to be there.
        strict = {"name": "keyword", "mode": "keyword", "keyword": "fts", "fts": "and"}
        before = measure(touchstone, golden["id"], base["id"], strict, label="before")

        # 4. Look at a miss, and at why.
        missed = list(touchstone.results(before["id"], outcome="missed"))
        print(f"missed: {len(missed)} of {len(QUESTIONS)}; the first: {missed[0]['question']!r}")
        print("where they were lost:", touchstone.diagnosis(before["id"])["overall"]["causes"])

        # 5. Change one thing: any of the words, ranked by BM25. Measure again.
        after = measure(touchstone, golden["id"], base["id"], {"name": "keyword", "mode": "keyword"}, label="after")

        # 6. Did it help? The verdict is a paired test's, question by question.
        verdict = touchstone.compare(before["id"], [after["id"]])["candidates"][0]
        print(verdict["verdict"])
        print(verdict["sentence"])

        # 7. What is better now shall stay so: approve it, and let a gate hold later runs to it.
        touchstone.approve(after["id"], label="after")
        rules = [{"rule": "drop", "most": 0.02}, {"rule": "coverage", "least": 1}]
        told = touchstone.check(run=after["id"], rules=rules)
        print("gate:", told["outcome"])


def measure(touchstone: Client, golden: str, base: str, way: dict[str, str], *, label: str) -> dict[str, Any]:
    started = touchstone.evaluate(
        question_set=golden, knowledge_base=base, configurations=[way], k=[1, 3, 5, 10], label=label
    )
    run = touchstone.wait(started["id"])["runs"][0]
    figure = run["headline"]
    print(f"{label}: {run['primary_metric']} {figure['mean']:.3f} ({figure['n']} of {figure['n_total']})")
    return dict(run)


if __name__ == "__main__":
    main()
