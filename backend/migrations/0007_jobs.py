from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("backend", "0006_run_origin")]

    operations = []
