"""All settings, from the environment. Every variable stands in .env.example, which a test compares with this file."""

import os
import secrets
import sys
from pathlib import Path
from typing import Any

from backend import env

BASE_DIR = Path(__file__).resolve().parent.parent
HOME = Path(env.text("TOUCHSTONE_HOME", ".touchstone")).absolute()

DEBUG = env.flag("TOUCHSTONE_DEBUG")
_key_file = HOME / "secret_key"
# Without a configured key each process makes its own: good enough for one command, and `up` keeps one in its home.
SECRET_KEY = env.text("TOUCHSTONE_SECRET_KEY") or (
    _key_file.read_text().strip()
    if _key_file.is_file() and os.access(_key_file, os.R_OK)
    else secrets.token_urlsafe(48)
)
ALLOWED_HOSTS = env.words("TOUCHSTONE_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("TOUCHSTONE_ORIGINS")
# Keys that seal what workspaces entrust to us (services/provider_keys.py): the first seals, each opens. Without one,
# `up` takes them from the key in its home; a server of your own stores no such key.
SECRET_KEYS = env.words("TOUCHSTONE_SECRET_KEYS") or (
    [env.sealing_key(_key_file.read_text().strip())] if os.access(_key_file, os.R_OK) else []
)
SECRET_KEY_IS_KEPT = bool(env.text("TOUCHSTONE_SECRET_KEY")) or os.access(_key_file, os.R_OK)
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in (
        ("UserAttributeSimilarityValidator", {}),
        ("MinimumLengthValidator", {"min_length": 12}),
        ("CommonPasswordValidator", {}),
        ("NumericPasswordValidator", {}),
    )
]
SECURE_SSL_REDIRECT = env.flag("TOUCHSTONE_HTTPS")
# Health is asked for from inside, past the proxy that speaks HTTPS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
# W005, W021: whether all hosts beside ours speak HTTPS is not ours to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.flag("TOUCHSTONE_HTTPS")
SECURE_HSTS_SECONDS = 31_536_000 if env.flag("TOUCHSTONE_HTTPS") else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("TOUCHSTONE_HTTPS") else None
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "backend",
    "console",
]
MIDDLEWARE = [
    "api.request_id.RequestIdMiddleware",
    "api.unread_body.UnreadBodyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "api.content_security.ContentSecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "api.urls"
WSGI_APPLICATION = "api.wsgi.application"
APPEND_SLASH = False
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "/static/"
# Static files are served from where they lie: there is nothing to collect.
STATIC_ROOT = None
WHITENOISE_USE_FINDERS = True
LOGIN_URL = "/login"
# What a form did is told on the next page, once; in the session, since a cookie holds little.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DATABASE_URL = env.text("DATABASE_URL", "postgresql://postgres@localhost/touchstone")
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **env.database(DATABASE_URL),
        # Reused over tasks and requests, and checked before use: survives a restart of PostgreSQL.
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
    }
}
# Prepared statements stay off: a cached generic plan silently turned an exact search into an approximate one.
DATABASES["default"]["OPTIONS"].setdefault("prepare_threshold", None)
# What session settings the connections begin with, unless the address already says.
DATABASES["default"]["OPTIONS"].setdefault(
    "options", "-c idle_in_transaction_session_timeout=120s -c lock_timeout=15s -c timezone=UTC"
)

REDIS_URL = env.text("REDIS_URL", "redis://localhost:6379/0")

# ---- who may do what (docs/access.md)
# Requests a minute of one token or user; a quarter of them at once. 0: no limit.
REQUESTS_PER_MINUTE = env.whole("TOUCHSTONE_REQUESTS_PER_MINUTE", 3000)
# Proxies before us that add to X-Forwarded-For: how many of its entries, from the right, are theirs to say.
PROXIES = env.whole("TOUCHSTONE_PROXIES", 0)
AUDIT_DAYS = env.whole("TOUCHSTONE_AUDIT_DAYS", 365, low=1)
# Hosts and networks of the inside that webhooks and providers of a workspace may be at.
URL_ALLOW = env.words("TOUCHSTONE_URL_ALLOW")

# ---- the run engine
SLICE_LEASE_SECONDS = env.number("TOUCHSTONE_LEASE_SECONDS", 30, low=1)
SLICE_HEARTBEAT_SECONDS = env.number("TOUCHSTONE_HEARTBEAT_SECONDS", SLICE_LEASE_SECONDS / 3, low=0.1)
SLICE_DEADLINE_SECONDS = env.number("TOUCHSTONE_SLICE_DEADLINE_SECONDS", 600, low=1)
DOORBELL_LOST_SECONDS = env.number("TOUCHSTONE_DOORBELL_LOST_SECONDS", 60, low=1)
TICK_SECONDS = env.number("TOUCHSTONE_TICK_SECONDS", 5, low=0.2)
EVALUATION_DEADLINE_SECONDS = env.number("TOUCHSTONE_EVALUATION_DEADLINE_SECONDS", 86_400, low=1)
# Passages of an Index up to which vectors are searched exactly where a configuration says nothing.
EXACT_UP_TO = env.whole("TOUCHSTONE_EXACT_UP_TO", 100_000)
EVALUATION_WINDOW = env.whole("TOUCHSTONE_EVALUATION_WINDOW", 400, low=1)
SEARCH_SLOTS = env.whole("TOUCHSTONE_SEARCH_SLOTS", os.cpu_count() or 2, low=1)
PROVIDER_SLOTS = env.whole("TOUCHSTONE_PROVIDER_SLOTS", 32, low=1)
PROVIDER_TIMEOUT_SECONDS = env.number("TOUCHSTONE_PROVIDER_TIMEOUT_SECONDS", 60, low=0.1)
PROVIDER_STALL_SECONDS = env.number("TOUCHSTONE_PROVIDER_STALL_SECONDS", 120, low=0)
PROVIDER_PROBE_SECONDS = env.number("TOUCHSTONE_PROVIDER_PROBE_SECONDS", 10, low=0.1)
# What a workspace may have unless its own limits say otherwise (docs/operations.md): questions begun and not ended,
# evaluations that have not ended, money a month (none: no limit).
WORKSPACE_WINDOW = env.whole("TOUCHSTONE_WORKSPACE_WINDOW", 1600, low=1)
OPEN_EVALUATIONS = env.whole("TOUCHSTONE_OPEN_EVALUATIONS", 500, low=1)
SPEND_PER_MONTH = env.money("TOUCHSTONE_SPEND_PER_MONTH")
MAX_QUESTIONS = env.whole("TOUCHSTONE_MAX_QUESTIONS", 100_000, low=1)
MAX_SET_BYTES = env.whole("TOUCHSTONE_MAX_SET_BYTES", 50 * 1024 * 1024, low=1)
MAX_DOCUMENT_BYTES = env.whole("TOUCHSTONE_MAX_DOCUMENT_BYTES", 50 * 1024 * 1024, low=1)
# Folders below which a folder source may lie; none named: any that the server can read.
FOLDER_ROOTS = env.words("TOUCHSTONE_FOLDER_ROOTS")
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_SET_BYTES + 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FILES = 2000
# A path and a collection for each file.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2 * DATA_UPLOAD_MAX_NUMBER_FILES + 100
# How many evaluations of each base keep their rankings and snippets; older ones keep their figures.
KEEP_EVALUATIONS = env.whole("TOUCHSTONE_KEEP_EVALUATIONS", 20, low=1)

# ---- alerts: docs/nightly.md
# The first wait after an attempt that failed; it doubles, up to an hour, for a day.
ALERT_RETRY_SECONDS = env.number("TOUCHSTONE_ALERT_RETRY_SECONDS", 15, low=0.1)
# Where people open the console, for the links in messages.
PUBLIC_URL = env.text("TOUCHSTONE_PUBLIC_URL").rstrip("/")
EMAIL_HOST = env.text("TOUCHSTONE_EMAIL_HOST")
EMAIL_PORT = env.whole("TOUCHSTONE_EMAIL_PORT", 587, low=1)
EMAIL_HOST_USER = env.text("TOUCHSTONE_EMAIL_USER")
EMAIL_HOST_PASSWORD = env.text("TOUCHSTONE_EMAIL_PASSWORD")
EMAIL_USE_TLS = env.flag("TOUCHSTONE_EMAIL_TLS", default=True)
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.text("TOUCHSTONE_EMAIL_FROM", "touchstone@localhost")

# How many cached vectors, and how many rerank scores, a workspace keeps.
CACHE_ROWS = env.whole("TOUCHSTONE_CACHE_ROWS", 1_000_000, low=1)
CACHE_DIR = Path(env.text("TOUCHSTONE_CACHE_DIR", str(HOME / "cache")))

# ---- what searches use when nothing else says
RERANKER = env.text("TOUCHSTONE_RERANKER", "local")
EMBEDDER = env.text("TOUCHSTONE_EMBEDDER", "local")
# The chat model that makes questions and answers them, and the one that judges; none unless named.
LLM = env.text("TOUCHSTONE_LLM")
JUDGE = env.text("TOUCHSTONE_JUDGE")
# What calls cost, by provider and unit (docs/providers.md).
PRICES = env.table("TOUCHSTONE_PRICES")
FTS_LANGUAGE = env.text("TOUCHSTONE_FTS_LANGUAGE", "simple")

# ---- Celery: the broker carries doorbells, nothing else (docs/architecture.md)
CELERY_BROKER_URL = env.redis_for_celery(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_SOFT_TIME_LIMIT = int(SLICE_DEADLINE_SECONDS) + 60
CELERY_TASK_TIME_LIMIT = int(SLICE_DEADLINE_SECONDS) + 120
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
    "visibility_timeout": 2 * CELERY_TASK_TIME_LIMIT + 60,
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    "socket_timeout": 15,
    "socket_connect_timeout": 3,
    "health_check_interval": 25,
    "global_keyprefix": "touchstone:",
}
if not CELERY_BROKER_URL.startswith("redis+socket"):
    CELERY_BROKER_TRANSPORT_OPTIONS["socket_keepalive"] = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TASK_SEND_SENT_EVENT = False
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 1_500_000
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True
# Undocumented, and what keeps one database connection per process (docs/decisions/0004): closed only when it is dead.
CELERY_DB_REUSE_MAX = 1_000_000

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["api.auth.TokenAuthentication", "api.auth.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["api.auth.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["api.throttling.CallerThrottle"],
    "DEFAULT_PAGINATION_CLASS": "api.paging.CursorPagination",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "api.errors.handle",
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Touchstone",
    "DESCRIPTION": "Measures how well a retrieval system finds the passages that answer people's questions.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # Fields of one name and several meanings each get the name of what they mean.
    "ENUM_NAME_OVERRIDES": {
        "EvaluationState": "api.enums.EVALUATION_STATES",
        "RunState": "api.enums.RUN_STATES",
        "RunKind": "api.enums.RUN_KINDS",
        "Cause": "api.enums.CAUSES",
        "QuestionSetFormat": "api.enums.SET_FORMATS",
        "RankingsFormat": "api.enums.RANKING_FORMATS",
        "DocumentState": "api.enums.DOCUMENT_STATES",
        "AnswerOutcome": "api.enums.ANSWER_OUTCOMES",
        "DraftState": "api.enums.DRAFT_STATES",
        "QuestionKind": "api.enums.QUESTION_KINDS",
        "IngestionState": "api.enums.INGESTION_STATES",
        "JobState": "api.enums.JOB_STATES",
        "WaitingState": "api.enums.WAITING_STATES",
        "JobKind": "api.enums.JOB_KINDS",
        "IndexState": "api.enums.INDEX_STATES",
        "KnowledgeBaseState": "api.enums.BASE_STATES",
        "Level": "api.enums.LEVELS",
        "Outcome": "api.enums.OUTCOMES",
        "SourceKind": "api.enums.SOURCE_KINDS",
        "Mode": "backend.core.configs.MODES",
        "FiringState": "api.enums.FIRING_STATES",
        "BaselineState": "api.enums.BASELINE_STATES",
        "GateOutcome": "api.enums.GATE_OUTCOMES",
        "RuleKind": "api.enums.RULE_KINDS",
        "RuleStatus": "api.enums.RULE_STATUSES",
        "AlertKind": "api.enums.ALERT_KINDS",
        "AlertState": "api.enums.ALERT_STATES",
        "AlertTargetKind": "api.enums.TARGET_KINDS",
        "DeliveryState": "api.enums.DELIVERY_STATES",
    },
}

# Who may read /metrics; empty: everybody who can reach it.
METRICS_TOKEN = env.text("TOUCHSTONE_METRICS_TOKEN")
# manage.py prints for a person: of the log only what is wrong. The processes that serve do not come through it.
LOG_LEVEL = env.text("TOUCHSTONE_LOG_LEVEL", "WARNING" if Path(sys.argv[0]).name == "manage.py" else "INFO")
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": "structlog.stdlib.ProcessorFormatter",
            "processors": "ext://backend.logs.PROCESSORS",
            "foreign_pre_chain": "ext://backend.logs.PRE_CHAIN",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "touchstone": {"level": LOG_LEVEL},
        "celery": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
    },
}
