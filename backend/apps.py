"""The one Django app that holds the models."""

from django.apps import AppConfig


class BackendConfig(AppConfig):
    name = "backend"
    verbose_name = "Touchstone"

    def ready(self) -> None:
        from backend import checks, logs  # noqa: F401  importing checks registers them

        logs.configure()
