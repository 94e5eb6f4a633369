"""What gunicorn serves."""

import gc
import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from backend import dispatch, production

# As in workers/app.py: nothing that an import makes is garbage.
gc.disable()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
application = get_wsgi_application()
dispatch.hurry()

if _fault := production.fault(key=settings.SECRET_KEY, is_kept=settings.SECRET_KEY_IS_KEPT, debug=settings.DEBUG):
    raise ImproperlyConfigured(_fault)

# All addresses and what they import: else the first request waits for them.
_ = get_resolver().url_patterns
gc.freeze()
gc.enable()
