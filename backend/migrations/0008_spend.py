import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('backend', '0007_jobs'),
    ]

    operations = [
        migrations.CreateModel(
            name='Tally',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=60)),
                ('label', models.CharField(blank=True, max_length=60)),
                ('n', models.BigIntegerField(default=0)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('name', 'label'), name='one_tally_per_name_and_label')],
            },
        ),
        migrations.CreateModel(
            name='SpendEntry',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('month', models.DateField()),
                ('provider', models.CharField(max_length=400)),
                ('purpose', models.CharField(choices=[('search', 'search'), ('evaluation', 'evaluation'), ('ingestion', 'ingestion'), ('answers', 'answers'), ('generation', 'generation')], max_length=12)),
                ('owner', models.UUIDField(null=True)),
                ('n_calls', models.PositiveIntegerField(default=1)),
                ('units', models.JSONField(default=dict)),
                ('amount', models.DecimalField(decimal_places=12, max_digits=24, null=True)),
                ('currency', models.CharField(blank=True, max_length=10)),
                ('is_estimated', models.BooleanField(default=False)),
                ('at', models.DateTimeField()),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', 'month'], name='spend_by_month'), models.Index(condition=models.Q(('owner__isnull', False)), fields=['owner'], name='spend_by_owner')],
                'constraints': [models.CheckConstraint(condition=models.Q(('purpose__in', ['search', 'evaluation', 'ingestion', 'answers', 'generation'])), name='spend_purpose_is_known'), models.CheckConstraint(condition=models.Q(('amount__isnull', True), ('amount__gte', 0), _connector='OR'), name='spend_amount_is_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='SpendMonth',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('month', models.DateField()),
                ('currency', models.CharField(max_length=10)),
                ('amount', models.DecimalField(decimal_places=12, max_digits=24)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='backend.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'month', 'currency'), name='one_sum_per_month_and_currency')],
            },
        ),
        migrations.AddField(
            model_name='providerstate',
            name='code',
            field=models.CharField(blank=True, db_default='', default='', max_length=40),
        ),
        migrations.AddField(
            model_name='providerstate',
            name='held_at',
            field=models.DateTimeField(null=True),
        ),
    ]
