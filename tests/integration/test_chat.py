"""Chat models against a server that speaks their wire format: what is asked, in which manner, and what replies mean."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backend.providers import chat_openai, registry
from backend.providers.base import ProviderError, ProviderFault
from backend.providers.chat import Ask, ChatModel, Ending, Rung, system_and_user
from backend.providers.settings import ChatServer, ProviderSettings
from tests.standins import Standin
from tests.standins.script import Fault, Script

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ASK = Ask(name="number", messages=system_and_user("Reply with a JSON object.", "Which?"), schema=SCHEMA, seed=7)


@pytest.fixture
def standin() -> Iterator[Standin]:
    with Standin(Script(chat_reply='{"a": 1}')) as running:
        yield running


@pytest.fixture
def model(standin: Standin) -> Iterator[ChatModel]:
    chat_openai.forget_manners()
    settings = ProviderSettings(
        model_folder=Path("none"), openai_key="sk-small", openai_url=f"{standin.url}/v1", connect_timeout_seconds=1
    )
    yield registry.chat("openai:small", settings)
    chat_openai.forget_manners()


def test_a_schema_is_asked_for_first_and_what_was_billed_is_told(standin: Standin, model: ChatModel) -> None:
    got = model.reply(ASK, timeout=5)
    body = standin.calls[0].body
    assert (got.text, got.ending, got.rung) == ('{"a": 1}', Ending.COMPLETE, Rung.SCHEMA)
    assert body["response_format"]["json_schema"] == {"name": "number", "strict": True, "schema": SCHEMA}
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 7, 1000)
    assert got.units == {"chat_calls": 1.0, "input_tokens": 6.0, "output_tokens": 2.0}
    assert standin.calls[0].headers["authorization"] == "Bearer sk-small"


@pytest.mark.parametrize(("manners", "rung"), [(("no_schema",), Rung.OBJECT), (("no_schema", "no_object"), Rung.TEXT)])
def test_a_form_that_is_refused_gives_way_to_the_next_and_is_not_tried_again(
    standin: Standin, model: ChatModel, manners: tuple[str, ...], rung: Rung
) -> None:
    standin.set_script(replace(standin.script, chat_manners=manners))
    first = model.reply(ASK, timeout=5)
    n_first = len(standin.calls)
    second = model.reply(ASK, timeout=5)
    assert (first.rung, second.rung) == (rung, rung)
    assert (first.units["chat_calls"], second.units["chat_calls"]) == (len(manners) + 1, 1)
    assert (n_first, len(standin.calls)) == (len(manners) + 1, len(manners) + 2)


def test_a_model_without_temperature_or_the_old_limit_is_asked_without_them(standin: Standin, model: ChatModel) -> None:
    standin.set_script(replace(standin.script, chat_manners=("no_max_tokens", "no_temperature")))
    assert model.reply(ASK, timeout=5).rung is Rung.SCHEMA
    body = standin.calls[-1].body
    assert "temperature" not in body
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 1000


def test_a_refusal_of_something_else_is_not_taken_for_one_of_the_form(standin: Standin, model: ChatModel) -> None:
    body = '{"error": {"message": "This model\'s maximum context length is 8192 tokens."}}'
    standin.set_script(Script(fault=Fault.STATUS, status=400, body=body))
    with pytest.raises(ProviderError, match="maximum context") as caught:
        model.reply(ASK, timeout=5)
    assert caught.value.fault is ProviderFault.BAD_REQUEST
    assert len(standin.calls) == 1


@pytest.mark.parametrize(
    ("manner", "ending"),
    [("cut", Ending.CUT), ("refused", Ending.REFUSED), ("empty", Ending.EMPTY), ("fenced", Ending.COMPLETE)],
)
def test_how_a_reply_ended_is_told(standin: Standin, model: ChatModel, manner: str, ending: Ending) -> None:
    standin.set_script(replace(standin.script, chat_words={"Which": manner}))
    assert model.reply(ASK, timeout=5).ending is ending


@pytest.mark.parametrize(
    ("script", "fault", "retryable"),
    [
        (Script(key="other"), ProviderFault.AUTH, False),
        (Script(fault=Fault.STATUS, status=429, body='{"error": {"code": "insufficient_quota"}}'), "quota", False),
        (Script(fault=Fault.STATUS, status=503), ProviderFault.SERVER, True),
        (Script(fault=Fault.STATUS, status=404), ProviderFault.MODEL, False),
        (Script(fault=Fault.NOT_THE_SHAPE), ProviderFault.SHAPE, False),
        (Script(fault=Fault.HTML), ProviderFault.SHAPE, True),
        (Script(fault=Fault.DRIP), ProviderFault.TIMEOUT, True),
    ],
)
def test_each_way_of_failing_has_its_fault(
    standin: Standin, model: ChatModel, script: Script, fault: str, retryable: bool
) -> None:
    standin.set_script(script)
    with pytest.raises(ProviderError) as caught:
        model.reply(ASK, timeout=0.5)
    assert (caught.value.fault, caught.value.retryable) == (fault, retryable)


def test_a_named_server_is_called_with_its_own_key_and_never_with_anothers(standin: Standin) -> None:
    settings = ProviderSettings(
        model_folder=Path("none"),
        openai_key="theirs",
        chat_servers=(ChatServer(name="shelf", url=f"{standin.url}/v1"),),
    )
    got = registry.chat("Shelf:llama3:8b", settings)
    assert (got.info.model, got.info.base_url) == ("llama3:8b", f"{standin.url}/v1")
    got.reply(replace(ASK, schema=None), timeout=5)
    assert "authorization" not in standin.calls[0].headers
    with pytest.raises(ProviderError, match="TOUCHSTONE_CHAT_ELSEWHERE_URL"):
        registry.chat("elsewhere:m", settings)


def test_openai_itself_needs_a_key() -> None:
    with pytest.raises(ProviderError, match="OPENAI_API_KEY"):
        registry.chat("openai:gpt", ProviderSettings(model_folder=Path("none")))
