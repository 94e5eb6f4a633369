"""Vectors stay in their row where they fit into a page: an exact search reads every one of them.

pgvector stores them out of line as soon as a row passes 2 kB, which a passage of usual length does; reading 5,000 of
them then costs three times as much. MAIN moves the text out first. What does not fit into a page still goes out of line.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("backend", "0002_tables")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE backend_chunk ALTER COLUMN embedding SET STORAGE MAIN",
            "ALTER TABLE backend_chunk ALTER COLUMN embedding SET STORAGE EXTERNAL",
        )
    ]
