"""What an account's role says, for pages of errors."""

from django import template
from django.http import HttpRequest

from apps_config.models import Membership
from office.base.scope import scope_of

register = template.Library()


@register.filter
def has_highest_role(request: HttpRequest) -> bool:
    """Return whether no owner could give the account a role that allows more."""
    scope = scope_of(request)
    return scope.is_staff or scope.allows(None, Membership.OWNER)
