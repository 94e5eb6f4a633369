"""Progress of open evaluations is summed from entries; those that are open now begin with what they have."""

import django.db.models.deletion
from django.db import migrations, models

_NOTE = """
INSERT INTO backend_progressentry (run_id, epoch, outcome, n, created_at)
SELECT run_id, epoch, outcome, count(*), max(created_at) FROM backend_result
WHERE run_id IN (
    SELECT r.id FROM backend_run r JOIN backend_evaluation e ON e.id = r.evaluation_id
    WHERE e.state NOT IN ('completed', 'failed', 'cancelled'))
GROUP BY run_id, epoch, outcome
"""


class Migration(migrations.Migration):

    dependencies = [
        ('backend', '0012_one_index_a_key'),
    ]

    operations = [
        migrations.CreateModel(
            name='ProgressEntry',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('epoch', models.PositiveIntegerField()),
                ('outcome', models.CharField(choices=[('ok', 'ok'), ('empty', 'empty'), ('error', 'error'), ('cancelled', 'cancelled'), ('not_run', 'not_run')], max_length=10)),
                ('n', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField()),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='progress', to='backend.run')),
            ],
        ),
        migrations.RunSQL(_NOTE, migrations.RunSQL.noop),
    ]
