from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("availability", "0008_project_steps_history"),
    ]

    operations = [
        migrations.AddField(
            model_name='event',
            name='is_further_unit',
            field=models.BooleanField(editable=False, null=True),
        ),
    ]
