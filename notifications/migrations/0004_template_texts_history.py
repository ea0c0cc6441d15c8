from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0003_template_texts'),
    ]

    operations = [
        migrations.AddField(
            model_name='historicalemailtemplate',
            name='body',
            field=models.TextField(blank=True, db_default='', default='', max_length=20000),
        ),
        migrations.AddField(
            model_name='historicalemailtemplate',
            name='heading',
            field=models.CharField(blank=True, db_default='', default='', max_length=200),
        ),
    ]
