from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("backend", "0008_spend")]

    operations = []
