"""How a connected calendar is reached: its secrets, in clear for no longer than a call."""

from urllib.parse import urlsplit

from external_calendars.models import Connection
from external_calendars.providers.base import Access, Trouble
from scheduling.api.secrets import SecretUnreadable, decrypt_text, encrypt_text


def access_of(connection: Connection) -> Access:
    """Its collection or feed, with who looks there. Raises Trouble (secret_unreadable)."""
    try:
        address = decrypt_text(connection.address)
        password = decrypt_text(connection.password) if connection.password else ""
    except SecretUnreadable as error:
        raise Trouble("secret_unreadable") from error
    return Access(address, connection.username, password)


def keep_access(connection: Connection, access: Access) -> None:
    """Put it on the row, which is not saved."""
    connection.address = encrypt_text(access.address)
    connection.username = access.username
    connection.password = encrypt_text(access.password) if access.password else ""


def server_of(address: str) -> str:
    """`https://calendar.example.com:8443/ada/secret.ics` -> `https://calendar.example.com:8443`."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
