# One image for web, worker, beat and migrations; docker-compose.yml sets their commands.
# Images are pinned by digest, for all platforms: sh scripts/pin_images.sh
# For two platforms at once: docker buildx bake (docker-bake.hcl)
FROM python:3.13-slim@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6 AS docs

WORKDIR /srv/app
COPY requirements-docs.txt .
RUN pip install --no-cache-dir --require-hashes --requirement requirements-docs.txt
COPY mkdocs.yml ./
COPY docs docs
RUN NO_MKDOCS_2_WARNING=1 mkdocs build --strict --site-dir /srv/docs

FROM python:3.13-slim@sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    VAR_DIR=/var/lib/scheduling STATIC_ROOT=/srv/static DOCS_ROOT=/srv/docs METRICS_DIR=/dev/shm/metrics

WORKDIR /srv/app
COPY requirements.txt .
RUN pip install --require-hashes --requirement requirements.txt

COPY pyproject.toml ./
COPY manage.py ./
COPY gunicorn.conf.py ./
COPY scheduling scheduling
COPY common common
COPY apps_config apps_config
COPY availability availability
COPY bookings bookings
COPY notifications notifications
COPY external_calendars external_calendars
COPY access access
COPY booking_pages booking_pages
COPY office office
COPY ops ops
COPY --from=docs /srv/docs /srv/docs

# The code belongs to root: the service can write only to its data folder.
# Files that the settings create during the build (such as a secret key) are deleted again.
# Our code is compiled here, because the service can't store what Python compiles at its start.
RUN groupadd --system --gid 10001 scheduling \
    && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/scheduling scheduling \
    && python manage.py compile_languages \
    && python manage.py collectstatic --noinput --verbosity 0 \
    && python -m compileall -q --invalidation-mode unchecked-hash . \
    && rm -rf /var/lib/scheduling \
    && install --directory --owner scheduling --group scheduling --mode 700 /var/lib/scheduling
USER 10001:10001

EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["gunicorn", "scheduling.wsgi", "--bind", "0.0.0.0:8000", "--preload", "--no-control-socket", \
     "--worker-tmp-dir", "/dev/shm", "--graceful-timeout", "25"]
