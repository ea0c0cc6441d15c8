from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("bookings", "0013_changes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="statechange",
            name="source",
            field=models.CharField(
                choices=[
                    ("api", "api"),
                    ("widget", "widget"),
                    ("admin", "admin"),
                    ("link", "link"),
                    ("timer", "timer"),
                    ("calendar", "calendar"),
                    ("mail", "mail"),
                    ("mcp", "mcp"),
                ],
                max_length=8,
            ),
        ),
    ]
