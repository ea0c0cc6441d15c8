"""Fakes of Google Calendar and Microsoft Graph that speak the real protocols, over HTTP.

`python -m tests.external_calendars.fakes` runs them alone, for `./run --fake-providers`.
"""
