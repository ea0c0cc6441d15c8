"""`manage.py rederive_all_day_events`: the former name of `recompute_all_day_events`."""

from ops.management.commands import recompute_all_day_events


class Command(recompute_all_day_events.Command):
    help = "Former name of recompute_all_day_events."
