from tests.notifications.conftest import hooks, mails

__all__ = ["hooks", "mails"]
