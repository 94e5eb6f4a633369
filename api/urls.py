"""All addresses: the API under /api/v1/, health, and the console's pages."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
