"""Form fields in words: durations, time zones, lists of texts."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from django import forms
from django.template.loader import render_to_string
from django.utils.functional import lazy
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from common.errors import Invalid
from common.images import MAX_FILE, SmallImage
from common.time.durations import DurationError, parse_duration
from common.time.instants import ZONES, find_zone
from common.time.zone_names import current_zone_name, current_zones
from office.base.api_forms import JsonField, ShownField
from office.base.labels import yes_or_no
from office.base.lazy_text import LazyText

HOUR, MINUTE, WEEK_DAYS = 3600, 60, 7
COUNT_AND_UNIT = re.compile(r"(\d+) ([a-z]+)")
OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+\-−])\s*(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE)
# Zones that most people know.
EXAMPLES = (
    *("Europe/London", "Europe/Berlin", "Europe/Athens", "Europe/Moscow"),
    *("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
    *("America/Sao_Paulo", "Asia/Dubai", "Asia/Kolkata", "Asia/Bangkok", "Asia/Shanghai"),
    *("Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland"),
)
ELAPSED = ("minutes", "hours", "days")
# The units of lengths of time.
UNIT_WORDS: Mapping[str, LazyText] = {
    "seconds": _("seconds"),
    "minutes": _("minutes"),
    "hours": _("hours"),
    "days": _("days"),
    "weeks": _("weeks"),
    "months": _("months"),
}


def _image_hint() -> str:
    text = gettext("PNG, JPEG or WebP, at most %(size)s MB; it is made small.")
    return text % {"size": MAX_FILE // 1_000_000}


IMAGE_HINT = lazy(_image_hint, str)()


class TemplateWidget(forms.Widget):
    """A widget drawn by one of the back office's templates."""

    template_name: str

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return render_to_string(self.template_name, self.get_context(name, value, attrs))


class ImageFileField(forms.FileField):
    """An optional image file; its value is what `shrink` makes of it, or None. `use`: a sentence
    that says who sees it.
    """

    widget = UnfoldAdminFileFieldWidget

    def __init__(
        self, *, shrink: Callable[..., SmallImage], use: LazyText = "", **kwargs: Any
    ) -> None:
        kwargs.setdefault("help_text", format_lazy("{} {}", IMAGE_HINT, use))
        super().__init__(required=False, **kwargs)
        self.shrink = shrink

    def to_python(self, data: Any) -> Any:
        file = super().to_python(data)
        if file is None:
            return None
        try:
            return self.shrink(file.read(MAX_FILE + 1), path="file")
        except Invalid as error:
            raise forms.ValidationError(error.fields["errors"]["file"]) from error


class SwitchField(forms.BooleanField):
    """A switch, off at first."""

    widget = UnfoldBooleanSwitchWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)


class DurationWidget(TemplateWidget):
    """A number and a unit. A text that is neither is a choice of its own among the units."""

    template_name = "office/widgets/duration.html"

    def __init__(self, units: Sequence[str], more: Mapping[str, LazyText]) -> None:
        super().__init__()
        self.units, self.more = units, more

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        matched = COUNT_AND_UNIT.fullmatch(value or "")
        count, unit = matched.groups() if matched else ("", value or self.units[0])
        units = [(word, UNIT_WORDS.get(word, word)) for word in self.units] + list(
            self.more.items()
        )
        if unit not in dict(units):
            units.append((unit, unit))
        own = {"count": count, "unit": unit, "units": units}
        return super().get_context(name, value, attrs) | own

    def in_words(self, value: str) -> str:
        """Return the value for an account that may not change it."""
        matched = COUNT_AND_UNIT.fullmatch(value)
        if matched is None or matched[2] not in UNIT_WORDS:
            return str(self.more.get(value, value))
        return f"{matched[1]} {UNIT_WORDS[matched[2]]}"

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        count, unit = (str(data.get(key) or "").strip() for key in (name, f"{name}_unit"))
        if not unit:
            return count
        if unit not in self.units:
            return unit
        return f"{count} {unit}" if count else ""

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data


class DurationField(ShownField, forms.CharField):
    """A duration such as `90 minutes`, checked by the API. `more`: choices without a number."""

    hidden_widget = forms.HiddenInput

    def __init__(
        self,
        *,
        units: Sequence[str] = ELAPSED,
        more: Mapping[str, LazyText] | None = None,
        **kwargs: Any,
    ) -> None:
        widget = DurationWidget(units, more or {})
        super().__init__(required=False, widget=widget, **kwargs)
        self.units = units

    def shown_value(self, stored: Any) -> str:
        return count_and_unit(stored, self.units)

    def sent_value(self, value: str) -> str | None:
        matched = COUNT_AND_UNIT.fullmatch(value)
        if matched and matched[1] == "1":
            return value.removesuffix("s")
        return value or None


class SecondsField(DurationField):
    """An integer of seconds, entered in minutes or seconds, checked by the API."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(units=("minutes", "seconds"), **kwargs)

    def shown_value(self, stored: Any) -> str:
        minutes, seconds = divmod(stored, MINUTE)
        return f"{stored} seconds" if seconds else f"{minutes} minutes"

    def sent_value(self, value: str) -> Any:
        matched = COUNT_AND_UNIT.fullmatch(value)
        if not matched:
            return value or None
        return int(matched[1]) * (MINUTE if matched[2] == "minutes" else 1)


class DurationListField(ShownField, forms.CharField):
    """Durations, separated by commas, checked by the API."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=UnfoldAdminTextInputWidget, **kwargs)

    def shown_value(self, stored: Any) -> str:
        return ", ".join(map(str, stored)) if isinstance(stored, list) else ""

    def sent_value(self, value: str) -> list[str] | None:
        return [part.strip() for part in value.split(",") if part.strip()] or None


def count_and_unit(text: Any, units: Sequence[str]) -> str:
    """Return `90 minutes` for "1 hour 30 mins"; other texts, such as dates, unchanged.

    Days stay days, hours stay hours: the clock change makes them different.
    """
    try:
        duration = parse_duration(text)
    except DurationError:
        return text if isinstance(text, str) else ""
    months, days, seconds = duration
    if len([part for part in duration if part]) > 1 or min(duration) < 0 or seconds % MINUTE:
        return str(text)
    if months:
        return f"{months} months"
    if days:
        is_weeks = days % WEEK_DAYS == 0 and "weeks" in units
        return f"{days // WEEK_DAYS} weeks" if is_weeks else f"{days} days"
    is_hours = seconds and seconds % HOUR == 0
    return f"{seconds // HOUR} hours" if is_hours else f"{seconds // MINUTE} minutes"


class ZoneWidget(UnfoldAdminTextInputWidget):
    """A text field that suggests time zones by their city and their present UTC offset."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        own = {"list": f"{name}-zones", "autocomplete": "off", "spellcheck": "false"}
        field = super().render(name, value, {**(attrs or {}), **own}, renderer)
        zones = zone_offsets(datetime.now(UTC).strftime("%Y-%m-%d"))
        context = {"field": field, "id": f"{name}-zones", "zones": zones}
        return render_to_string("office/widgets/zone.html", context)


class ZoneField(forms.CharField):
    """The name of an IANA zone, also by its city or by an offset that only one zone has; the API
    refuses other names.
    """

    hidden_widget = forms.HiddenInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=ZoneWidget, **kwargs)

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        if text in ZONES:
            return text
        return zone_of_city(text) or self._zone_of_offset(text) or text

    def _zone_of_offset(self, text: str) -> str | None:
        """Return the only zone with that offset. Raises ValidationError with some of several."""
        offset = offset_of(text)
        if offset is None:
            return None
        names = zones_of_offset(offset)
        if len(names) > 1:
            given = {"offset": offset, "zones": ", ".join(_example_zones(names))}
            raise forms.ValidationError(
                gettext("Several time zones have %(offset)s, such as %(zones)s. Type a city."),
                params=given,
            )
        return names[0] if names else None

    def prepare_value(self, value: Any) -> Any:
        """Show the current name of a zone."""
        return current_zone_name(value) if isinstance(value, str) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Another name of the stored zone is no change."""
        return bool(super().has_changed(self.prepare_value(initial), data))


@lru_cache(maxsize=2)
def zone_offsets(day: str) -> tuple[tuple[str, str], ...]:
    """Return (`Europe/Berlin`, `UTC+1`) of the current zones on that day, by name."""
    noon = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    return tuple(
        (name, _offset_words(noon.astimezone(find_zone(name)))) for name in current_zones()
    )


def _offset_words(local: datetime) -> str:
    minutes = int((local.utcoffset() or UTC.utcoffset(None)).total_seconds()) // 60
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"


def offset_of(text: str) -> str | None:
    """Return `UTC+1` for texts such as "+1", "utc +01:00", "GMT+1"; None for others."""
    matched = OFFSET.fullmatch(text.strip())
    if matched is None:
        return None
    sign, hours, minutes = matched.groups()
    rest = int(minutes or 0)
    return f"UTC{'-' if sign in '-−' else '+'}{int(hours)}{f':{rest:02}' if rest else ''}"


def zones_of_offset(offset: str) -> list[str]:
    """Return the current zones with that present UTC offset."""
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    return [name for name, words in zone_offsets(today) if words == offset]


def _example_zones(names: Sequence[str]) -> list[str]:
    """Return a few of the zones, first those of EXAMPLES."""
    return [*(name for name in EXAMPLES if name in names), *names][:3]


def zone_of_city(text: str) -> str | None:
    """Return the only zone whose last part is that city, such as Europe/Berlin for "berlin"."""
    city = text.strip().replace(" ", "_").casefold()
    names = (name for name in ZONES if "/" in name and not name.startswith("Etc/"))
    of_city = (name for name in names if name.rpartition("/")[2].casefold() == city)
    found = {current_zone_name(name) for name in of_city}
    return found.pop() if len(found) == 1 else None


class LinesField(ShownField, forms.CharField):
    """A list of texts, one per line; the script `forms.js` shows them as chips."""

    hidden_widget = forms.HiddenInput

    def __init__(self, **kwargs: Any) -> None:
        widget = UnfoldAdminTextareaWidget(attrs={"rows": 3, "data-chips": ""})
        super().__init__(required=False, strip=False, widget=widget, **kwargs)

    def shown_value(self, stored: Any) -> str:
        return "\n".join(map(str, stored)) if isinstance(stored, list) else ""

    def to_python(self, value: Any) -> str:
        lines = [line.strip() for line in (super().to_python(value) or "").splitlines()]
        return "\n".join(line for line in lines if line)

    def sent_value(self, value: str) -> list[str]:
        return value.splitlines()

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.to_python(initial or "") != self.to_python(data or "")


def json_field(label: LazyText, help_text: LazyText) -> JsonField:
    """Return a field for JSON that the script `json.js` checks while it is typed."""
    widget = UnfoldAdminTextareaWidget(attrs={"rows": 6, "data-json": "", "spellcheck": "false"})
    return JsonField(label=label, help_text=help_text, required=False, widget=widget)


def value_words(field: forms.Field, value: Any) -> str:
    """Return a field's value for an account that may not change it."""
    if isinstance(field, forms.BooleanField):
        return yes_or_no(value)
    if isinstance(field, forms.ChoiceField):
        words = dict(cast(Iterable[tuple[str, str]], field.choices))
        return str(words.get(value or "", value or ""))
    if isinstance(field.widget, DurationWidget):
        return field.widget.in_words(value or "")
    if isinstance(value, list):
        return "\n".join(str(row.get("title", row)) for row in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, indent=2) if value else ""
    return "" if value is None else str(value)
