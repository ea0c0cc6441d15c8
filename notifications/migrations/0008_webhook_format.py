from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("notifications", "0007_changes"),
    ]

    operations = [
        migrations.AddField(
            model_name='historicalwebhook',
            name='format',
            field=models.CharField(blank=True, max_length=8, null=True),
        ),
        migrations.AddField(
            model_name='webhook',
            name='format',
            field=models.CharField(blank=True, max_length=8, null=True),
        ),
    ]
