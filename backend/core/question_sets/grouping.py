"""Lists of judgements (one row for each document) gathered into one case for each question."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from backend.core.question_sets.cases import RawCase
from backend.core.question_sets.notes import Place


@dataclass(slots=True)
class Group:
    """What is known so far of one question."""

    place: Place
    fields: dict[str, Any]
    expect: list[Any] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def add(self, expectation: Any, *, place: Place) -> None:
        self.expect.append(expectation)
        self.places.append(place)


class Groups:
    """Questions in the order in which they first come."""

    def __init__(self, *, opaque: bool) -> None:
        self._opaque = opaque
        self._groups: dict[Hashable, Group] = {}

    def get(self, key: Hashable, *, place: Place, fields: dict[str, Any]) -> Group:
        """The group of that key, made with these fields where it is new."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(place=place, fields=fields)
        return group

    def cases(self) -> Iterator[RawCase]:
        for group in self._groups.values():
            value = dict(group.fields)
            if group.expect:
                value["expect"] = group.expect
            yield RawCase(value=value, place=group.place, expect_places=tuple(group.places), opaque=self._opaque)


def number_or_text(value: Any) -> Any:
    """A number written as a text (`"100.000"`) as a number; anything else as it is, to be refused as a grade."""
    if not isinstance(value, str):
        return value
    try:
        return float(value.strip())
    except ValueError:
        return value
