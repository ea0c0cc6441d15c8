"""Customers (api.md section 4): of a booking, and all of an app."""

from collections.abc import Iterator, Mapping
from typing import Any

from rest_framework import serializers

from availability.serializers.fields import external_id_field
from bookings.models import Customer
from common.api.fields import (
    CLEARABLE,
    META_KEYS,
    OPTIONAL,
    ChoiceField,
    EmailField,
    IdField,
    LanguageField,
    MetaField,
    OneLineField,
    StampField,
    ZoneField,
    array_as_object,
)
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer

RESPONSES = (Customer.NEEDS_ACTION, *Customer.RESPONSES)
READ_ONLY_VALUES = {
    "response": RESPONSES,
    "source": (*Customer.RESPONSE_SOURCES, None),
}


class CustomerSerializer(ObjectSerializer):
    """A customer's data at the time of the booking, and the customer's answer to the
    invitation."""

    # Of a body, every key that is not known goes to `meta`.
    is_open = True
    never_null = ("timezone", "meta")
    examples = {
        "id": example_id(31),
        "name": "Marty McFly",
        "email": "marty@example.com",
        "phone": "+1 555 0100",
        "timezone": "America/Los_Angeles",
        "meta": {"newsletter": True},
        "response": "accepted",
        "responded_at": "2026-11-20T09:41:07+0000",
        "source": "calendar",
    }

    id = IdField(read_only=True)
    external_id = external_id_field(
        help_text="The customer's id in your own system: the same in all bookings of a customer. Of"
        " a widget key, it goes to `meta`."
    )
    name = OneLineField(200)
    email = EmailField()
    phone = OneLineField(200, allow_blank=True, **CLEARABLE)
    voip = OneLineField(200, allow_blank=True, **CLEARABLE)
    timezone = ZoneField(**CLEARABLE)
    language = LanguageField(
        write_only=True,
        help_text="The language of e-mails to the customer; stored in `meta`.",
        **CLEARABLE,
    )
    meta = MetaField(help_text="Free keys, and all other keys that the client sent.", **CLEARABLE)
    response = ChoiceField(
        RESPONSES,
        read_only=True,
        help_text="The customer's answer to the invitation. A move to another time resets it.",
    )
    responded_at = StampField(
        allow_null=True, help_text="When the customer answered; null: no answer."
    )
    source = ChoiceField(  # type: ignore[assignment]  # as `data`
        Customer.RESPONSE_SOURCES,
        source="response_source",
        read_only=True,
        allow_null=True,
        help_text="Whether the answer was found in the connected calendar or came by e-mail; null:"
        " no answer.",
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        given = super().to_internal_value(self._without_answer(data))
        language = given.pop("language", None)
        others = {key: value for key, value in self._free_keys(data) if value is not None}
        others |= {"language": language} if language else {}
        meta = {**others, **(given.get("meta") or {})}
        if len(meta) > META_KEYS:
            raise serializers.ValidationError({"meta": [f"Must have at most {META_KEYS} keys."]})
        texts = {key: given.get(key) or "" for key in ("phone", "voip", "timezone")}
        return {**given, **texts, "meta": MetaField().run_validation(meta)}

    @staticmethod
    def get_response(customer: Customer) -> str:
        return customer.response or Customer.NEEDS_ACTION

    def _without_answer(self, data: Any) -> Any:
        """Return the customer without the `external_id` of a public caller, who must not name
        another customer: it answers a question.
        """
        data = array_as_object(data)
        if not isinstance(data, Mapping) or not self.context.get("is_public"):
            return data
        return {key: value for key, value in data.items() if key != "external_id"}

    def _free_keys(self, data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the keys that go to `meta`: unknown ones, and answers to questions whose keys are
        names of read-only fields ("source": "a friend"), unless they have a value of the field.
        """
        for key, value in data.items():
            is_free = key not in self.fields or value not in READ_ONLY_VALUES.get(key, (value,))
            if is_free or (key == "external_id" and self.context.get("is_public")):
                yield key, value


class CustomerChangeSerializer(CustomerSerializer):
    """A customer of PUT /bookings/:id: what is absent stays; unknown keys go to `meta`."""

    examples = None  # type: ignore[assignment]  # in bodies only

    id = IdField(help_text="The customer's id. Absent: the customer at this position.", **OPTIONAL)
    timezone = ZoneField(allow_blank=True, **CLEARABLE)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(partial=True, **kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        data = array_as_object(data)
        given = ObjectSerializer.to_internal_value(self, self._without_answer(data))
        others = dict(self._free_keys(data))
        others |= {"language": given.pop("language")} if "language" in given else {}
        meta = {**others, **(given.pop("meta", None) or {})}
        given |= {key: given[key] or "" for key in ("phone", "voip", "timezone") if key in given}
        return given | ({"meta": meta} if meta else {})


class PersonSerializer(ObjectSerializer):
    """All customers with the same e-mail address."""

    examples = {
        "email": "marty@example.com",
        "external_id": "crm/7",
        "name": "Marty McFly",
        "phone": "+1 555 0100",
        "timezone": "America/Los_Angeles",
        "bookings": 3,
        "upcoming": 1,
        "first_booking_at": "2026-03-02T08:15:00+0000",
        "note": "Prefers mornings.",
    }

    email = serializers.CharField(source="latest.email")
    external_id = serializers.CharField(
        source="latest.external_id", allow_null=True, help_text="The id in your own system."
    )
    name = serializers.CharField(source="latest.name")
    phone = serializers.CharField(source="latest.phone")
    timezone = serializers.CharField(source="latest.timezone")
    bookings = serializers.IntegerField(min_value=0)
    upcoming = serializers.IntegerField(
        min_value=0, help_text="The bookings that have not ended and are not completed."
    )
    first_booking_at = StampField(source="first", help_text="When the oldest booking was made.")
    last_booking_at = StampField(source="last", help_text="When the newest booking was made.")
    note = serializers.CharField(
        allow_null=True, help_text="The internal note on the customer; null without one."
    )


class ErasedSerializer(ObjectSerializer):
    examples = {"bookings": 3, "log_entries": 4, "deliveries": 9}

    bookings = serializers.IntegerField(min_value=0)
    log_entries = serializers.IntegerField(min_value=0)
    unverified_bookings = serializers.IntegerField(min_value=0)
    deliveries = serializers.IntegerField(min_value=0)
    suppressions = serializers.IntegerField(min_value=0)
