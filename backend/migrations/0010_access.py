from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("backend", "0009_schedules")]

    operations = []
