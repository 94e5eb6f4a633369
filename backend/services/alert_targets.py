"""Who is told of alerts: e-mail addresses and webhooks."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError as DjangoValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import F

from backend.core.alerts import TargetKind
from backend.core.errors import ConflictError, ErrorCode, Fault, ValidationError
from backend.models import AlertTarget, Workspace
from backend.net import safe_http
from backend.net.safe_http import UnsafeUrlError
from backend.services import webhooks

MAX_ADDRESS = 1000


def create(
    workspace: Workspace, *, name: str, kind: TargetKind, address: str, with_texts: bool = False, enabled: bool = True
) -> AlertTarget:
    """Raises ValidationError for an address that cannot be told anything, ConflictError for a name that is taken."""
    _check(kind, address)
    try:
        with transaction.atomic():
            return AlertTarget.objects.create(
                workspace=workspace, name=name, kind=kind, address=address, with_texts=with_texts, enabled=enabled
            )
    except IntegrityError as error:
        raise ConflictError(f"There is a target {name!r} already.") from error


def update(target: AlertTarget, *, changes: Mapping[str, Any]) -> AlertTarget:
    """`name`, `address`, `with_texts`, `enabled`, and `new_secret`: what is given."""
    values = dict(changes)
    if "address" in values:
        _check(TargetKind(target.kind), values["address"])
    if values.pop("new_secret", False):
        values["secret_number"] = F("secret_number") + 1
    try:
        with transaction.atomic():
            AlertTarget.objects.filter(id=target.id).update(**values)
    except IntegrityError as error:
        raise ConflictError(f"There is a target {values.get('name')!r} already.") from error
    target.refresh_from_db()
    return target


def _check(kind: TargetKind, address: str) -> None:
    message = ""
    if len(address) > MAX_ADDRESS:
        message = f"address has at most {MAX_ADDRESS:,} characters."
    elif kind is TargetKind.WEBHOOK:
        try:
            safe_http.check(address, webhooks.policy())
        except UnsafeUrlError as error:
            message = str(error)
    elif not settings.EMAIL_HOST:
        message = "No mail server is configured (TOUCHSTONE_EMAIL_HOST): take a webhook."
    else:
        try:
            validate_email(address)
        except DjangoValidationError:
            message = f"{address!r} is no e-mail address."
    if message:
        raise ValidationError(
            message, field="address", faults=[Fault(code=ErrorCode.VALIDATION, message=message, field="address")]
        )
