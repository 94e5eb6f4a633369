"""Which paths are question-set files."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.core import paths


@pytest.mark.parametrize("path", [".touchstone/golden.jsonl", ".metis/evals.json"])
def test_a_json_file_in_a_set_folder_is_a_question_set(path: str) -> None:
    assert paths.is_set_file(path)


@pytest.mark.parametrize("path", [".touchstone/stack.json", ".touchstone/deep/golden.jsonl", "docs/.touchstone/a.json"])
def test_the_state_of_a_running_service_and_files_deeper_down_are_none(path: str) -> None:
    assert not paths.is_set_file(path)


_PARTS = st.lists(st.sampled_from(["..", ".", "", "a", "C:", "\\", "/", "\x00", "é", "𝒳"]))


@given(st.text(max_size=60) | _PARTS.map("/".join))
@settings(max_examples=400, deadline=None)
def test_whatever_is_given_a_path_stays_below_its_source_or_is_refused(raw: str) -> None:
    try:
        path = paths.clean(raw)
    except paths.PathError:
        return
    assert path == paths.clean(path)
    assert not path.startswith("/")
    assert not set(path.split("/")) & {"", ".", ".."}
    assert (PurePosixPath("/source") / path).is_relative_to("/source")
    assert "\x00" not in path
