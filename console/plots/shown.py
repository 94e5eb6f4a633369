"""A picture with its addresses, for `plots/plot.html`."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from console.plots.picture import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    picture: Picture
    base: str
    query: tuple[tuple[str, str], ...] = ()

    @property
    def light(self) -> str:
        return self._address("svg", theme="light")

    @property
    def dark(self) -> str:
        return self._address("svg", theme="dark")

    @property
    def svg(self) -> str:
        return self._address("svg", theme="light", download="1")

    @property
    def png(self) -> str:
        return self._address("png", theme="light", download="1")

    def _address(self, form: str, **more: str) -> str:
        return f"{self.base}{self.picture.name}.{form}?{urlencode([*self.query, *more.items()])}"


def of_run(picture: Picture, run_id: object) -> Shown:
    address = reverse("run-plot", kwargs={"run_id": str(run_id), "name": picture.name, "form": "svg"})
    return Shown(picture=picture, base=address.removesuffix(f"{picture.name}.svg"))


def of_comparison(picture: Picture, *, baseline: object, candidate: object, metric: str) -> Shown:
    query = (("baseline", str(baseline)), ("candidate", str(candidate)), ("metric", metric))
    return Shown(picture=picture, base="/compare/plots/", query=query)


def of_history(picture: Picture, query: Mapping[str, str]) -> Shown:
    """`query` as the address takes it (console/plots/addresses.py)."""
    given = tuple((name, value) for name, value in query.items() if value)
    return Shown(picture=picture, base="/plots/", query=given)
