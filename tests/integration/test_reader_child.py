"""The reader child: what it may not do, and that no document can take the next one with it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from backend.core.errors import DocumentError, ErrorCode
from backend.readers.building import ReadLimits
from backend.readers.parent import ReaderChild

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1024 * 1024
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are the Linux kernel's")


@pytest.fixture
def child() -> Iterator[ReaderChild]:
    with ReaderChild(timeout_seconds=20) as started:
        yield started


def refusal(child: ReaderChild, data: bytes, *, path: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        child.read(data, path=path)
    return caught.value


def reads_on(child: ReaderChild) -> bool:
    return child.read(b"still here", path="after.txt").text == "still here"


def word_file_of(body: bytes) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as container:
        container.writestr(
            "word/document.xml",
            b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
            + body
            + b"</w:body></w:document>",
        )
    return target.getvalue()


def test_text_marks_and_warnings_come_back_whole(child: ReaderChild) -> None:
    extracted = child.read("# Größe\n\n漢字 😀\n\n## Ende\n\nx".encode(), path="a.md")
    assert extracted.text == "Größe\n\n漢字 😀\n\nEnde\n\nx"
    assert [(mark.start, mark.heading) for mark in extracted.marks] == [(0, ("Größe",)), (13, ("Größe", "Ende"))]
    assert child.read(b"words", path="a.pdf").warnings == ("its name says pdf, its content is text: read as such",)


def test_one_process_reads_many_documents_and_fast(child: ReaderChild) -> None:
    child.read(b"warm", path="a.txt")
    pid = child.pid
    started = time.perf_counter()
    for number in range(500):
        assert child.read(b"small file %d " % number * 20, path="a.txt").reader == "text"
    assert child.pid == pid
    assert 500 / (time.perf_counter() - started) > 150  # 1,000 to 2,000 were measured on a shared machine


def test_a_refused_document_costs_no_process(child: ReaderChild) -> None:
    assert reads_on(child)
    pid = child.pid
    assert refusal(child, b"%PDF-1.4 broken", path="a.pdf").code is ErrorCode.DOCUMENT_UNREADABLE
    assert refusal(child, b"", path="a.txt").code is ErrorCode.DOCUMENT_NO_TEXT
    assert child.pid == pid


@linux
def test_the_environment_is_empty_and_no_secret_is_inherited(
    child: ReaderChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", "a-secret-of-ours")
    assert reads_on(child)
    environment = Path(f"/proc/{child.pid}/environ")
    try:
        assert environment.read_bytes() == b""
    except PermissionError:
        pytest.skip("this user may not look into a process that is not dumpable")


@linux
def test_every_wall_stands_that_this_kernel_offers(child: ReaderChild) -> None:
    walls = child.isolation
    assert walls["memory"]
    assert walls["no_new_privileges"]
    assert walls["ends_with_parent"]
    assert walls["no_network"]


ESCAPES = """
import os, socket, subprocess, sys
sys.path.insert(0, sys.argv[1])
from backend.readers import isolation
walls = isolation.enter(memory_bytes=400 * 1024 * 1024, parent_pid=os.getppid())
def tried(act):
    try:
        act()
    except BaseException as error:
        return type(error).__name__
    return "done"
target = sys.argv[2]
print(
    tried(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[3])), timeout=2)),
    tried(lambda: socket.socket(socket.AF_UNIX)) if walls.no_processes else "PermissionError",
    tried(lambda: subprocess.run(["true"])) if walls.no_processes else "PermissionError",
    tried(lambda: os.fork()) if walls.no_processes else "PermissionError",
    tried(lambda: open(target, "w").write("x")) if walls.no_writing else "PermissionError",
    tried(lambda: os.unlink(target)) if walls.no_writing else "PermissionError",
    tried(lambda: os.kill(os.getppid(), 9)) if walls.no_processes else "PermissionError",
    tried(lambda: bytearray(900 * 1024 * 1024)),
    tried(lambda: open(sys.executable, "rb").read(1)),
)
"""


@linux
def test_behind_the_walls_there_is_no_network_no_program_no_writing_and_little_memory(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("kept")
    with socket.create_server(("127.0.0.1", 0)) as server:
        finished = subprocess.run(
            [sys.executable, "-I", "-c", ESCAPES, str(ROOT), str(target), str(server.getsockname()[1])],
            env={},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    network, *others, memory, reading = finished.stdout.split()
    assert network in {"PermissionError", "OSError", "ConnectionRefusedError"}
    assert set(others) == {"PermissionError"}
    assert memory == "MemoryError"
    assert reading == "done"
    assert target.read_text() == "kept"


def test_a_zip_bomb_is_refused_by_its_declared_size() -> None:
    bomb = word_file_of(bytes(30_000_000))
    assert len(bomb) < MEGABYTE
    with ReaderChild(limits=ReadLimits(n_unpacked_bytes=20_000_000)) as child:
        assert refusal(child, bomb, path="a.docx").code is ErrorCode.DOCUMENT_TOO_LARGE
        assert reads_on(child)


@linux
def test_a_document_that_grows_in_memory_is_too_large_and_the_next_is_read() -> None:
    body = b"<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 60_000
    with ReaderChild(timeout_seconds=60, memory_bytes=110 * MEGABYTE) as child:
        error = refusal(child, word_file_of(body), path="a.docx")
        assert error.code is ErrorCode.DOCUMENT_TOO_LARGE
        assert "memory" in error.message
        assert reads_on(child)


def test_a_document_that_takes_too_long_is_given_up_and_the_next_is_read() -> None:
    with ReaderChild(timeout_seconds=1.5) as child:
        assert reads_on(child)
        pid = child.pid
        started = time.monotonic()
        error = refusal(child, b"<html>" + b"<div>" * 200_000 + b"x", path="a.html")
        assert error.code is ErrorCode.DOCUMENT_UNREADABLE
        assert "longer than 1.5 seconds" in error.message
        assert time.monotonic() - started < 10
        assert reads_on(child)
        assert child.pid != pid


def test_parts_that_nest_too_deeply_are_no_crash(child: ReaderChild) -> None:
    depth = 3_000
    body = b"<w:tbl><w:tr><w:tc>" * depth + b"<w:p/>" + b"</w:tc></w:tr></w:tbl>" * depth
    error = refusal(child, word_file_of(body), path="a.docx")
    assert error.code is ErrorCode.DOCUMENT_UNREADABLE
    assert reads_on(child)


def test_a_process_killed_from_outside_is_replaced_unnoticed(child: ReaderChild) -> None:
    assert reads_on(child)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    assert reads_on(child)


def test_a_document_whose_process_dies_each_time_is_unreadable_and_the_next_is_read(child: ReaderChild) -> None:
    data = b"<html>" + b"<div>" * 200_000 + b"x"
    ended = threading.Event()
    seen: set[int] = set()

    def kill_each_child() -> None:
        while not ended.is_set():
            pid = child.pid
            if pid is not None and pid not in seen:
                time.sleep(1.0)
                seen.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    killer = threading.Thread(target=kill_each_child)
    killer.start()
    try:
        error = refusal(child, data, path="a.html")
    finally:
        ended.set()
        killer.join()
    assert error.code is ErrorCode.DOCUMENT_UNREADABLE
    assert len(seen) == 2
    assert reads_on(child)


@linux
def test_the_child_ends_with_its_parent() -> None:
    script = (
        "import sys, os; sys.path.insert(0, sys.argv[1])\n"
        "from backend.readers.parent import ReaderChild\n"
        "child = ReaderChild(); child.read(b'x', path='a.txt'); print(child.pid, flush=True); os._exit(0)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, str(ROOT)], capture_output=True, text=True, timeout=30, check=True
    )
    pid = int(finished.stdout)
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the child outlived its parent")


def test_threads_take_turns(child: ReaderChild) -> None:
    texts: list[str] = []

    def one(number: int) -> None:
        texts.append(child.read(f"text {number}".encode(), path="a.txt").text)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts) == [f"text {number}" for number in range(8)]


def test_the_limits_given_are_those_of_the_child() -> None:
    with ReaderChild(limits=ReadLimits(n_characters=100)) as child:
        assert refusal(child, b"word " * 50, path="a.txt").code is ErrorCode.DOCUMENT_TOO_LARGE


def test_closing_leaves_no_process_and_reading_again_starts_one(child: ReaderChild) -> None:
    assert reads_on(child)
    pid = child.pid
    child.close()
    assert child.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid or 0, 0)
    assert reads_on(child)
