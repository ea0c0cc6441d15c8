"""The service's settings, with the null endpoints of the benchmarks beside its own."""

from scheduling.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.urls"
