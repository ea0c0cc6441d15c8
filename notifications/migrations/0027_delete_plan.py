from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("notifications", "0026_change_calls")]

    operations = [migrations.DeleteModel("Plan")]
