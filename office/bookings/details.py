"""The form of a booking's customers: names, contact data, answers to the project's questions."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from bookings.models import Booking, Customer
from bookings.serializers.bodies import BookingChangeSerializer
from common.api.serializers import read_values_as
from common.errors import Invalid
from office.base.message_translations import translate_message
from office.bookings.answers import INPUT, answer_field, project_questions

ANSWER = "answer-"


class CustomerForm(forms.Form):
    """One customer. Only values that were changed here are saved."""

    name = forms.CharField(
        label=pgettext_lazy("of a person", "Name"), max_length=200, widget=forms.TextInput(INPUT)
    )
    email = forms.CharField(
        label=_("E-mail"), max_length=254, widget=forms.TextInput(INPUT | {"type": "email"})
    )
    phone = forms.CharField(
        label=_("Phone"),
        max_length=200,
        required=False,
        widget=forms.TextInput(INPUT | {"type": "tel"}),
    )

    def __init__(self, data: QueryDict | None, *, booking: Booking, customer: Customer) -> None:
        contact = {name: getattr(customer, name) for name in self.base_fields}
        super().__init__(data, initial=contact, prefix=f"customer-{customer.pk}")
        self.customer = customer
        for field in self.fields.values():
            field.show_hidden_initial = True
        for question in project_questions(booking.project):
            value = _stored_answer(customer, question.key)
            self.fields[ANSWER + question.key] = answer_field(question, value)

    def changes(self) -> dict[str, Any]:
        """Return the customer of PUT /bookings/:id: the changed values; an empty answer is null."""
        given = {
            name: _line_breaks(self.cleaned_data[name])
            for name in self.changed_data
            if name in self.cleaned_data
        }
        answers = {
            name.removeprefix(ANSWER): None if value == "" else value
            for name, value in given.items()
            if name.startswith(ANSWER)
        }
        contact = {name: value for name, value in given.items() if name in self.base_fields}
        return {"id": str(self.customer.pk), **contact, **answers}

    def add_fault(self, path: str, found: Sequence[str]) -> None:
        """Add the errors of the API at a path within the customer."""
        key = path.removeprefix("meta.")
        names = [name for name in (key, ANSWER + key) if name in self.fields]
        sentences = [forms.ValidationError(translate_message(each)) for each in found]
        self.add_error(names[0] if names else None, sentences)


def _stored_answer(customer: Customer, key: str) -> Any:
    if key == "voip":
        return customer.voip
    value = customer.meta.get(key) if isinstance(customer.meta, dict) else None
    return "" if value is None or isinstance(value, dict | list) else value


def _line_breaks(value: Any) -> Any:
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


def customer_forms(booking: Booking, data: QueryDict | None = None) -> list[CustomerForm]:
    """Return a form for each customer who is not erased."""
    customers = [customer for customer in booking.customers.all() if customer.email]
    return [CustomerForm(data, booking=booking, customer=customer) for customer in customers]


def read_changes(customers: Sequence[CustomerForm]) -> dict[str, Any] | None:
    """Return the changes for `change_booking`; None if the forms have errors, which they show."""
    if any([form.errors for form in customers]):  # noqa: C419 (each form shows its own)
        return None
    body = {"customers": [form.changes() for form in customers]}
    try:
        return read_values_as(BookingChangeSerializer, body)
    except Invalid as refusal:
        show_faults(customers, refusal)
    return None


def show_faults(customers: Sequence[CustomerForm], refusal: Invalid) -> None:
    """Show the errors of `customers.<number>.<path>` in the customer's form."""
    faults: Mapping[str, Sequence[str]] = refusal.fields["errors"]
    for path, found in faults.items():
        _, number, *rest = [*path.split(".", 2), ""]
        is_known = number.isdecimal() and int(number) < len(customers)
        customers[int(number) if is_known else 0].add_fault(rest[0], found)
