"""Which paths are question-set files."""

import pytest

from backend.core import paths


@pytest.mark.parametrize("path", [".touchstone/golden.jsonl", ".metis/evals.json"])
def test_a_json_file_in_a_set_folder_is_a_question_set(path: str) -> None:
    assert paths.is_set_file(path)


@pytest.mark.parametrize("path", [".touchstone/stack.json", ".touchstone/deep/golden.jsonl", "docs/.touchstone/a.json"])
def test_the_state_of_a_running_service_and_files_deeper_down_are_none(path: str) -> None:
    assert not paths.is_set_file(path)
