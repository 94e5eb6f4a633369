import backend.models.base
import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('backend', '0004_is_graded'),
    ]

    operations = [
        migrations.CreateModel(
            name='LabelResolution',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('scope_hash', models.CharField(max_length=64)),
                ('corpus_hash', models.CharField(max_length=64)),
                ('generations', models.JSONField(default=dict)),
                ('n_expectations', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='label_resolutions', to='backend.questionsetversion')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'scope_hash', 'corpus_hash'), name='labels_are_resolved_once_per_corpus')],
            },
        ),
        migrations.CreateModel(
            name='ResolvedLabel',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('ordinal', models.PositiveIntegerField()),
                ('expectation', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('no_document', 'no_document'), ('no_passage', 'no_passage'), ('no_text', 'no_text'), ('not_indexed', 'not_indexed'), ('crosses_border', 'crosses_border'), ('outside_scope', 'outside_scope'), ('resolved', 'resolved')], max_length=20)),
                ('label', models.TextField()),
                ('documents', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ('n_passages', models.PositiveIntegerField(default=0)),
                ('nearest', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('elsewhere', models.TextField(blank=True)),
                ('resolution', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='backend.labelresolution')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('resolution', 'ordinal', 'expectation'), name='label_is_resolved_once'), models.CheckConstraint(condition=models.Q(('state__in', ['no_document', 'no_passage', 'no_text', 'not_indexed', 'crosses_border', 'outside_scope', 'resolved'])), name='label_state_is_known')],
            },
        ),
    ]
