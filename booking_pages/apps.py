from django.apps import AppConfig


class BookingPagesConfig(AppConfig):
    name = "booking_pages"
    verbose_name = "Booking pages"
