"""The files around the code say what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from backend.core.errors import ErrorCode

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = ("release", "web", "worker-control", "worker-search", "worker-provider", "beat")


def _procfile() -> dict[str, str]:
    lines = (ROOT / "Procfile").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def test_the_compose_file_is_valid_against_the_compose_specification() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.compose-spec",
            ROOT / "docker-compose.yml",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_compose_file_runs_each_line_of_the_procfile(tmp_path: Path) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    (tmp_path / "Procfile").write_text("\n".join(f"{name}: echo {name} ran" for name in PROCESSES))
    assert set(_procfile()) == set(PROCESSES)
    for name in PROCESSES:
        command = [part.replace("$$", "$") for part in services[name]["command"]]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert said == f"{name} ran\n"


def test_every_setting_read_stands_in_the_example_environment_and_the_other_way_round() -> None:
    code = [
        *(ROOT / "backend").rglob("*.py"),
        *(ROOT / "cli").rglob("*.py"),
        ROOT / "Procfile",
        ROOT / "docker-compose.yml",
    ]
    text = "\n".join(path.read_text() for path in code)
    ours = "TOUCHSTONE_[A-Z_]*[A-Z]|DATABASE_URL|REDIS_URL|POSTGRES_PASSWORD|PORT"
    names = f"{ours}|OPENAI_[A-Z_]*[A-Z]|CO_API_KEY|COHERE_API_KEY"
    read = set(re.findall(rf"[\"'{{$]({names})\b", text))
    told = set(re.findall(r"^# ([A-Z][A-Z0-9_]+)=", (ROOT / ".env.example").read_text(), flags=re.MULTILINE))
    # One entry per reranker and chat server, by its name: the example has one of each called NEAR.
    told = {re.sub(r"_RERANK_NEAR_(URL|SHAPE|MODEL|KEY|BATCH)$", "_RERANK", name) for name in told}
    told = {re.sub(r"_CHAT_NEAR_(URL|KEY)$", "_CHAT", name) for name in told}
    read = {name for name in read if not name.endswith(("_FILE", "_RERANK_"))}
    read |= {"TOUCHSTONE_RERANK", "TOUCHSTONE_CHAT"}
    assert read - told == set(), "read, but not in .env.example"
    assert told - read == set(), "in .env.example, but not read"


@pytest.mark.parametrize("module", ["backend.core.metrics", "backend.core.comparison", "backend.core.question_sets"])
def test_the_core_loads_neither_django_nor_celery(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('django', 'celery', 'rest_framework') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert said == "[]\n"


def test_a_service_that_imports_a_task_breaks_the_contracts(tmp_path: Path) -> None:
    """On a copy of the tree, so that the tree itself is never broken."""
    for folder in ("api", "backend", "cli", "console", "touchstone", "workers"):
        subprocess.run(["cp", "-r", ROOT / folder, tmp_path / folder], check=True)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    linter = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]

    def lint() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            linter,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        )

    assert lint().returncode == 0
    service = tmp_path / "backend" / "services" / "work.py"
    service.write_text("from workers import tasks\n" + service.read_text() + "\n_ = tasks\n")
    broken = lint()
    assert broken.returncode == 1
    assert "Nobody but workers imports a task BROKEN" in broken.stdout


def test_no_file_names_a_package_registry_or_a_path_of_the_machine_it_was_written_on() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    hosts = re.compile(
        r"py" + r"pi\.org|python" + r"hosted\.org|registry\.npm" + r"js|/work" + r"/(main|shared)|/root" + r"/"
    )
    named = []
    for name in filter(None, listed):
        path = ROOT / name
        if path.suffix in {".pdf", ".docx", ".png", ".onnx"} or not path.is_file():
            continue
        if hosts.search(path.read_text(errors="replace")):
            named.append(name)
    assert named == []


def test_every_error_code_has_its_entry_in_troubleshooting_and_the_other_way_round() -> None:
    told = set(re.findall(r"^### ([A-Z_]+)$", (ROOT / "docs" / "troubleshooting.md").read_text(), flags=re.MULTILINE))
    assert told == {code.value for code in ErrorCode}


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert broken == []
