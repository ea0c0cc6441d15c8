"""The rows of reports."""

from rest_framework import serializers

from common.api.fields import IdField
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer


def rate(help_text: str) -> serializers.FloatField:
    return serializers.FloatField(min_value=0, allow_null=True, help_text=help_text)


def number(help_text: str = "") -> serializers.IntegerField:
    return serializers.IntegerField(min_value=0, help_text=help_text)


class NamedSerializer(ObjectSerializer):
    """An object with its present name."""

    examples = {"id": example_id(12), "name": "Dr. Emmett Brown"}

    id = IdField()
    name = serializers.CharField()


class ReportRowSerializer(ObjectSerializer):
    """What the numbers of a row are about: only what `by` names."""

    on_request = ("resource", "project", "tag", "week", "month")
    in_example = ("resource", "week")

    resource = NamedSerializer()
    project = NamedSerializer(allow_null=True)
    tag = serializers.CharField(help_text="Of resources, as they are now.")
    week = serializers.DateField(help_text="Its Monday.")
    month = serializers.DateField(help_text="Its first day.")


class UtilisationSerializer(ReportRowSerializer):
    """How much of the open hours is booked."""

    examples = {"booked_seconds": 93_600, "open_seconds": 144_000, "utilisation": 0.65}

    booked_seconds = number("Of bookings that take place, in full length.")
    open_seconds = serializers.IntegerField(
        min_value=0, allow_null=True, help_text="Null by project: a project has no hours."
    )
    utilisation = rate("Booked by open; null without hours.")


class OutcomesSerializer(ReportRowSerializer):
    """What has become of the bookings."""

    examples = {
        "bookings": 40,
        "kept": 34,
        "cancelled": 2,
        "cancelled_by_customer": 4,
        "attended": 30,
        "no_show": 2,
        "cancellation_rate": 0.15,
        "no_show_rate": 0.0588,
    }

    bookings = number("All but drafts and groups: their seats count.")
    kept = number("That take place or have taken place.")
    cancelled = number("By staff.")
    cancelled_by_customer = number()
    declined = number("Requests that were declined, or had no answer in time.")
    unpaid = number("Whose payment did not come in time.")
    pending = number("That wait for an answer or a payment.")
    attended = number("By `outcome`.")
    no_show = number("By `outcome`.")
    cancellation_rate = rate("Cancelled, by whomever, of those kept and cancelled.")
    no_show_rate = rate("No-shows of those kept.")


class LeadTimeSerializer(ReportRowSerializer):
    """How long before their start the bookings were made, as it is now."""

    examples = {
        "bookings": 40,
        "average_days": 6.25,
        "lead_1_day": 8,
        "lead_3_days": 9,
        "lead_1_week": 11,
        "lead_2_weeks": 7,
        "lead_4_weeks": 4,
        "lead_longer": 1,
    }

    bookings = number("All but drafts and groups.")
    average_days = serializers.FloatField(min_value=0, allow_null=True)
    lead_1_day = number("Less than a day before, or entered afterwards.")
    lead_3_days = number("1 to 3 days before.")
    lead_1_week = number("3 to 7 days before.")
    lead_2_weeks = number("1 to 2 weeks before.")
    lead_4_weeks = number("2 to 4 weeks before.")
    lead_longer = number("4 weeks before, or longer.")


class SourcesSerializer(ReportRowSerializer):
    """Where the bookings come from, by the source of their first log entry."""

    examples = {"bookings": 40, "api": 4, "widget": 27, "admin": 9}

    bookings = number("All but drafts and groups.")
    api = number("A server key, a resource's key or an access token.")
    widget = number("A booking page or a widget.")
    admin = number("The back office.")
    link = number("A link in an e-mail.")
    timer = number("The service's clock.")
    calendar = number("A connected calendar.")
    mail = number("An answer by e-mail.")
    mcp = number("An agent, by a tool of /mcp.")


class CustomersSerializer(ReportRowSerializer):
    """The bookings' customers, without erased ones. One of several bookings counts in each."""

    examples = {"new": 11, "returning": 31, "new_rate": 0.2619}

    new = number("Whose address is in no earlier booking of the app.")
    returning = number("All others.")
    new_rate = rate("New of all.")
