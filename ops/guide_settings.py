"""The guide's tables of settings. A mark names their serializer, and single settings if the table
has only these:

    <!-- settings of apps: public_challenge blocked_customers -->
"""

import re
from collections.abc import Mapping
from typing import cast

from rest_framework import serializers

from apps_config.serializers import AppSettingsSerializer, ColorField
from availability.serializers.fields import (
    ConstraintsField,
    InstantTextField,
    MomentField,
    WeightsField,
)
from availability.serializers.projects import (
    BookingDefaultsSerializer,
    ChooseResourceField,
    ConferenceSettingsSerializer,
    GraphField,
    MaxStartsSerializer,
    PayUrlField,
    ProjectSettingsSerializer,
    TermsSerializer,
)
from common.api import fields as api
from common.api.serializers import ObjectSerializer
from common.time.durations import duration_in_words

TABLE = re.compile(
    r"(<!-- settings of (\w+)(?:: ([\w ]+))? -->\n).*?(<!-- end of settings -->\n)", re.DOTALL
)
SERIALIZERS: Mapping[str, type[ObjectSerializer]] = {
    "apps": AppSettingsSerializer,
    "projects": ProjectSettingsSerializer,
    "availability": TermsSerializer,
    "booking": BookingDefaultsSerializer,
}
# Fields whose values are not only texts of some length.
VALUES: Mapping[type[serializers.Field], str] = {
    serializers.BooleanField: "`true`, `false`",
    api.EmailField: "an e-mail address",
    api.UrlField: "a web address",
    ChooseResourceField: "`true`, `false`, the name of a requirement",
    PayUrlField: "a web address with placeholders",
    api.OriginField: "an origin (`https://shop.example`)",
    api.LanguageField: "a [language](booking-page.md#languages)",
    api.ZoneField: "an IANA time zone",
    ColorField: "a colour (`#1f4f99`)",
    ConferenceSettingsSerializer: "an object, see [video calls](bookings.md#video-calls)",
    ConstraintsField: "a list of rules",
    MaxStartsSerializer: "`{quantity, per}`: 1 to 1,000, and 1 minute to 24 hours",
    GraphField: "a [graph](bookings.md#graphs)",
    InstantTextField: "an instant",
    MomentField: "an instant, a date, a relative time",
    WeightsField: "numbers by resource id",
}


def with_setting_tables(chapter: str) -> str:
    """Return the text of a chapter with the tables of the present settings."""
    return TABLE.sub(
        lambda found: found[1] + setting_table(found[2], (found[3] or "").split()) + found[4],
        chapter,
    )


def setting_table(owner: str, names: list[str]) -> str:
    """Return the table of these settings of a serializer; [] for all."""
    fields = dict(SERIALIZERS[owner]().fields)
    rows = ["| setting | meaning | values | default |", "|---|---|---|---|"]
    for name in names or fields:
        field = fields[name]
        columns = (f"`{name}`", field.help_text, values_of(field), default_of(field))
        rows.append(f"| {' | '.join(map(str, columns))} |")
    return "\n".join(rows) + "\n"


def values_of(field: serializers.Field) -> str:
    """Return a field's values in words: `1 to 1,000`."""
    if words := next((VALUES[kind] for kind in type(field).__mro__ if kind in VALUES), ""):
        return words
    if isinstance(field, serializers.ChoiceField):
        return ", ".join(f"`{choice}`" for choice in field.choices)
    if isinstance(field, serializers.IntegerField):
        return f"{field.min_value:,} to {field.max_value:,}"
    if isinstance(field, api.DurationField):
        least = duration_in_words(field.least) if field.least else "0"
        return f"{least} to {duration_in_words(field.most)}"
    if isinstance(field, api.ListOf):
        return f"a list of at most {field.max_items:,}, each {values_of(field.child)}"
    return f"at most {cast(serializers.CharField, field).max_length:,} characters"


def default_of(field: serializers.Field) -> str:
    if field.initial in (None, "", []):
        return "none"
    return f"`{str(field.initial).lower() if isinstance(field.initial, bool) else field.initial}`"
