"""Find resources by their e-mail address."""

from django.db.models import QuerySet, Value
from django.db.models.functions import Lower

from availability.models import Resource


def with_email(resources: QuerySet[Resource], email: str) -> QuerySet[Resource]:
    """Resources with the address, case-insensitive; uses the index of the unique constraint."""
    return resources.alias(address=Lower("email")).filter(address=Lower(Value(email)))
