"""All benches, one after the other; their tables go into docs/measured.md, between the two marks.

`make bench`, or `python -m bench [NAME …]`: overhead, peers, reranked, again, submit, scale, ingestion, metrics, start,
hosts. A bench that cannot run (reference data or a package is missing) says so, and the others go on.
"""

import subprocess
import sys
from pathlib import Path

from bench import machine

ALL = ("overhead", "peers", "reranked", "again", "submit", "scale", "ingestion", "metrics", "start", "hosts")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "measured.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise SystemExit(f"There is no bench {', '.join(unknown)}; there are {', '.join(ALL)}.")
    if not names:
        names = list(ALL)
    done = {}
    for name in names:
        print(f"--- {name}", file=sys.stderr, flush=True)
        # Each in a process of its own: what one leaves in memory is no part of the next.
        told = subprocess.run(
            [sys.executable, "-m", f"bench.{name}"], stdout=subprocess.PIPE, text=True, check=False
        ).stdout
        print(told, flush=True)
        lines = told.strip().splitlines()
        if lines and lines[-1].startswith("{"):
            done[name] = "\n".join(lines[:-1]).strip()
    write(PAGE, done)


def write(page: Path, tables: dict[str, str]) -> None:
    """Replace the tables of these benches, and leave the others as they were."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{page} has no place for the figures: {BEGIN} … {END}")
    before, rest = text.split(BEGIN, 1)
    inside, after = rest.split(END, 1)
    kept = {
        part.split("\n", 1)[0].strip(): part.split("\n", 1)[1].strip()
        for part in inside.split("<!-- ")[1:]
        if "\n" in part
    }
    told = machine.described()
    packages = ", ".join(f"{name} {version}" for name, version in told["packages"].items())
    where = (
        f"{told['date']}; {told['processor']}, {told['cores']} cores, {told['memory_gib']} GiB, load {told['load']}; "
        f"Python {told['python']}, {packages}"
    )
    for name, table in tables.items():
        kept[f"{name} -->"] = f"{table}\n\n{where}."
    order = [f"{name} -->" for name in ALL]
    parts = [f"<!-- {name}\n{kept[name]}" for name in order if name in kept]
    page.write_text(f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
