from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('availability', '0004_event_conference'),
    ]

    operations = [
        migrations.AddField(
            model_name='event',
            name='is_further_unit',
            field=models.BooleanField(editable=False, null=True),
        ),
    ]
