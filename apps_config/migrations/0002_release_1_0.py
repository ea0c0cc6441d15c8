import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0001_release_1_0'),
        ('availability', '0001_release_1_0'),
    ]

    operations = [
        migrations.AddField(
            model_name='credential',
            name='hosted_project',
            field=models.ForeignKey(blank=True, db_index=False, editable=False, help_text='the project whose hosted page hands it out', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='availability.project'),
        ),
        migrations.AddField(
            model_name='credential',
            name='resource',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='credentials', to='availability.resource'),
        ),
        migrations.AddConstraint(
            model_name='credential',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('account__isnull', True), ('app__isnull', False), ('kind__in', ['server', 'widget']), ('resource__isnull', True)), models.Q(('account__isnull', False), ('app__isnull', True), ('kind', 'access'), ('resource__isnull', True)), models.Q(('account__isnull', True), ('app__isnull', False), ('kind', 'resource'), ('resource__isnull', False)), _connector='OR'), name='credential_holder'),
        ),
    ]
