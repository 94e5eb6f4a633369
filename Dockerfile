# One image for the web process, the workers and beat; docker-compose.yml and the Procfile say which runs.
FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY requirements.lock pyproject.toml README.md ./
RUN python -m venv /venv \
 && /venv/bin/python -m pip install --require-hashes --no-deps -r requirements.lock
COPY . .
RUN /venv/bin/python -m pip install --no-deps --no-build-isolation .

FROM python:3.11-slim-bookworm
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 TOUCHSTONE_HOME=/var/lib/touchstone
RUN useradd --system --create-home --home-dir /var/lib/touchstone touchstone
COPY --from=build /venv /venv
COPY --from=build --chown=touchstone:touchstone /app /app
WORKDIR /app
USER touchstone
EXPOSE 8000
# The compose file overrides this with each of the Procfile's commands.
CMD ["sh", "-c", "python manage.py migrate --noinput && exec gunicorn api.wsgi --bind 0.0.0.0:8000 --worker-class gthread --workers 2 --threads 8"]
