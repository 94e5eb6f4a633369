"""What every page is made of: navigation, faults at their fields, states with their tone, times, pages of a list."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console import nav
from console.faults import Shown

register = template.Library()

_TONES: dict[str, str] = {
    **dict.fromkeys(("completed", "ready", "indexed", "scored", "ok", "passed", "resolved", "active"), "good"),
    **dict.fromkeys(("delivered", "kept", "in_force", "started"), "good"),
    **dict.fromkeys(("broken", "unchecked", "uncovered", "outdated"), "bad"),
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


Crumbs = Sequence[tuple[str, str, tuple[object, ...]]]


@register.simple_tag
def trail(crumbs: Crumbs) -> SafeString:
    """Where a page lies: (label, address's name, its parts), outermost first."""
    items = format_html_join(
        "", '<li><a href="{}">{}</a></li>', ((reverse(name, args=parts), label) for label, name, parts in crumbs)
    )
    return format_html('<nav class="crumbs" aria-label="Where this is"><ol>{}</ol></nav>', items)


@register.simple_tag
def trail_back(crumbs: Crumbs) -> SafeString:
    """The way back from a question that is answered with no."""
    _, name, parts = crumbs[-1]
    return format_html('<a class="button plain" href="{}">Keep it</a>', reverse(name, args=parts))


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


@register.simple_tag
def spark(values: Sequence[float], label: str) -> SafeString:
    """A course of figures as a line of text's drawing, with its last point; nothing for fewer than two."""
    if len(values) < 2:
        return SafeString("")
    low, high = min(values), max(values)
    room = (high - low) or 1.0
    width, height, edge = 120.0, 32.0, 4.0
    places = [
        (
            edge + index * (width - 2 * edge) / (len(values) - 1),
            height - edge - (value - low) / room * (height - 2 * edge) if high > low else height / 2,
        )
        for index, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return format_html(
        '<svg class="spark" viewBox="0 0 120 32" role="img" aria-label="{}" preserveAspectRatio="xMinYMid meet">'
        '<polyline points="{}" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round"/>'
        '<circle cx="{}" cy="{}" r="2.5" fill="currentColor"/></svg>',
        label,
        line,
        f"{places[-1][0]:.1f}",
        f"{places[-1][1]:.1f}",
    )


@register.simple_tag
def timing(timings_ms: Mapping[str, float]) -> str:
    """What all stages of a search took together."""
    total = sum(timings_ms.values())
    return f"{total:,.0f} ms" if total < 10_000 else f"{total / 1000:,.1f} s"


@register.simple_tag
def p95(timings: Mapping[str, Any]) -> str:
    """The 95th percentile of a run's latency; nothing where it was not searched here."""
    value = (timings.get("latency_ms") or {}).get("p95")
    if value is None:
        return ""
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"


@register.filter
def settings_said(run: Any) -> str:
    """A run's settings that are no defaults, short."""
    config: Mapping[str, Any] = run.config or {}
    parts = [f"{run.level} level", f"top {run.top_k}"]
    if config.get("reranker"):
        parts.append(f"reranker {config['reranker']} ({config.get('rerank_depth', '')})")
    fusion = config.get("fusion") or {}
    if fusion:
        constant = fusion.get("constant")
        parts.append(f"{fusion.get('formula', '')} {'' if constant is None else f'{constant:g}'}".strip())
    if config.get("exact") is False:
        parts.append("approximate")
    if config.get("min_score") is not None:
        parts.append(f"min score {config['min_score']}")
    parts.append(f"config {run.fingerprints.config[:8]}")
    return ", ".join(parts)
