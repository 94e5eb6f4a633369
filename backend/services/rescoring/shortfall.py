"""What stored rankings cannot answer, counted over all questions before it is told."""

from dataclasses import dataclass

from backend.core.errors import ErrorCode, Fault, ValidationError
from backend.services.evaluation_requests import Measured


@dataclass(slots=True, kw_only=True)
class Shortfall:
    """`deepest`: the top_k that every question but the forgotten ones could be scored at."""

    n_forgotten: int = 0
    n_too_short: int = 0
    deepest: int | None = None
    n_without_text: int = 0
    n_texts: int = 0

    def tell(self, measured: Measured) -> None:
        """Raises ValidationError if there is any."""
        faults = []
        if self.n_forgotten:
            faults.append((f"The rankings of {_questions(self.n_forgotten)} are not kept any more.", "run"))
        if self.n_too_short:
            can = (
                f"this level can be scored up to top_k {self.deepest}"
                if self.deepest
                else "this level cannot be scored from what was kept"
            )
            faults.append(
                (
                    (
                        f"The stored rankings of {_questions(self.n_too_short)} do not reach top_k {measured.top_k} at "
                        f"{measured.level} level: {can}. Evaluate again to look deeper."
                    ),
                    "top_k",
                )
            )
        if self.n_without_text:
            faults.append(
                (
                    (
                        f"The labels of {_questions(self.n_without_text)} look at text, and the text of {self.n_texts} "
                        "retrieved passages is gone: they were indexed again since, or are an imported ranking's, of "
                        "which only the beginning is kept. Evaluate or import again."
                    ),
                    "version",
                )
            )
        if faults:
            raise ValidationError(
                " ".join(message for message, _ in faults),
                field=faults[0][1],
                faults=[Fault(code=ErrorCode.VALIDATION, message=message, field=where) for message, where in faults],
            )


def _questions(n: int) -> str:
    return "1 question" if n == 1 else f"{n} questions"
