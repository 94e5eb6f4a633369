import backend.models.base
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '__first__'),
        ('backend', '0009_schedules'),
    ]

    operations = [
        migrations.CreateModel(
            name='LoginFailures',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('subject', models.CharField(max_length=64)),
                ('n_failed', models.PositiveIntegerField(default=0)),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField(db_index=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('subject',), name='login_failures_of_a_subject_are_one_row')],
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('workspace_name', models.CharField(blank=True, max_length=200)),
                ('at', models.DateTimeField(db_index=True)),
                ('caller', models.CharField(max_length=80)),
                ('caller_name', models.CharField(blank=True, max_length=200)),
                ('action', models.CharField(max_length=200)),
                ('target', models.CharField(blank=True, max_length=500)),
                ('fields', models.JSONField(default=list)),
                ('request_id', models.CharField(blank=True, max_length=100)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_events', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_events', to='backend.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-id'], name='audit_by_workspace')],
            },
        ),
        migrations.CreateModel(
            name='ProviderKey',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('provider', models.CharField(max_length=80)),
                ('sealed', models.TextField()),
                ('fingerprint', models.CharField(max_length=16)),
                ('base_url', models.CharField(blank=True, max_length=500)),
                ('shape', models.CharField(blank=True, max_length=20)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='provider_keys', to='backend.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'provider'), name='one_key_per_workspace_and_provider')],
            },
        ),
    ]
