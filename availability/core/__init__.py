"""Compute availability: pure functions on epoch seconds, without Django, clock or database."""
