"""The migrations of bookings, and one more: a column and an index of a large table."""

import bookings.migrations

__path__ = [*__path__, *bookings.migrations.__path__]
