"""What gunicorn serves."""

import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

from backend import dispatch, production

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
application = get_wsgi_application()
dispatch.hurry()

if _fault := production.fault(key=settings.SECRET_KEY, is_kept=settings.SECRET_KEY_IS_KEPT, debug=settings.DEBUG):
    raise ImproperlyConfigured(_fault)
