from tests.notifications.conftest import mails

__all__ = ["mails"]
