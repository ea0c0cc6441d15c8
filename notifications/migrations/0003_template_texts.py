from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0002_sent_emails'),
    ]

    operations = [
        migrations.AddField(
            model_name='emailtemplate',
            name='body',
            field=models.TextField(blank=True, db_default='', default='', max_length=20000),
        ),
        migrations.AddField(
            model_name='emailtemplate',
            name='heading',
            field=models.CharField(blank=True, db_default='', default='', max_length=200),
        ),
    ]
