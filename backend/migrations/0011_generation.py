import backend.core.generation.kinds
import backend.models.base
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('backend', '0010_access'),
    ]

    operations = [
        migrations.CreateModel(
            name='Generation',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('knowledge_base_name', models.CharField(blank=True, max_length=200)),
                ('llm', models.CharField(max_length=400)),
                ('prompt_version', models.CharField(max_length=40)),
                ('settings', models.JSONField(default=dict)),
                ('skipped', models.JSONField(default=dict)),
                ('drawn_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('job', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='generations', to='backend.job')),
                ('knowledge_base', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='generations', to='backend.knowledgebase')),
                ('question_set', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='generations', to='backend.questionset')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='generations', to='backend.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-id'], name='generation_by_workspace')],
            },
        ),
        migrations.CreateModel(
            name='Answer',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('ordinal', models.PositiveIntegerField()),
                ('question_key', models.CharField(max_length=300)),
                ('epoch', models.PositiveIntegerField()),
                ('outcome', models.CharField(choices=[('judged', 'judged'), ('failed', 'failed'), ('skipped', 'skipped'), ('cancelled', 'cancelled'), ('not_run', 'not_run')], max_length=10)),
                ('code', models.CharField(blank=True, max_length=40)),
                ('reason', models.TextField(blank=True)),
                ('text', models.TextField(blank=True)),
                ('abstained', models.BooleanField(default=False)),
                ('faithfulness', models.FloatField(null=True)),
                ('relevance', models.FloatField(null=True)),
                ('correctness', models.FloatField(null=True)),
                ('n_repeats', models.PositiveSmallIntegerField(default=0)),
                ('claims', models.JSONField(default=list)),
                ('passages', models.JSONField(default=list)),
                ('replies', models.JSONField(default=list)),
                ('units', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers_given', to='backend.run')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'ordinal'), name='one_answer_per_run_and_question'), models.CheckConstraint(condition=models.Q(('outcome__in', ['judged', 'failed', 'skipped', 'cancelled', 'not_run'])), name='answer_outcome_is_known')],
            },
        ),
        migrations.CreateModel(
            name='CachedReply',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('key', models.BinaryField(max_length=32)),
                ('reply', models.JSONField()),
                ('used_at', models.DateTimeField(auto_now_add=True)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['used_at'], name='cached_reply_by_use')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'key'), name='reply_is_cached_once')],
            },
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.UUIDField(default=backend.models.base.new_id, editable=False, primary_key=True, serialize=False)),
                ('ordinal', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('fact', 'fact'), ('paraphrase', 'paraphrase'), ('keyword', 'keyword'), ('several', 'several'), ('unanswerable', 'unanswerable')], max_length=12)),
                ('state', models.CharField(choices=[('open', 'open'), ('pending', 'pending'), ('accepted', 'accepted'), ('rejected', 'rejected'), ('dropped', 'dropped'), ('failed', 'failed')], default=backend.core.generation.kinds.DraftState['OPEN'], max_length=8)),
                ('code', models.CharField(blank=True, max_length=40)),
                ('reason', models.TextField(blank=True)),
                ('question', models.TextField(blank=True)),
                ('original', models.TextField(blank=True)),
                ('answer', models.TextField(blank=True)),
                ('passages', models.JSONField(default=list)),
                ('alternatives', models.JSONField(default=list)),
                ('verdicts', models.JSONField(default=list)),
                ('leakage_run', models.PositiveIntegerField(null=True)),
                ('leakage_copied', models.FloatField(null=True)),
                ('leakage_band', models.CharField(blank=True, choices=[('low', 'low'), ('middle', 'middle'), ('high', 'high')], max_length=6)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('rung', models.CharField(blank=True, max_length=12)),
                ('how', models.CharField(blank=True, max_length=10)),
                ('reply', models.TextField(blank=True)),
                ('checks', models.JSONField(default=dict)),
                ('units', models.JSONField(default=dict)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('reviewed_by', models.CharField(blank=True, max_length=100)),
                ('reviewed_at', models.DateTimeField(blank=True, null=True)),
                ('question_key', models.CharField(blank=True, max_length=300)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('generation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='backend.generation')),
            ],
            options={
                'indexes': [models.Index(fields=['generation', 'state'], name='draft_by_state')],
                'constraints': [models.UniqueConstraint(fields=('generation', 'ordinal'), name='draft_ordinal_is_unique_in_generation'), models.CheckConstraint(condition=models.Q(('state__in', ['open', 'pending', 'accepted', 'rejected', 'dropped', 'failed'])), name='draft_state_is_known'), models.CheckConstraint(condition=models.Q(('kind__in', ['fact', 'paraphrase', 'keyword', 'several', 'unanswerable'])), name='draft_kind_is_known')],
            },
        ),
        migrations.AddField(
            model_name='question',
            name='generated',
            field=models.CharField(blank=True, db_default='', default='', max_length=200),
        ),
        migrations.AddField(
            model_name='run',
            name='answers',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
