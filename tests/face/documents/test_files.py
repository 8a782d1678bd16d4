"""Documents in JSON, YAML and TOML are the same values, and what is none is refused with what would be one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from horae.errors import HoraeError
from horae.face.documents.files import document, parsed, yaml_text
from horae.face.documents.schedule_documents import Document, one_schedule, read_documents

YAML = """\
# what YAML 1.1 would make something else of
id: on
spec: {times: [2026-12-25, 2026-12-25T09:00:00Z], crons: [12:30]}
action: {name: report, input: {yes: no, count: 0x10, pi: 3.5, big: 1e3, none: ~, nothing: , flag: true, port: 010}}
"""
VALUE: Any = {
    "id": "on", "spec": {"times": ["2026-12-25", "2026-12-25T09:00:00Z"], "crons": ["12:30"]},
    "action": {
        "name": "report",
        "input": {"yes": "no", "count": "0x10", "pi": 3.5, "big": 1000.0, "none": None, "nothing": None, "flag": True, "port": "010"},
    },
}  # fmt: skip
TOML = """\
# a time is a text
[[calendars]]
name = "closed"
dates = [2026-12-25]

[[schedules]]
id = "report"
spec = {times = [2026-12-25T09:00:00Z], timezone = "Europe/Berlin"}
action = "report"
"""


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def test_values_are_those_of_json(tmp_path: Path):
    assert document(written(tmp_path, "a.yaml", YAML), "--file", "") == VALUE
    assert document(written(tmp_path, "a.JSON", json.dumps(VALUE)), "--file", "") == VALUE
    assert document(written(tmp_path, "plain", YAML), "--file", "") == VALUE
    assert document(written(tmp_path, "plain", f"\n {json.dumps(VALUE)}"), "--file", "") == VALUE
    assert document(written(tmp_path, "plain", TOML), "--file", "") == {
        "calendars": [{"name": "closed", "dates": ["2026-12-25"]}],
        "schedules": [
            {"id": "report", "spec": {"times": ["2026-12-25T09:00:00+00:00"], "timezone": "Europe/Berlin"}, "action": "report"}
        ],
    }  # fmt: skip
    shared = "usual: &usual {overlap: skip}\nown: {<<: *usual, retry: {attempts: 2}}"
    assert document(written(tmp_path, "b.yml", shared), "--file", "")["own"] == {
        "overlap": "skip",
        "retry": {"attempts": 2},
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yaml", "a: 1\nb: 2\na: 3", 'the key "a" occurs twice'),
        ("a.yaml", "1: x", "the key 1 is no text"),
        ("a.yaml", "a: [", "is no YAML"),
        ("a.yaml", "a: &a [*a]", "is no YAML"),
        ("a.yaml", "!!python/object:os.system {}", "is no YAML"),
        ("a.yaml", "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))]), "more than 100000 values"),
        ("a.toml", "a = inf", "inf is no number"),
        ("a.toml", "a = ", "is no TOML"),
        ("a.json", "{", "is no JSON"),
        ("a.json", "[" * 200 + "]" * 200, "deep"),
        ("a.json", "\xff", "is no JSON"),
        ("a", "hello", "is no JSON object"),
        ("a.yaml", "a: 1\n---\nb: 2", "is no JSON object"),
    ],
)  # fmt: skip
def test_what_is_no_document_is_refused(tmp_path: Path, name: str, text: str, words: str):
    with pytest.raises(HoraeError, match="--file") as refused:
        document(written(tmp_path, name, text), "--file", '{"id": "x"}')
    assert words in refused.value.message
    assert "\n" not in refused.value.message


def names(documents: list[Document]) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in documents]


def test_files_and_folders_have_one_document_or_many(tmp_path: Path):
    written(tmp_path, "docs/a.toml", TOML)
    written(
        tmp_path,
        "docs/b.yaml",
        "id: b\nspec: '* * * * *'\naction: x\n---\nname: free\ncalendars: [{hour: 9}]\n---\n",
    )
    written(tmp_path, "docs/c.json", '[{"id": "c"}, {"schedules": []}]')
    written(tmp_path, "docs/README.md", "no document")
    found = read_documents([str(tmp_path / "docs")])
    assert names(found) == [
        ("calendar", "closed"),
        ("calendar", "free"),
        ("schedule", "report"),
        ("schedule", "b"),
        ("schedule", "c"),
    ]
    assert one_schedule(str(tmp_path / "docs/a.toml"))["id"] == "report"
    assert parsed(str(tmp_path / "docs/c.json"), "--file", "")[0][0] == {"id": "c"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "has 1 where a document should be"),
        ("id: a\n---\nspec: x", "has a schedule with no id: document 2"),
        ("schedules: [x]", 'has "x" where a document should be'),
        ("schedules: {id: x}", "has schedules that are not a list"),
        ("id: 7", "has a schedule with a wrong id"),
        ("calendars: [{dates: []}]", "has a calendar with no name"),
        ("schedules: [{id: a}, {id: a}]", 'has the schedule "a", which'),
    ],
)
def test_documents_that_are_none_are_refused_with_their_file(tmp_path: Path, text: str, words: str):
    file = written(tmp_path, "a.yaml", text)
    with pytest.raises(HoraeError) as refused:
        read_documents([file])
    assert refused.value.message.startswith(f"{file} {words}")


def test_a_folder_without_documents_and_a_file_with_many(tmp_path: Path):
    with pytest.raises(HoraeError, match="folder without documents"):
        read_documents([str(tmp_path)])
    with pytest.raises(HoraeError, match="has 2 schedules"):
        one_schedule(written(tmp_path, "a.yaml", "schedules: [{id: a}, {id: b}]"))


@pytest.mark.parametrize(
    "text",
    ["1e5", "-0", "1.", "true", "null", "~", "", "on", "12:30", "2026-12-25", "<<", "0x10", "- a", "a: b"],
)
def test_texts_that_look_like_something_else_come_back_as_texts(tmp_path: Path, text: str):
    value = {text: [text, {"a": text}], "number": 1e20, "flag": True, "none": None}
    assert parsed(written(tmp_path, "a.yaml", yaml_text(value)), "--file", "") == [value]
