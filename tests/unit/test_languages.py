import pytest

from backend.core.languages import detect, of_many

TEXTS = {
    "english": "What is the notice period, and who has to be told?",
    "german": "Wie lang ist die Frist und wer wird von der Kündigung informiert?",
    "french": "Quelle est la durée du préavis et qui est informé dans ce cas?",
    "spanish": "¿Cuál es el plazo y quién se ocupa de los gastos del viaje?",
    "italian": "Quanto è lungo il periodo e chi sono gli interessati della procedura?",
    "portuguese": "Qual é o prazo e quem são os responsáveis por uma viagem em serviço, como não sei?",
    "dutch": "Wat is de termijn en wie wordt van het ontslag op de hoogte gebracht?",
    "turkish": "Yıllık izin kaç gündür ve bu izin için hangi form gerekir, nasıl alınır?",
    "russian": "Сколько дней отпуска у сотрудника?",
    "japanese": "有給休暇は何日ありますか",
    "chinese": "每年有多少天带薪休假",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_tells_its_language(language: str) -> None:
    assert detect(TEXTS[language]) == language
    assert detect(TEXTS[language].upper()) == language


@pytest.mark.parametrize("text", ["", "E-1042", "revenue 2023", "Πθ = 3 in a formula"])
def test_too_little_tells_nothing(text: str) -> None:
    assert detect(text) == ""


def test_a_stray_text_is_no_second_language() -> None:
    assert of_many([TEXTS["english"]] * 30 + [TEXTS["german"]]) == ("english",)
    assert of_many([TEXTS["english"]] * 10 + [TEXTS["german"]] * 3) == ("english", "german")
    assert of_many(["E-1042"]) == ()
