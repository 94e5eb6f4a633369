"""`/metrics`: the service's state for Prometheus. Counts, ages and sums only; no name, text or id of anybody's."""

import hmac
from collections.abc import Iterator

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from backend.queries import broker, gauges
from backend.queries.gauges import Gauge


class _State(Collector):
    def collect(self) -> Iterator[Metric]:
        for gauge in (*gauges.read(), *broker.gauges()):
            yield _family(GaugeMetricFamily, gauge)
        for counter in gauges.counters():
            yield _family(CounterMetricFamily, counter)


def _family(kind: type[GaugeMetricFamily] | type[CounterMetricFamily], told: Gauge) -> Metric:
    family = kind(f"touchstone_{told.name}", told.help, labels=told.labels)
    for labels, value in sorted(told.values.items()):
        family.add_metric(labels, value)
    return family


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Open, unless TOUCHSTONE_METRICS_TOKEN is set: then only for that bearer token."""
    wanted = settings.METRICS_TOKEN
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if wanted and not hmac.compare_digest(given.encode(), wanted.encode()):
        return HttpResponse("The token in TOUCHSTONE_METRICS_TOKEN is needed.\n", status=401, content_type="text/plain")
    registry = CollectorRegistry()
    registry.register(_State())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
