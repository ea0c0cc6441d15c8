"""People in front of the back office: staff of the platform, and members of apps by their role."""

from collections.abc import Callable

import pytest
from django.test import Client

from apps_config.models import Account, Membership
from tests.world import Tenant

Enter = Callable[..., Client]


@pytest.fixture
def enter() -> Enter:
    """enter() is a superuser's browser; enter(tenant, role) that of a member of its app."""

    def log_in(tenant: Tenant | None = None, role: str = Membership.EDITOR) -> Client:
        client = Client()
        if tenant is None:
            account = Account.objects.filter(email="staff@example.com").first()
            account = account or Account.objects.create_superuser("staff@example.com", "x" * 12)
        else:
            account = Account.objects.create_user(f"{role}@{tenant.app.slug}.example.com")
            Membership.objects.create(account=account, app=tenant.app, role=role)
        client.force_login(account)
        return client

    return log_in
