from notifications.management.commands import incoming_mail


class Command(incoming_mail.Command):
    help = "The former name of incoming_mail."
