import backend.core.states
import backend.models.base
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('backend', '0006_run_origin'),
    ]

    operations = [
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=20)),
                ('state', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('completed', 'completed'), ('failed', 'failed'), ('cancelling', 'cancelling'), ('cancelled', 'cancelled')], default=backend.core.states.JobState['QUEUED'], max_length=12)),
                ('payload', models.JSONField(default=dict)),
                ('result', models.JSONField(default=dict)),
                ('n_done', models.PositiveIntegerField(default=0)),
                ('n_total', models.PositiveIntegerField(default=0)),
                ('code', models.CharField(blank=True, max_length=40)),
                ('reason', models.TextField(blank=True)),
                ('faults', models.JSONField(default=list)),
                ('created_by', models.CharField(blank=True, max_length=100)),
                ('deadline_at', models.DateTimeField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='jobs', to='backend.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-created_at'], name='job_by_workspace'), models.Index(condition=models.Q(('state__in', ['queued', 'running', 'cancelling'])), fields=['state'], name='job_open')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'running', 'completed', 'failed', 'cancelling', 'cancelled'])), name='job_state_is_known')],
            },
        ),
        migrations.CreateModel(
            name='JobFile',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('input', 'input'), ('output', 'output')], max_length=6)),
                ('name', models.CharField(max_length=300)),
                ('media_type', models.CharField(blank=True, max_length=100)),
                ('size', models.PositiveBigIntegerField()),
                ('data', models.BinaryField()),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='backend.job')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('job', 'role'), name='job_has_one_file_of_a_role'), models.CheckConstraint(condition=models.Q(('role__in', ['input', 'output'])), name='job_file_role_is_known')],
            },
        ),
        migrations.RemoveConstraint(
            model_name='slice',
            name='slice_has_one_owner',
        ),
        migrations.RemoveField(
            model_name='evaluation',
            name='n_slices_lost',
        ),
        migrations.AddField(
            model_name='result',
            name='cut',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='result',
            name='ann_recall',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='slice',
            name='job',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='slices', to='backend.job'),
        ),
        migrations.AddConstraint(
            model_name='slice',
            constraint=models.UniqueConstraint(condition=models.Q(('job__isnull', False), ('state__in', ['pending', 'queued', 'leased'])), fields=('job',), name='job_has_one_open_slice'),
        ),
        migrations.AddConstraint(
            model_name='slice',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('evaluation__isnull', False), ('ingestion__isnull', True), ('job__isnull', True)), models.Q(('evaluation__isnull', True), ('ingestion__isnull', False), ('job__isnull', True)), models.Q(('evaluation__isnull', True), ('ingestion__isnull', True), ('job__isnull', False)), _connector='OR'), name='slice_has_one_owner'),
        ),
    ]
