"""Find resources by their e-mail address."""

from django.db.models import QuerySet

from availability.models import Resource
from common.email_address import canonical_address


def with_email(resources: QuerySet[Resource], email: str) -> QuerySet[Resource]:
    """Resources with the address, however it is typed."""
    return resources.filter(address=canonical_address(email))
