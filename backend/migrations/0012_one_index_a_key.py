"""A foreign key has no index of its own where another begins with it.

Each write keeps one less, and before statistics are there the planner cannot take it for the better one: of a set of
50,000 questions it read all to find 50.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

# Indexes of a foreign key alone whose table has another, complete one that begins with it.
_DOUBLED = r"""
SELECT i.indexrelid::regclass::text
FROM pg_index i
JOIN pg_class t ON t.oid = i.indrelid AND t.relname LIKE 'backend\_%' AND t.relnamespace = current_schema::regnamespace
WHERE i.indnkeyatts = 1 AND NOT i.indisunique AND i.indpred IS NULL
  AND EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = t.oid AND k.contype = 'f' AND k.conkey[1] = i.indkey[0])
  AND EXISTS (SELECT 1 FROM pg_index o
              WHERE o.indrelid = t.oid AND o.indisvalid AND o.indnkeyatts > 1 AND o.indpred IS NULL AND o.indkey[0] = i.indkey[0])
"""


def drop_doubled(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  what Django hands over
    """One at a time and beside those who work: altering the fields would drop and check each foreign key anew."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_DOUBLED)
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("backend", "0011_generation")]

    operations = [
        migrations.RunPython(drop_doubled, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='alert',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='alerttarget',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='alert_targets', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='answer',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='answers_given', to='backend.run'),
                ),
                migrations.AlterField(
                    model_name='auditevent',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_events', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='blob',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='cachedembedding',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='cachedreply',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='cachedscore',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='chunk',
                    name='index',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='backend.index'),
                ),
                migrations.AlterField(
                    model_name='corpussnapshot',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='document',
                    name='knowledge_base',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='documents', to='backend.knowledgebase'),
                ),
                migrations.AlterField(
                    model_name='document',
                    name='source',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='documents', to='backend.source'),
                ),
                migrations.AlterField(
                    model_name='draft',
                    name='generation',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='backend.generation'),
                ),
                migrations.AlterField(
                    model_name='evaluation',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='firing',
                    name='schedule',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='firings', to='backend.schedule'),
                ),
                migrations.AlterField(
                    model_name='gate',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='gates', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='gatecheck',
                    name='gate',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='backend.gate'),
                ),
                migrations.AlterField(
                    model_name='generation',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='generations', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='idempotencyrecord',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='index',
                    name='knowledge_base',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='indexes', to='backend.knowledgebase'),
                ),
                migrations.AlterField(
                    model_name='indexeddocument',
                    name='index',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='indexed_documents', to='backend.index'),
                ),
                migrations.AlterField(
                    model_name='ingestion',
                    name='knowledge_base',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='ingestions', to='backend.knowledgebase'),
                ),
                migrations.AlterField(
                    model_name='job',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='jobs', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='jobfile',
                    name='job',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='files', to='backend.job'),
                ),
                migrations.AlterField(
                    model_name='knowledgebase',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='knowledge_bases', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='labelresolution',
                    name='version',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='label_resolutions', to='backend.questionsetversion'),
                ),
                migrations.AlterField(
                    model_name='membership',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='providerkey',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='provider_keys', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='providerstate',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='question',
                    name='version',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='questions', to='backend.questionsetversion'),
                ),
                migrations.AlterField(
                    model_name='questionset',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='question_sets', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='questionsetversion',
                    name='question_set',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='backend.questionset'),
                ),
                migrations.AlterField(
                    model_name='resolvedlabel',
                    name='resolution',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='backend.labelresolution'),
                ),
                migrations.AlterField(
                    model_name='result',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='results', to='backend.run'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='evaluation',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='backend.evaluation'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='schedule',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='schedules', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='source',
                    name='knowledge_base',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='backend.knowledgebase'),
                ),
                migrations.AlterField(
                    model_name='sourcesetfile',
                    name='source',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='set_files', to='backend.source'),
                ),
                migrations.AlterField(
                    model_name='spendentry',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
                migrations.AlterField(
                    model_name='spendmonth',
                    name='workspace',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace'),
                ),
            ],
        ),
    ]
