"""Texts of the theme on pages of the back office: the theme has no translations of its own."""

from django.utils.translation import gettext_noop as noop

THEME_TEXTS = (
    noop("After you've created a user, you’ll be able to edit more user options."),
    noop("Apply Filters"),
    noop("Changes"),
    noop("Choose file to upload"),
    noop("Click to cancel"),
    noop("Click to download"),
    noop("Dark"),
    noop("Date from"),
    noop("Date to"),
    noop("Expand row"),
    noop("False"),
    noop("From"),
    noop("General"),
    noop("Go back"),
    noop("Image preview"),
    noop("Light"),
    noop("More actions"),
    noop("Next"),
    noop("No data"),
    noop("Previous"),
    noop(
        "Raw passwords are not stored, so there is no way to see this user’s password, but you can"
        ' change the password using <a href="{}" class="text-primary-600 dark:text-primary-500">'
        "this form</a>."
    ),
    noop("Reset filters"),
    noop("Run"),
    noop("Save and add another"),
    noop("Save and continue editing"),
    noop("Select action"),
    noop("Select action to run"),
    noop("Select all rows"),
    noop("Select record"),
    noop("Select value"),
    noop("Show all"),
    noop("System"),
    noop("This item will be deleted."),
    noop("To"),
    noop("Toggle password visibility"),
    noop("True"),
    noop("Type to search"),
    noop("Value"),
    noop("Welcome back to"),
)
