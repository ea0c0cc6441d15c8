"""Serializer fields: strict types, bounded sizes, one sentence per error."""

import re
import uuid
from collections.abc import Mapping
from datetime import datetime
from ipaddress import ip_network
from typing import Any, NoReturn
from urllib.parse import urlsplit

import orjson
from django.utils.encoding import punycode
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.email_address import MAX_LENGTH, check_address
from common.messages import Message, find_message
from common.net.ssrf import NOT_IN_URL, url_problem
from common.shipped_languages import find_shipped, shipped_languages
from common.time.durations import MAX_DAYS, DurationError, duration_in_words, elapsed_seconds
from common.time.instants import ZONES, InstantError, format_instant, format_stamp, parse_instant

CONTROL_OR_BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
CANONICAL_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)

# The options of fields that may be absent; null removes a stored value.
OPTIONAL: dict[str, Any] = {"required": False}
CLEARABLE: dict[str, Any] = {"required": False, "allow_null": True}

META_BYTES = 16 * 1024
META_KEYS = 50

# The same rules for the API's description, as JSON Schema patterns.
ONE_LINE = r"^[^\u0000-\u001F\u007F-\u009F\u2028\u2029]*$"
LINES = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]*$"
WEB_ORIGIN = r"^https?://[^\s\\/?#@]+/?$"
DEFAULT_PORTS = {"http": 80, "https": 443}
WEB_ADDRESS = r"^https?://[^\s\\/?#@]+([/?#][^\s\\]*)?$"
DATE_PATTERN = r"(19[7-9][0-9]|2[01][0-9]{2})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
TIME_PATTERN = (
    r"[Tt ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])?"
)
INSTANT_SCHEMA = {
    "type": "string",
    "pattern": f"^{DATE_PATTERN}{TIME_PATTERN}$",
    "description": "ISO 8601 with an offset, or wall time without one. Years 1970 to 2199.",
    "examples": ["2026-11-20T10:30:00+01:00", "2026-11-20 10:30:00"],
}
# Each blank matches in one place only, so that the pattern can't backtrack endlessly.
_TERM = r"([+-]\s*)?[0-9]{1,9}\s*[A-Za-z]+"
MAX_URL = 2048
DURATION = rf"^\s*{_TERM}(\s*{_TERM})*\s*$"


class StringField(serializers.CharField):
    """Text exactly as sent: not trimmed, and numbers are refused."""

    default_error_messages = {
        "invalid": Message("Must be a string."),
        "forbidden": "Is not allowed.",
    }
    forbidden: re.Pattern[str] | None = None

    def __init__(self, max_length: int, **kwargs: Any) -> None:
        super().__init__(max_length=max_length, trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if self.forbidden and self.forbidden.search(data):
            self.fail("forbidden")
        return data


class ChoiceField(serializers.ChoiceField):
    """One of the choices, which its error names."""

    default_error_messages = {"invalid_choice": "Must be one of {choices}."}

    def fail(self, key: str, **values: Any) -> NoReturn:
        super().fail(key, choices=", ".join(filter(None, self.choices)), **values)


@extend_schema_field({"type": "string", "pattern": ONE_LINE})
class OneLineField(StringField):
    """Names, what, where, subject: text that is safe in a mail header."""

    default_error_messages = {
        "forbidden": Message("May not contain control characters or line breaks.")
    }
    forbidden = CONTROL_OR_BREAK


@extend_schema_field({"type": "string", "pattern": LINES})
class TextField(StringField):
    """Descriptions and messages: line breaks and tabs are the only control characters."""

    default_error_messages = {"forbidden": "May not contain control characters."}
    forbidden = CONTROL


@extend_schema_field(
    {
        "type": "string",
        "format": "email",
        "description": "ASCII before the @, a domain of IDNA 2008 after it.",
        "examples": ["ada@example.com"],
    }
)
class EmailField(OneLineField):
    """One address, as typed (`common.email_address` has the form for comparisons)."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_LENGTH, **kwargs)
        self.validators.append(check_address)


@extend_schema_field(
    {"type": "string", "pattern": WEB_ADDRESS, "examples": ["https://example.com/hook"]}
)
class UrlField(OneLineField):
    """An http or https address without user information, at most 2,048 characters."""

    default_error_messages = {"url": "Must be an http or https address."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_URL, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text and (NOT_IN_URL.search(text) or not is_web_address(text)):
            self.fail("url")
        return text


class OutboundUrlField(UrlField):
    """A URL that this service may call; URLs that are certainly not public are refused at once."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        # A validator checks the length.
        problem = url_problem(text) if len(text) <= MAX_URL else None
        if problem:
            raise serializers.ValidationError(problem)
        return text


@extend_schema_field(
    {"type": "string", "maxLength": 50, "pattern": "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$"}
)
class NetworkField(OneLineField):
    """A network of IP addresses as in CIDR notation, or one address."""

    default_error_messages = {"network": "Must be a network such as 203.0.113.0/24, or an address."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=50, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return str(ip_network(text))
        except ValueError:
            self.fail("network")


@extend_schema_field(
    {"type": "string", "pattern": WEB_ORIGIN, "examples": ["https://shop.example"]}
)
class OriginField(OneLineField):
    """The origin of a web site, as browsers send it: scheme, host, and port unless it is the
    scheme's default.
    """

    default_error_messages = {"origin": "Must be an origin such as https://shop.example."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=300, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not is_web_address(text):
            self.fail("origin")
        parts = urlsplit(text)
        if parts.path not in ("", "/") or parts.query or parts.fragment or NOT_IN_URL.search(text):
            self.fail("origin")
        try:
            host = punycode(parts.netloc.removesuffix(f":{parts.port or ''}"))
        except UnicodeError:
            self.fail("origin")
        port = "" if parts.port in (None, DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
        return f"{parts.scheme}://{host}{port}".lower()


def is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        # Reading the port raises ValueError unless it is a number up to 65535.
        has_place = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and has_place and "@" not in parts.netloc


@extend_schema_field(
    {
        "type": "string",
        "description": "A language that pages and e-mails are shipped in.",
        "enum": shipped_languages(),
    }
)
class LanguageField(OneLineField):
    """The code of a shipped language, in any case; returned as it is listed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=35, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        code = find_shipped(super().to_internal_value(data))
        if code is None:
            raise serializers.ValidationError(f"Must be one of {', '.join(shipped_languages())}.")
        return code


@extend_schema_field(
    {"type": "string", "description": "An IANA time zone.", "examples": ["Europe/Berlin"]}
)
class ZoneField(OneLineField):
    """The exact name of an IANA time zone."""

    default_error_messages = {"zone": "Must be a time zone such as Europe/Berlin."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=64, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name not in ZONES:
            self.fail("zone")
        return name


@extend_schema_field(INSTANT_SCHEMA)
class InstantField(serializers.Field):
    """An aware UTC datetime; text without an offset is read in the zone `context["zone"]` (UTC)."""

    default_error_messages = {"invalid": Message("Must be a string.")}

    @property
    def zone_name(self) -> str:
        return self.context.get("zone") or "UTC"

    def to_internal_value(self, data: Any) -> datetime:
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            return parse_instant(data, self.zone_name)
        except InstantError as exc:
            raise serializers.ValidationError(find_message(exc)) from None

    def to_representation(self, value: datetime) -> str:
        return format_instant(value, self.zone_name)


class DurationField(serializers.Field):
    """Elapsed time from `least` to `most` seconds, kept as the text that was sent."""

    def __init__(self, least: int = 0, most: int = MAX_DAYS * 86_400, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.least, self.most = least, most
        set_override(self, "field", duration_schema(least, most))

    def to_internal_value(self, data: Any) -> str:
        try:
            elapsed_seconds(data, least=self.least, most=self.most)
        except DurationError as exc:
            raise serializers.ValidationError(find_message(exc)) from None
        return str(data)

    def to_representation(self, value: str) -> str:
        return value


def duration_schema(least: int, most: int) -> dict[str, Any]:
    """Return the JSON schema of a duration; a zero needs no unit."""
    words = {"type": "string", "pattern": DURATION if least else f"^0$|{DURATION}"}
    zero = {} if least else {"type": ["string", "integer"], "minimum": 0, "maximum": 0}
    return {
        **words,
        **zero,
        "description": f"From {duration_in_words(least)} to {duration_in_words(most)};"
        " a day has 24 hours.",
        "examples": ["30 minutes", "1 hour 30 mins"],
    }


class BoundedIntegerField(serializers.IntegerField):
    """An integer within bounds; `"30"` only with `allow_digits`; never 3.0 or true."""

    default_error_messages = {"invalid": "Must be an integer."}

    def __init__(
        self, min_value: int, max_value: int, *, allow_digits: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(min_value=min_value, max_value=max_value, **kwargs)
        self.allow_digits = allow_digits

    def to_internal_value(self, data: Any) -> int:
        if type(data) is int:
            return data
        if self.allow_digits and isinstance(data, str) and is_short_number(data):
            return int(data)
        return self.fail("invalid")


class FewField(BoundedIntegerField):
    """A number with so few values that forms offer each of them."""

    @property
    def numbers(self) -> range:
        return range(self.min_value or 0, (self.max_value or 0) + 1)


class SecondsField(BoundedIntegerField):
    """A length of time as an integer of seconds."""


def is_short_number(text: str) -> bool:
    """Return whether the text is a few ASCII digits: int() of a long text is slow."""
    return len(text) <= 10 and text.isascii() and text.isdigit()


class StrictBooleanField(serializers.BooleanField):
    """true or false; no words, no 0 and 1."""

    default_error_messages = {"invalid": "Must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if data is True or data is False:
            return data
        return self.fail("invalid")


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": True,
        "maxProperties": META_KEYS,
        "description": f"Free keys, at most {META_KEYS} and 16 kB as JSON.",
    }
)
class MetaField(serializers.Field):
    """A free object of at most 50 keys and 16 kB as JSON; an empty array is read as `{}`."""

    default_error_messages = {
        "invalid": Message("Must be an object."),
        "keys": f"Must have at most {META_KEYS} keys.",
        "size": "Must be at most 16 kB.",
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        data = array_as_object(data)
        if not isinstance(data, dict):
            self.fail("invalid")
        if len(data) > META_KEYS:
            self.fail("keys")
        if len(orjson.dumps(data)) > META_BYTES:
            self.fail("size")
        return data

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


def array_as_object(data: Any) -> Any:
    """Convert an empty array to `{}`: some clients can't write an empty object."""
    return {} if data == [] else data


class ListOf(serializers.ListField):
    """A list of at most `max_items`; the count is checked before the items."""

    default_error_messages = {
        "not_a_list": "Must be a list.",
        "max_items": "Must have at most {max_items} items.",
    }

    def __init__(self, child: serializers.Field, max_items: int, **kwargs: Any) -> None:
        super().__init__(child=child, **kwargs)
        self.max_items = max_items

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_a_list")
        if len(data) > self.max_items:
            self.fail("max_items", max_items=self.max_items)
        return super().to_internal_value(data)


class ObjectOf(serializers.DictField):
    """An object of at most `max_keys` keys, each of which `key` accepts, and values of one kind.

    Null removes a key. The count is checked first. An empty array is read as `{}`.
    """

    default_error_messages = {
        "not_a_dict": Message("Must be an object."),
        "max_keys": "Must have at most {max_keys} keys.",
    }

    def __init__(
        self,
        child: serializers.Field,
        max_keys: int,
        *,
        key: serializers.Field | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(child=child, **kwargs)
        self.max_keys, self.key = max_keys, key

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        data = array_as_object(data)
        if isinstance(data, dict) and len(data) > self.max_keys:
            self.fail("max_keys", max_keys=self.max_keys)
        return super().to_internal_value(data)

    def run_child_validation(self, data: Mapping[str, Any]) -> dict[str, Any]:
        values, errors = {}, {}
        for key, value in data.items():
            try:
                name = self.key.run_validation(key) if self.key else key
                values[name] = None if value is None else self.child.run_validation(value)
            except serializers.ValidationError as error:
                errors[key] = error.detail
        if errors:
            raise serializers.ValidationError(errors)
        return values


class IdField(serializers.UUIDField):
    """A UUID with its hyphens, in any case."""

    default_error_messages = {"invalid": "Must be a UUID."}

    def to_internal_value(self, data: Any) -> uuid.UUID:
        if not isinstance(data, str) or not CANONICAL_ID.fullmatch(data):
            self.fail("invalid")
        return uuid.UUID(data)


class StampField(InstantField):
    """When something happened; in responses in UTC, without a colon in the offset. In responses
    only, unless `read_only=False`.
    """

    def __init__(self, *, read_only: bool = True, **kwargs: Any) -> None:
        super().__init__(read_only=read_only, **kwargs)

    def to_representation(self, value: datetime) -> str:
        return format_stamp(value)


@extend_schema_field(
    {
        "type": ["integer", "string"],
        "minimum": 100,
        "maximum": 599,
        "pattern": "^[1-5][0-9]{2}$",
    }
)
class StatusCodeField(BoundedIntegerField):
    """An HTTP status as an integer or as digits."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(100, 599, allow_digits=True, **kwargs)


class OneOfField(serializers.Field):
    """In responses: one of several kinds of values. A row is written as the first kind."""

    def __init__(self, *kinds: serializers.Field, **kwargs: Any) -> None:
        super().__init__(read_only=True, **kwargs)
        self.kinds = kinds
