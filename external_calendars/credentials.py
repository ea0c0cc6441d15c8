"""The encrypted credentials of a connected calendar."""

from urllib.parse import urlsplit

from common.encryption import SecretUnreadable, decrypt_text, encrypt_text
from external_calendars.models import Connection
from external_calendars.providers.base import CalendarAccess, ProviderError


def credentials_of(connection: Connection) -> CalendarAccess:
    """Return the decrypted credentials. Raises ProviderError (secret_unreadable).

    Select the grant with the connection: it is read here.
    """
    grant = connection.grant
    try:
        address = decrypt_text(connection.address)
        if grant is not None:
            token = decrypt_text(grant.access_token)
            return CalendarAccess(address, grant.email, token=token)
        password = decrypt_text(connection.password) if connection.password else ""
    except SecretUnreadable as error:
        raise ProviderError("secret_unreadable") from error
    return CalendarAccess(address, connection.username, password)


def store_credentials(connection: Connection, access: CalendarAccess) -> None:
    """Encrypt the credentials into the connection's fields. Does not save the row."""
    connection.address = encrypt_text(access.address)
    if connection.grant_id is None:
        connection.username = access.username
        connection.password = encrypt_text(access.password) if access.password else ""


def scheme_and_host(address: str) -> str:
    """`https://calendar.example.com:8443/ada/secret.ics` -> `https://calendar.example.com:8443`."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
