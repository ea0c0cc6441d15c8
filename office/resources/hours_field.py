"""The form field for a resource's weekly opening hours."""

from typing import Any

from django import forms
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.core.constraints import DAY_NAMES
from office.base.form_fields import TemplateWidget
from office.base.lazy_text import LazyText
from office.base.opening_hours_text import HoursError, normalise_hours_texts, rules_of_hours

WEEK = range(len(DAY_NAMES))
NEW_HOURS = [*["09:00-17:00"] * 5, "", ""]


class HoursWidget(TemplateWidget):
    """Seven rows, which the script `forms.js` copies to other days. The value: seven texts."""

    template_name = "office/widgets/hours.html"
    empty_day: LazyText = _("Closed")
    legend: LazyText | None = None
    errors: dict[int, str] = {}

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        texts = split_days(value)
        days = [
            {"name": WEEKDAYS[day], "text": texts[day], "is_weekend": day > 4}
            | {"error": self.errors.get(day, "")}
            for day in WEEK
        ]
        return super().get_context(name, value, attrs) | {
            "days": days,
            "empty_day": self.empty_day,
            "legend": self.legend,
        }

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        return "\n".join(" ".join(str(data.get(f"{name}_{day}") or "").split()) for day in WEEK)

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}_0" not in data

    def id_for_label(self, id_: str, index: str | None = None) -> str:
        """Return no field: each day has its own label."""
        return ""


class HoursField(forms.CharField):
    """Seven texts in lines; cleaned: the API's constraints."""

    hidden_widget = forms.HiddenInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, strip=False, widget=HoursWidget(), **kwargs)
        self.widget.legend = self.label

    def clean(self, value: Any) -> Any:
        try:
            return self.read_days(split_days(value))
        except HoursError as error:
            self.widget.errors = error.errors
            days = ", ".join(str(WEEKDAYS[day]) for day in error.errors)
            sentence = gettext("Check the hours of %(days)s.") % {"days": days}
            raise forms.ValidationError(sentence) from error

    def read_days(self, days: list[str]) -> Any:
        """Return the cleaned value of seven texts. Raises HoursError."""
        return rules_of_hours(days)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return split_days(initial) != split_days(data)


class ChangedDaysField(HoursField):
    """The hours of some days; cleaned: day (0 = Monday) -> hours, empty for a closed day."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.widget.empty_day = _("No change")

    def read_days(self, days: list[str]) -> dict[int, str]:
        texts = normalise_hours_texts(days)
        return {day: texts[day] for day in WEEK if days[day]}


def split_days(value: Any) -> list[str]:
    """Return seven texts of a value in lines."""
    lines = value.split("\n") if isinstance(value, str) else list(value or ())
    return [lines[day].strip() if day < len(lines) else "" for day in WEEK]
