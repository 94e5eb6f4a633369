"""A Parquet table as JSON lines, so that the formats above need to know nothing of it."""

import io
import json

from backend.core.errors import ErrorCode, QuestionSetError
from backend.core.question_sets.notes import refuse

_MAGIC = b"PAR1"
_LEAST_BYTES = 12


def is_parquet(data: bytes) -> bool:
    return data.startswith(_MAGIC)


def to_jsonl(data: bytes, *, max_rows: int, max_bytes: int) -> bytes:
    """One object a row. Read batch by batch, so that a small file that unpacks to a large one is noticed in time.

    Raises QuestionSetError: EVAL_FILE for a damaged table, EVAL_TOO_LARGE.
    """
    # Heavy, and few sets come as Parquet: not loaded before one does.
    from arro3.io import read_parquet

    if len(data) < _LEAST_BYTES or not data.endswith(_MAGIC):
        raise _damaged("its end is missing")
    lines: list[bytes] = []
    size = 0
    try:
        for batch in read_parquet(io.BytesIO(data)):
            columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
            for place in range(batch.num_rows):
                row = {name: values[place] for name, values in columns.items()}
                lines.append(json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass"))
                size += len(lines[-1])
            _check_size(len(lines), size, max_rows=max_rows, max_bytes=max_bytes)
    except (QuestionSetError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # The reader panics over a damaged file, with an error that is no Exception.
        raise _damaged(str(error)) from error
    return b"\n".join(lines)


def _check_size(n_rows: int, size: int, *, max_rows: int, max_bytes: int) -> None:
    if n_rows > max_rows or size > max_bytes:
        raise refuse(
            f"The table unpacks to more than {max_rows:,} rows or {max_bytes:,} bytes. Split the set.",
            code=ErrorCode.EVAL_TOO_LARGE,
        )


def _damaged(what: str) -> QuestionSetError:
    return refuse(f"The Parquet file cannot be read ({what[:200]}). Write it again, or send its rows as JSONL.")
