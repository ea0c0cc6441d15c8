"""Search from every page (Ctrl+K): pages, settings, customers, bookings, resources, projects."""

import uuid
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext
from unfold.dataclasses import SearchResult

from availability.models import Project, Resource
from bookings.models import AppCustomer, Booking, Customer
from office.app_settings.admin import AppAdmin, AppForm
from office.base.labels import booking_words, shown_state, state_words
from office.base.model_admin import OfficeAdmin, part_id
from office.base.registered_pages import page_of
from office.base.scope import scope_of
from office.bookings.customer_search import search_customers
from office.bookings.external_id_search import booking_ids_by_external_id
from office.bookings.former_bookings import ending_words
from office.bookings.tabs import is_upcoming, next_first
from office.commands import find_commands
from office.navigation import only_app_id, sidebar

MIN_LETTERS = 3  # of names: the index of their texts has groups of three letters
MAX_OF_KIND = 6
MAX_MATCHES = 200  # rows of customers that are read


def find_everything(request: HttpRequest, term: str) -> list[SearchResult]:
    """Return what the account may see and the term names, in groups of MAX_OF_KIND. The number of
    queries is fixed.
    """
    term = term.strip()[:200]
    if not term or "\0" in term:
        return []
    words = term.lower().split()
    groups = (
        find_commands(request, term),
        _pages(request, words),
        _settings(request, words),
        *_customers_and_bookings(request, term),
        _rows(request, Resource, gettext("Resource"), "badge", words),
        _rows(request, Project, gettext("Project"), "web", words),
    )
    return [result for group in groups for result in islice(group, MAX_OF_KIND)]


def _pages(request: HttpRequest, words: list[str]) -> Iterator[SearchResult]:
    for group in sidebar(request):
        for item in group["items"]:
            if all(_names_page(item, word) for word in words):
                yield SearchResult(str(item["title"]), gettext("Page"), item["link"], item["icon"])


def _names_page(item: dict[str, Any], word: str) -> bool:
    """Return whether the title has the word, or an everyday word for the page begins with it."""
    keywords = item["keywords"].split() if len(word) >= MIN_LETTERS else []
    return word in str(item["title"]).lower() or any(one.startswith(word) for one in keywords)


def _settings(request: HttpRequest, words: list[str]) -> Iterator[SearchResult]:
    """Yield the settings of the account's only app."""
    app_id = only_app_id(request)
    if app_id is None:
        return
    page = reverse("admin:apps_config_app_change", args=[app_id])
    for title, _ in AppAdmin.parts:
        if _has_words(str(title), words):
            yield SearchResult(
                str(title), gettext("Setting"), f"{page}#{part_id(title)}", "settings"
            )
    for name, field in AppForm.base_fields.items():
        if field.label and _has_words(str(field.label), words):
            yield SearchResult(
                str(field.label), gettext("Setting"), f"{page}#id_{name}", "settings"
            )


def _customers_and_bookings(request: HttpRequest, term: str) -> Iterator[Iterator[SearchResult]]:
    """Yield the next booking, customers, then the other bookings: by an id of the booking, or of
    these customers.
    """
    customers: list[Customer] = []
    try:
        matching = Q(id=uuid.UUID(term))
    except ValueError:
        customers = list(_customer_rows(request, term)) if len(term) >= MIN_LETTERS else []
        matching = Q(id__in=[row.booking_id for row in customers])
    bookings = _find_bookings(request, term, matching)
    upcoming = 1 if bookings and is_upcoming(bookings[0]) else 0
    yield _bookings(request, bookings[:upcoming])
    yield _customers(request, customers)
    yield _bookings(request, bookings[upcoming:])


def _customer_rows(request: HttpRequest, term: str) -> QuerySet[Customer]:
    seen = scope_of(request).rows("app")
    rows = search_customers(term).filter(seen, booking__deleted_at=None).order_by()
    return rows.only("name", "email", "address", "app", "booking")[:MAX_MATCHES]


def _customers(request: HttpRequest, customers: list[Customer]) -> Iterator[SearchResult]:
    if not customers or not _may_see(request, AppCustomer):
        return
    names = {(row.app_id, row.address): row for row in customers}
    rows = AppCustomer.objects.filter(
        app__in={app for app, _ in names}, address__in={address for _, address in names}
    )
    for person in rows[:MAX_MATCHES]:
        snapshot = names.get((person.app_id, person.address))
        if snapshot:
            link = reverse("admin:bookings_appcustomer_change", args=[person.pk])
            yield SearchResult(
                snapshot.name or snapshot.email,
                gettext("Customer, %(email)s") % {"email": snapshot.email},
                link,
                "group",
            )


def _find_bookings(request: HttpRequest, term: str, matching: Q) -> list[Booking]:
    """Return the bookings that match, or have the term as external id."""
    if not _may_see(request, Booking):
        return []
    seen = Booking.objects.filter(scope_of(request).rows("app"), deleted_at=None)
    rows = seen.filter(matching | Q(id__in=booking_ids_by_external_id(seen, term)))
    rows = rows.select_related("event").prefetch_related("customers")
    return list(next_first(rows)[:MAX_OF_KIND])


def _bookings(request: HttpRequest, bookings: Sequence[Booking]) -> Iterator[SearchResult]:
    endings = ending_words(request, bookings)
    for booking in bookings:
        link = reverse("admin:bookings_booking_change", args=[booking.pk])
        state = gettext("Booking, %(state)s") % {"state": state_words(shown_state(booking))}
        if ending := endings.get(booking.pk):
            state = f"{state} ({ending})"
        yield SearchResult(booking_words(booking), state, link, "event_available")


def _rows(
    request: HttpRequest, model: type[Model], kind: str, icon: str, words: list[str]
) -> Iterator[SearchResult]:
    if not _may_see(request, model):
        return
    rows: Any = model._default_manager.filter(scope_of(request).rows("app"), deleted_at=None)
    for word in words:
        rows = rows.filter(name__icontains=word)
    page = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
    for row in rows.order_by("name", "id")[:MAX_OF_KIND]:
        yield SearchResult(row.name, kind, reverse(page, args=[row.pk]), icon)


def _may_see(request: HttpRequest, model: type[Model]) -> bool:
    page = page_of(admin.site, model)
    return isinstance(page, OfficeAdmin) and page.has_view_permission(request)


def _has_words(text: str, words: list[str]) -> bool:
    return all(word in text.lower() for word in words)
