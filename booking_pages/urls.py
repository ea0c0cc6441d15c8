from django.urls import path, re_path
from django.views.decorators.gzip import gzip_page

from booking_pages.views import (
    branding,
    calendar_file,
    embed_snippets,
    held_time,
    hosted_project_page,
    markdown_page,
    own_bookings,
    reschedule,
)

urlpatterns = [
    # Any text: a link that was mangled on its way is answered by a page too.
    path("bookings/<str:booking_id>/reschedule", reschedule.ReschedulePageView.as_view()),
    path("bookings/<str:booking_id>/calendar.ics", calendar_file.CalendarFileView.as_view()),
    path("holds/<str:hold_id>", held_time.HeldTimeView.as_view()),
    re_path(r"^looks/(?P<color>[0-9a-f]{6})\.css$", branding.show_accent_stylesheet),
    re_path(r"^logos/(?P<slug>[\w-]+)/(?P<digest>[0-9a-f]{64})$", branding.show_logo),
    re_path(
        r"^pictures/(?P<resource_id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
        r"/(?P<digest>[0-9a-f]{64})$",
        branding.show_picture,
    ),
    path("embed.js", embed_snippets.show_embed_script),
    path("<str:project_slug>/embed", embed_snippets.EmbedPageView.as_view()),
    path("<str:app_slug>/mine", own_bookings.OwnBookingsView.as_view()),
    path("<str:app_slug>/mine/open", own_bookings.OpenLinkView.as_view()),
    path("<str:app_slug>/mine/close", own_bookings.CloseView.as_view()),
    path("<str:app_slug>/mine/export", own_bookings.ExportView.as_view()),
    path("<str:app_slug>/mine/erase", own_bookings.EraseView.as_view()),
    path("<str:app_slug>/mine/bookings/<str:booking_id>", own_bookings.DetailsView.as_view()),
    path("<slug:slug>.md", gzip_page(markdown_page.MarkdownPageView.as_view())),
    # Compressed: it has no secret, and the free times of some weeks are many digits.
    path("<path:project_slug>", gzip_page(hosted_project_page.BookPageView.as_view())),
]
