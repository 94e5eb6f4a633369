"""`/metrics`: the service's state for Prometheus. Counts and ages only; no name, text or id of anybody's."""

import hmac

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from backend.queries import gauges


class _Rows(Collector):
    def collect(self) -> list[GaugeMetricFamily]:
        found = []
        for gauge in gauges.read():
            family = GaugeMetricFamily(f"touchstone_{gauge.name}", gauge.help, labels=gauge.labels)
            for labels, value in sorted(gauge.values.items()):
                family.add_metric(labels, value)
            found.append(family)
        return found


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Open, unless TOUCHSTONE_METRICS_TOKEN is set: then only for that bearer token."""
    wanted = settings.METRICS_TOKEN
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if wanted and not hmac.compare_digest(given.encode(), wanted.encode()):
        return HttpResponse("The token in TOUCHSTONE_METRICS_TOKEN is needed.\n", status=401, content_type="text/plain")
    registry = CollectorRegistry()
    registry.register(_Rows())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
