from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0004_template_texts_history'),
    ]

    operations = [
        migrations.CreateModel(
            name='StoredMetrics',
            fields=[
                ('name', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('samples', models.JSONField(default=dict)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('refreshed_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name_plural': 'stored metrics',
            },
        ),
    ]
