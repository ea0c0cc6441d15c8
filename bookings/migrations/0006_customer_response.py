from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0004_dark_logo'),
        ('bookings', '0005_report_totals'),
    ]

    operations = [
        migrations.AddField(
            model_name='customer',
            name='responded_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='customer',
            name='response',
            field=models.CharField(blank=True, choices=[('accepted', 'accepted'), ('tentative', 'tentative'), ('declined', 'declined')], editable=False, max_length=12, null=True),
        ),
        migrations.AddField(
            model_name='customer',
            name='response_source',
            field=models.CharField(blank=True, choices=[('calendar', 'calendar'), ('mail', 'mail')], editable=False, max_length=8, null=True),
        ),
        migrations.AlterField(
            model_name='statechange',
            name='source',
            field=models.CharField(choices=[('api', 'api'), ('widget', 'widget'), ('admin', 'admin'), ('link', 'link'), ('timer', 'timer'), ('calendar', 'calendar'), ('mail', 'mail')], max_length=8),
        ),
    ]
