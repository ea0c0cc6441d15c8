from django.contrib.postgres.functions import TransactionNow
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("apps_config", "0003_history")]

    operations = [
        migrations.AddField(
            model_name="credential",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, db_default=TransactionNow()),
        ),
    ]
