import backend.core.alerts
import backend.models.base
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('backend', '0008_spend'),
    ]

    operations = [
        migrations.CreateModel(
            name='AlertTarget',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('kind', models.CharField(choices=[('email', 'email'), ('webhook', 'webhook')], max_length=10)),
                ('address', models.CharField(max_length=1000)),
                ('with_texts', models.BooleanField(default=False)),
                ('enabled', models.BooleanField(default=True)),
                ('secret_number', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alert_targets', to='backend.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='alert_target_name_is_unique_in_workspace'), models.CheckConstraint(condition=models.Q(('kind__in', ['email', 'webhook'])), name='alert_target_kind_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Baseline',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('subject', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=200)),
                ('label', models.CharField(blank=True, max_length=200)),
                ('set_name', models.CharField(max_length=220)),
                ('set_hash', models.CharField(max_length=64)),
                ('metric_definitions', models.CharField(max_length=20)),
                ('code_version', models.CharField(max_length=60)),
                ('primary_metric', models.CharField(max_length=60)),
                ('approved_by', models.CharField(max_length=200)),
                ('approved_at', models.DateTimeField()),
                ('retired_at', models.DateTimeField(null=True)),
                ('question_set', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='baselines', to='backend.questionset')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='baselines', to='backend.run')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='baselines', to='backend.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('retired_at__isnull', True)), fields=('workspace', 'subject'), name='one_baseline_in_force_per_subject')],
            },
        ),
        migrations.CreateModel(
            name='CorpusSnapshot',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('fingerprint', models.CharField(max_length=64)),
                ('data', models.BinaryField()),
                ('used_at', models.DateTimeField()),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'fingerprint'), name='one_snapshot_per_corpus_fingerprint')],
            },
        ),
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('request', models.JSONField()),
                ('cron', models.CharField(max_length=200)),
                ('time_zone', models.CharField(max_length=60)),
                ('enabled', models.BooleanField(default=True)),
                ('grace_seconds', models.PositiveIntegerField()),
                ('revision', models.PositiveIntegerField(default=1)),
                ('next_run_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('knowledge_base', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='schedules', to='backend.knowledgebase')),
                ('question_set', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='schedules', to='backend.questionset')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='schedules', to='backend.workspace')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('enabled', True)), fields=['next_run_at'], name='schedule_due')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='schedule_name_is_unique_in_workspace')],
            },
        ),
        migrations.CreateModel(
            name='Gate',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('rules', models.JSONField()),
                ('enabled', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gates', to='backend.workspace')),
                ('schedule', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='gates', to='backend.schedule')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='gate_name_is_unique_in_workspace')],
            },
        ),
        migrations.CreateModel(
            name='Firing',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('slot_at', models.DateTimeField()),
                ('manual', models.BooleanField(default=False)),
                ('state', models.CharField(choices=[('started', 'started'), ('skipped', 'skipped'), ('covered', 'covered'), ('missed', 'missed'), ('failed', 'failed')], max_length=10)),
                ('caught_up', models.BooleanField(default=False)),
                ('n_slots', models.PositiveIntegerField(default=1)),
                ('code', models.CharField(blank=True, max_length=40)),
                ('reason', models.TextField(blank=True)),
                ('request', models.JSONField(default=dict)),
                ('revision', models.PositiveIntegerField(default=1)),
                ('checked_revision', models.IntegerField(default=-1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('evaluation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='firings', to='backend.evaluation')),
                ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='firings', to='backend.schedule')),
            ],
            options={
                'indexes': [models.Index(fields=['schedule', '-slot_at'], name='firing_by_schedule')],
                'constraints': [models.UniqueConstraint(fields=('schedule', 'slot_at'), name='one_firing_per_schedule_and_slot'), models.CheckConstraint(condition=models.Q(('state__in', ['started', 'skipped', 'covered', 'missed', 'failed'])), name='firing_state_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('gate', 'gate'), ('missed', 'missed'), ('not_run', 'not_run'), ('provider', 'provider')], max_length=20)),
                ('key', models.CharField(max_length=500)),
                ('state', models.CharField(choices=[('open', 'open'), ('resolved', 'resolved')], default=backend.core.alerts.AlertState['OPEN'], max_length=10)),
                ('title', models.CharField(max_length=300)),
                ('detail', models.JSONField(default=dict)),
                ('recovery', models.JSONField(default=dict)),
                ('opened_at', models.DateTimeField()),
                ('resolved_at', models.DateTimeField(null=True)),
                ('evaluation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='alerts', to='backend.evaluation')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='backend.workspace')),
                ('gate', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='alerts', to='backend.gate')),
                ('schedule', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='alerts', to='backend.schedule')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-opened_at'], name='alert_by_workspace')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('workspace', 'key'), name='one_open_alert_per_key'), models.CheckConstraint(condition=models.Q(('kind__in', ['gate', 'missed', 'not_run', 'provider'])), name='alert_kind_is_known'), models.CheckConstraint(condition=models.Q(('state__in', ['open', 'resolved'])), name='alert_state_is_known')],
            },
        ),
        migrations.CreateModel(
            name='GateCheck',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('revision', models.PositiveIntegerField()),
                ('outcome', models.CharField(choices=[('passed', 'passed'), ('broken', 'broken'), ('unchecked', 'unchecked'), ('uncovered', 'uncovered')], max_length=10)),
                ('report', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('evaluation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gate_checks', to='backend.evaluation')),
                ('gate', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='backend.gate')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gate_checks', to='backend.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('gate', 'evaluation', 'revision'), name='one_check_per_gate_and_closing'), models.CheckConstraint(condition=models.Q(('outcome__in', ['passed', 'broken', 'unchecked', 'uncovered'])), name='gate_check_outcome_is_known')],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('event', models.CharField(max_length=10)),
                ('body', models.JSONField()),
                ('state', models.CharField(choices=[('pending', 'pending'), ('delivered', 'delivered'), ('failed', 'failed'), ('dropped', 'dropped')], default=backend.core.alerts.DeliveryState['PENDING'], max_length=10)),
                ('n_attempts', models.PositiveIntegerField(default=0)),
                ('reason', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='backend.alert')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='backend.alerttarget')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('alert__isnull', False)), fields=('alert', 'target', 'event'), name='one_delivery_per_alert_target_and_event'), models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'delivered', 'failed', 'dropped'])), name='delivery_state_is_known')],
            },
        ),
        migrations.AddField(
            model_name='run',
            name='pruned_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
