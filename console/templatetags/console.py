"""What every page is made of: navigation, faults at their fields, states with their tone, times, pages of a list."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console import nav
from console.faults import Shown

register = template.Library()

_TONES: dict[str, str] = {
    **dict.fromkeys(("completed", "ready", "indexed", "scored", "ok", "passed", "resolved", "active"), "good"),
    **dict.fromkeys(("failed", "error", "unavailable", "open", "missed"), "bad"),
    **dict.fromkeys(
        (
            *("queued", "preparing", "running", "aggregating", "cancelling"),
            *("pending", "building", "indexing", "rebuilding"),
        ),
        "busy",
    ),
}


@register.simple_tag(takes_context=True)
def navigation(context: template.Context) -> list[nav.ShownGroup]:
    request = context.get("request")
    if request is None or not hasattr(request, "scopes"):
        return []
    match = request.resolver_match
    return nav.shown(request.scopes, (match.url_name or "") if match else "")


@register.filter
def may(request: HttpRequest, scope: str) -> bool:
    """`{% if request|may:"knowledge-bases:write" %}`: whether the reader has this scope."""
    return any(one.value == scope for one in getattr(request, "scopes", ()))


@register.filter
def tone(state: object) -> str:
    """The class of a state's chip: good, bad, busy, or soft for all others."""
    return _TONES.get(str(state), "soft")


@register.filter
def words(value: object) -> str:
    """A name of the machine's as people read it: `not_run` as `not run`."""
    return str(value).replace("_", " ")


@register.simple_tag
def chip(state: object, text: object = "") -> SafeString:
    """A state with its tone."""
    return format_html('<span class="chip {}">{}</span>', tone(state), words(text or state))


@register.simple_tag
def moment(at: datetime | None, empty: str = "never") -> SafeString:
    """A time in UTC, for people and for machines."""
    if at is None:
        return format_html('<span class="muted">{}</span>', empty)
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), at.strftime("%Y-%m-%d %H:%M UTC"))


@register.simple_tag
def fault_at(fault: Shown | None, field: str) -> SafeString:
    """The sentence of a field's fault, named `<field>-fault`; nothing where there is none."""
    message = fault.by_field.get(field) if fault else None
    if message is None:
        return SafeString("")
    return format_html('<p class="fault" id="{}-fault">{}</p>', field, message)


@register.simple_tag
def marked(fault: Shown | None, field: str) -> SafeString:
    """The attributes of a field that has a fault."""
    if not fault or field not in fault.by_field:
        return SafeString("")
    return format_html('aria-invalid="true" aria-describedby="{}-fault"', field)


@register.simple_tag(takes_context=True)
def here(context: template.Context, **changed: object) -> str:
    """This page's address with some of its query changed: one that is empty goes, and the cursor with any change."""
    request: HttpRequest = context["request"]
    query = request.GET.copy()
    query.pop("cursor", None)
    for name, value in changed.items():
        query.pop(name, None)
        if value not in {None, ""}:
            query[name] = str(value)
    return f"{request.path}?{query.urlencode()}" if query else request.path


@register.filter
def query(values: Mapping[str, Any]) -> str:
    """A mapping as the query of an address."""
    return urlencode({name: value for name, value in values.items() if value not in {None, ""}}, doseq=True)


@register.filter
def size(n_bytes: int) -> str:
    """Bytes as people say them."""
    amount = float(n_bytes)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} GiB"


@register.filter
def count(value: int | None) -> str:
    """A number with its thousands apart."""
    return "n/a" if value is None else f"{value:,}"


@register.filter
def short(value: object) -> str:
    """The beginning of a fingerprint or id."""
    return str(value)[:8]
