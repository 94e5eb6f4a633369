"""What the API says of gates."""

from typing import Any

from rest_framework import serializers

from api.enums import GATE_OUTCOMES, RULE_KINDS, RULE_STATUSES


class RuleSerializer(serializers.Serializer[Any]):
    """`run` is a run's name (default: every run), `metric` a key (default: the run's primary one). `least`: of a floor
    and of coverage, from 0 to 1. `most`: of a drop (0 to 1), latency (ms, at `percentile`) and spend (money)."""

    rule = serializers.ChoiceField(choices=RULE_KINDS)
    run = serializers.CharField(required=False)
    metric = serializers.CharField(required=False)
    least = serializers.FloatField(required=False)
    most = serializers.FloatField(required=False)
    percentile = serializers.ChoiceField(choices=["p50", "p95"], required=False)


class RuleResultSerializer(serializers.Serializer[Any]):
    """One rule on one run. `unchecked`: there is nothing to check it with; `uncovered`: only results are missing."""

    run = serializers.CharField()
    rule = RuleSerializer()
    status = serializers.ChoiceField(choices=RULE_STATUSES)
    sentence = serializers.CharField()
    value = serializers.FloatField(allow_null=True)


class LostSerializer(serializers.Serializer[Any]):
    """A question found in the baseline and not here. `question` is null where the set was deleted."""

    id = serializers.CharField()
    question = serializers.CharField(allow_null=True)


class CheckedRunSerializer(serializers.Serializer[Any]):
    """`baseline` is the run it was compared with; `lost` are found in its first `k` and not in this run's."""

    run = serializers.UUIDField()
    name = serializers.CharField()
    baseline = serializers.UUIDField(allow_null=True)
    k = serializers.IntegerField()
    lost = LostSerializer(many=True)


class CheckedSerializer(serializers.Serializer[Any]):
    """`exit_code` is how `touchstone gate` ends: 0 passed, 3 broken, 4 uncovered, 1 unchecked. `junit` and `markdown`
    only where `include` asks for them."""

    outcome = serializers.ChoiceField(choices=GATE_OUTCOMES)
    exit_code = serializers.IntegerField()
    evaluation = serializers.UUIDField()
    results = RuleResultSerializer(many=True)
    runs = CheckedRunSerializer(many=True)
    junit = serializers.CharField(required=False)
    markdown = serializers.CharField(required=False)


class CheckSerializer(serializers.Serializer[Any]):
    """What a gate said of one closing of an evaluation."""

    id = serializers.UUIDField()
    gate = serializers.UUIDField()
    evaluation = serializers.UUIDField()
    revision = serializers.IntegerField()
    outcome = serializers.ChoiceField(choices=GATE_OUTCOMES)
    results = RuleResultSerializer(many=True)
    created_at = serializers.DateTimeField()


class GateSerializer(serializers.Serializer[Any]):
    """`schedule`: whose evaluations are checked as they end. `last`: what it said last."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    rules = RuleSerializer(many=True)
    schedule = serializers.UUIDField(allow_null=True)
    schedule_name = serializers.CharField(allow_blank=True)
    enabled = serializers.BooleanField()
    last = CheckSerializer(allow_null=True)
    created_at = serializers.DateTimeField()


class GateRequestSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200)
    rules = RuleSerializer(many=True)
    schedule = serializers.UUIDField(required=False, allow_null=True)
    enabled = serializers.BooleanField(required=False)


class GateChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200, required=False)
    rules = RuleSerializer(many=True, required=False)
    schedule = serializers.UUIDField(required=False, allow_null=True)
    enabled = serializers.BooleanField(required=False)


class CheckRequestSerializer(serializers.Serializer[Any]):
    """A `run` or an `evaluation`; a `gate` by id, or `rules` of the moment. `baseline`: a baseline, run or evaluation
    to compare with instead of what was approved."""

    run = serializers.UUIDField(required=False)
    evaluation = serializers.UUIDField(required=False)
    gate = serializers.UUIDField(required=False)
    rules = RuleSerializer(many=True, required=False)
    baseline = serializers.UUIDField(required=False)
    include = serializers.ListField(child=serializers.ChoiceField(choices=["junit", "markdown"]), required=False)


class DryRunRequestSerializer(serializers.Serializer[Any]):
    """`limit`: how many past evaluations (20); of the gate's schedule, or those of `question_set`."""

    limit = serializers.IntegerField(required=False, min_value=1, max_value=100)
    question_set = serializers.UUIDField(required=False)


class DryRunSerializer(serializers.Serializer[Any]):
    """What the gate would have said of past evaluations, newest first."""

    checks = CheckedSerializer(many=True)
