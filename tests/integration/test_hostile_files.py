"""Files made to do harm (tests/hostile.py): each ends as a coded error or harmless text, within bounds, alone."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from backend.core.errors import DocumentError, ErrorCode, QuestionSetError
from backend.core.question_sets import parse
from backend.readers.building import ReadLimits
from backend.readers.parent import ReaderChild
from tests.hostile import FILES, Hostile, symlink_zip
from tests.integration.ingest_work import ingest, new_base, states

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1024 * 1024
MEMORY = 400 * MEGABYTE
LIMITS = ReadLimits(n_pages=2000, n_characters=2_000_000, n_unpacked_bytes=100_000_000)
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are the Linux kernel's")


@pytest.fixture(scope="module")
def child() -> Iterator[ReaderChild]:
    with ReaderChild(timeout_seconds=30, memory_bytes=MEMORY, limits=LIMITS) as started:
        yield started


def peak_bytes(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


def outcome(child: ReaderChild, hostile: Hostile) -> tuple[str, ErrorCode | None]:
    """What was read, or why it was not."""
    try:
        return child.read(hostile.make(), path=hostile.path).text, None
    except DocumentError as error:
        return error.message, error.code


@linux
@pytest.mark.parametrize("name", list(FILES))
def test_a_hostile_file_ends_as_it_should_and_the_next_is_read(name: str, child: ReaderChild) -> None:
    hostile = FILES[name]
    said, code = outcome(child, hostile)
    assert code == hostile.code, said[:200]
    assert not hostile.never or hostile.never not in said
    assert child.read(b"still here", path="after.txt").text == "still here"
    assert child.pid is not None
    assert peak_bytes(child.pid) < MEMORY
    assert not Path("/tmp/escaped").exists()


@pytest.mark.django_db
def test_a_good_document_is_indexed_among_hostile_ones() -> None:
    """The worker lives, and nothing but the hostile files fails."""
    names = (
        "entities within entities",
        "image in a text's clothes",
        "nothing at all",
        "link in a zip",
        "parts that climb",
    )
    chosen: list[Hostile] = [FILES[name] for name in names]
    base = new_base()
    ingest(
        base,
        {
            **{f"{number}{Path(one.path).suffix}": one.make() for number, one in enumerate(chosen)},
            "good.txt": "The leave is thirty days.",
        },
    )
    found = states(base)
    for number, one in enumerate(chosen):
        state, code = found[f"{number}{Path(one.path).suffix}"]
        assert code == (one.code.value if one.code else "")
        assert (state == "indexed") == (one.code is None)
    assert found["good.txt"] == ("indexed", "")


ESCAPE = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
from backend.readers import isolation
if sys.argv[4] == "user":
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
isolation.enter(memory_bytes=400 * 1024 * 1024, parent_pid=os.getppid())
def tried(act):
    try:
        return str(act())
    except BaseException as error:
        return type(error).__name__
print(
    tried(lambda: socket.socket().connect((sys.argv[2], int(sys.argv[3])))),
    tried(lambda: socket.socket().connect(("127.0.0.1", 80))),
    tried(lambda: os.environ["DATABASE_URL"]),
    tried(lambda: "found" if b"DATABASE_URL" in open(f"/proc/{os.getppid()}/environ", "rb").read() else "not there"),
)
"""


@linux
@pytest.mark.parametrize("who", ["root", "user"])
def test_a_file_that_takes_over_its_reader_reaches_neither_network_nor_database_address(who: str) -> None:
    """What stands in for it is code in the reader's own process, behind its walls."""
    if who == "root" and subprocess.run(["id", "-u"], capture_output=True, text=True, check=True).stdout.strip() != "0":
        pytest.skip("this is not root")
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            ESCAPE,
            str(ROOT),
            "127.0.0.1",
            str(settings.DATABASES["default"]["PORT"] or 5432),
            who,
        ],
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if who == "user" and done.returncode and "PermissionError" in done.stderr:
        pytest.skip("this user may not become another")
    assert done.returncode == 0, done.stderr
    network, other, address, parents = done.stdout.split(maxsplit=3)
    assert {network, other} <= {"PermissionError", "OSError", "ConnectionRefusedError"}
    assert address == "KeyError"
    assert parents.strip() in {"PermissionError", "FileNotFoundError", "not there"}


def test_a_link_in_a_question_sets_zip_is_text_and_no_file_of_the_server() -> None:
    with pytest.raises(QuestionSetError) as caught:
        parse(symlink_zip("queries.jsonl", "/etc/passwd"))
    assert "root:" not in str(caught.value)
