"""A member with a password, log-in at the back office, and codes of an authenticator app."""

from datetime import datetime
from typing import Any

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.test import Client

from apps_config.models import Account, App, Membership

EMAIL, PASSWORD = "doc@example.com", "harbour-lights-7"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
AUTHENTICATE = "/admin/account/security/authenticate/"  # asks for the code after the password


def make_member(app: App, role: str, email: str = EMAIL) -> Account:
    account = Account.objects.create_user(email, PASSWORD)
    Membership.objects.create(app=app, account=account, role=role)
    return account


def log_in(client: Client, email: str = EMAIL, **more: Any) -> Any:
    """The answer of the log-in page."""
    return client.post("/admin/login/", {"username": email, "password": PASSWORD, **more})


def may_enter(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


def code_now(secret: str = SECRET) -> str:
    counter = int(datetime.now().timestamp()) // 30
    return format_hotp_value(hotp_value(secret, counter))
