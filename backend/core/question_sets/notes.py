"""What is told about a file while it is read: its faults and its warnings, each with its place."""

from dataclasses import dataclass

from backend.core.errors import ErrorCode, Fault, QuestionSetError

MAX_FAULTS = 100
_MAX_WARNINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value stands: a line of the file, or a field path such as `questions[3]` (JSON in a request)."""

    line: int | None = None
    path: str = ""
    file: str = ""  # told where a set is several files

    def __truediv__(self, name: str | int) -> "Place":
        # Made for every value that is read: `dataclasses.replace` costs three times this.
        part = f"[{name}]" if isinstance(name, int) else f".{name}" if self.path else name
        return Place(line=self.line, path=self.path + part, file=self.file)

    def __str__(self) -> str:
        """What a sentence opens with: the line, else the field path."""
        if self.line is not None:
            return f"{self.file} line {self.line}" if self.file else f"line {self.line}"
        return self.path or self.file


class Notes:
    """Collects faults (all are told together, the first 100) and warnings (one per kind, with their number)."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._warnings: dict[str, tuple[str, int]] = {}

    def fault(self, code: ErrorCode, message: str, *, place: Place) -> None:
        """Note a fault; raises QuestionSetError at the hundredth, so that a hopeless file ends early."""
        where = str(place)
        self._faults.append(
            Fault(
                code=code,
                message=f"{where}: {message}" if where else message,
                line=place.line,
                field=place.path or None,
            )
        )
        if len(self._faults) >= MAX_FAULTS:
            self.raise_faults()

    def invalid(self, message: str, *, place: Place) -> None:
        self.fault(ErrorCode.EVAL_CASE_INVALID, message, place=place)

    def unreadable(self, message: str, *, place: Place) -> None:
        self.fault(ErrorCode.EVAL_FILE, message, place=place)

    def warn(self, kind: str, message: str, *, place: Place) -> None:
        """Note a warning. Later ones of the same kind only raise its number."""
        known = self._warnings.get(kind)
        if known:
            self._warnings[kind] = (known[0], known[1] + 1)
        elif len(self._warnings) < _MAX_WARNINGS:
            where = str(place)
            self._warnings[kind] = (f"{where}: {message}" if where else message, 1)

    @property
    def n_faults(self) -> int:
        return len(self._faults)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(text if n == 1 else f"{text} (and {n - 1} more like it)" for text, n in self._warnings.values())

    def raise_faults(self) -> None:
        if self._faults:
            raise QuestionSetError(sorted(self._faults, key=lambda fault: fault.line or 0))


def refuse(message: str, *, code: ErrorCode = ErrorCode.EVAL_FILE, line: int | None = None) -> QuestionSetError:
    """The error of a file that is refused as a whole, for one reason."""
    text = f"line {line}: {message}" if line is not None else message
    return QuestionSetError([Fault(code=code, message=text, line=line)])
