"""How numbers are written on pages."""

from django import template

register = template.Library()


@register.filter
def figure(value: float | None) -> str:
    """Three decimals, as everywhere; a value that is not there is told as such."""
    return "n/a" if value is None else f"{value:.3f}"
