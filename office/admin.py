"""What the back office registers itself: pages that show several rooms at once."""

from office.bookings import BookingAdmin

__all__ = ["BookingAdmin"]
