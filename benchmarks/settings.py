"""The service's settings, with the URLs of the null endpoints."""

from scheduling.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.urls"
