"""``horae apply``: documents become schedules, what changes is shown, and ``horae export`` writes what it takes back unchanged."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from horae.face.cli import apply as apply_command
from horae.face.documents.apply_plan import plan
from tests.face.cli.command import answered, horae, refused
from tests.spec.strategies import unix_crons
from tests.support.process import Server

EXAMPLES = int(os.environ.get("HORAE_EXAMPLES", "2"))
BOTH = pytest.mark.parametrize("target", ["url", "database"], indirect=True)
KEY: dict[str, Any] = {"HORAE_SECRET_KEY": "a secret key of the tests, long enough"}
HTTP: dict[str, Any] = {"kind": "http", "options": {"url": "https://example.org/"}}


def written(folder: Path, name: str, value: object) -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(file)


def outcomes(answer: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["outcome"] for each in answer["items"]}


@pytest.fixture
def empty(tmp_path: Path) -> list[str]:
    """A database of its own, asked directly."""
    target = ["--database", f"sqlite:///{tmp_path / 'horae.db'}"]
    assert horae("migrate", *target).returncode == 0
    return target


@BOTH
def test_documents_are_created_changed_and_left_alone(target: list[str], tmp_path: Path):
    where = "server" if "--url" in target else "direct"
    one, days = f"{where}-report", f"{where}-days"
    written(tmp_path, "docs/calendars.toml", f'[[calendars]]\nname = "{days}"\ndates = [2026-12-25]\n')
    text = (
        f"id: {one}\naction: greet\n"
        f"spec: {{crons: ['0 9 * * 1-5'], timezone: Europe/Berlin, exclude: [{{calendar: {days}}}]}}\n"
    )
    file = written(tmp_path, "docs/deep/report.yaml", text)
    apply = ["apply", "-f", str(tmp_path / "docs"), *target]

    dry = horae(*apply, "--dry-run")
    assert (dry.returncode, dry.stderr) == (1, "")
    assert dry.stdout.splitlines() == [
        f"+ calendar {days}",
        f"+ schedule {one}",
        f'    At 09:00 on Monday to Friday; except what the calendar "{days}" names, Europe/Berlin time',
        "Would be: 2 created; nothing was stored.",
    ]
    assert "no schedule" in refused("schedules", "describe", one, *target)["message"]
    assert outcomes(answered(*apply)) == {days: "created", one: "created"}
    assert horae(*apply).stdout == "2 unchanged.\n"
    assert horae(*apply, "--dry-run").returncode == 0
    assert answered("schedules", "describe", one, *target)["version"] == 1

    Path(file).write_text(
        text.replace("Berlin", "Paris") + "policies: {retry: {attempts: 4}}\ntags: [a, b]\n"
    )
    written(tmp_path, "docs/calendars.toml", f'[[calendars]]\nname = "{days}"\ndates = [2026-12-26]\n')
    changed = horae(*apply)
    assert changed.returncode == 0
    assert changed.stdout.splitlines() == [
        f"~ calendar {days}",
        '    dates: ["2026-12-25"] → ["2026-12-26"]',
        f"~ schedule {one}",
        f'    At 09:00 on Monday to Friday; except what the calendar "{days}" names, Europe/Paris time',
        '    spec.timezone: "Europe/Berlin" → "Europe/Paris"',
        "    policies.retry.attempts: 1 → 4",
        '    tags: none → ["a","b"]',
        "2 changed.",
    ]
    assert outcomes(answered(*apply)) == {days: "unchanged", one: "unchanged"}
    # What a document no longer says is as by default again.
    Path(file).write_text(text)
    (item,) = [each for each in answered(*apply)["items"] if each["outcome"] == "changed"]
    assert {each["field"] for each in item["differences"]} == {
        "spec.timezone",
        "policies.retry.attempts",
        "tags",
    }
    assert answered("calendars", "show", days, *target)["dates"] == ["2026-12-26"]


def test_what_operators_change_stays_unless_a_document_says_otherwise(empty: list[str], tmp_path: Path):
    document = {"id": "a", "spec": "0 9 * * *", "action": HTTP}
    file = written(tmp_path, "a.json", document)
    answered("apply", "-f", file, *empty)
    answered("schedules", "pause", "a", "--note", "ask Ada", *empty)
    assert outcomes(answered("apply", "-f", file, *empty)) == {"a": "unchanged"}
    written(tmp_path, "a.json", document | {"description": "the report"})
    answered("apply", "-f", file, *empty)
    found = answered("schedules", "describe", "a", *empty)
    assert (found["state"], found["note"], found["description"]) == ("paused", "ask Ada", "the report")
    written(tmp_path, "a.json", document | {"paused": False, "note": ""})
    (item,) = answered("apply", "-f", file, *empty)["items"]
    assert [each["field"] for each in item["differences"]] == ["paused", "note", "description"]
    assert answered("schedules", "describe", "a", *empty)["state"] == "running"


def test_standard_input_and_several_files(empty: list[str], tmp_path: Path):
    first = written(tmp_path, "a.json", [{"id": "a", "spec": "@daily", "action": HTTP}])
    text = (
        'id = "b"\nspec = "@hourly"\n[action]\nkind = "http"\n[action.options]\nurl = "https://example.org"\n'
    )
    found = answered("apply", "-f", first, "-f", "-", *empty, stdin=text)
    assert outcomes(found) == {"a": "created", "b": "created"}
    assert found["items"][1]["source"] == "standard input"


def test_labels_and_pruning(empty: list[str], tmp_path: Path):
    documents = [{"id": name, "spec": "@daily", "action": HTTP} for name in "abc"]
    file = written(tmp_path, "s.json", documents)
    answered("schedules", "create", "by-hand", "--every", "1h", "--http", "https://example.org", *empty)
    assert refused("apply", "-f", file, "--prune", *empty)["message"].startswith("--prune needs a label")
    assert refused("apply", "-f", file, "--managed-by", " ", *empty)["message"] == "--managed-by is empty"
    answered("apply", "-f", file, "--managed-by", "billing", "--prune", *empty)
    written(tmp_path, "s.json", documents[:2])
    apply = ["apply", "-f", file, "--managed-by", "billing", *empty]
    kept = horae(*apply)
    assert kept.stdout == "? schedule c\n2 unchanged; 1 that no document has: --prune deletes them.\n"
    assert horae(*apply, "--dry-run").returncode == 0  # without --prune there is nothing to do
    dry = horae(*apply, "--prune", "--dry-run")
    assert (dry.returncode, dry.stdout.splitlines()[0]) == (1, "- schedule c")
    assert answered(*apply, "--prune")["removed"] == 1
    left = {each["id"]: each["managed_by"] for each in answered("schedules", "list", *empty)}
    assert left == {"a": "billing", "b": "billing", "by-hand": ""}
    # Another label, or none, takes nothing over.
    for more in ([], ["--managed-by", "sales"]):
        problem = refused("apply", "-f", file, *more, *empty)
        assert problem["message"] == "2 documents cannot be applied, and nothing was changed"
        assert 'schedule "a": it is managed by "billing"' in problem["details"]["errors"][0]["message"]
    written(tmp_path, "s.json", [documents[0] | {"managed_by": "billing"}])
    assert "leave one of them out" in refused("apply", "-f", file, "--managed-by", "x", *empty)["hint"]
    assert outcomes(answered("apply", "-f", file, "--prune", *empty)) == {"a": "unchanged", "b": "removed"}


@BOTH
def test_all_documents_are_checked_before_anything_is_stored(target: list[str], tmp_path: Path):
    good = {"id": "never-stored", "spec": "@daily", "action": "greet"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"spec": "0 9 * *", "action": "greet"}, "has 4 fields"),
        ({"spec": "@daily", "action": "greet", "policies": {"timeouts": {"run": 30}}}, "policies.timeouts.run is 30, a number"),
        ({"spec": "@daily", "action": "greet", "polices": {}}, "polices is unknown"),
        ({"spec": "@daily"}, "action is missing"),
        ({"spec": {"crons": ["@daily"], "timezone": "CEST"}, "action": "greet"}, "CEST"),
        ({"spec": {"crons": ["@daily"], "exclude": [{"calendar": "nowhere"}]}, "action": "greet"}, "nowhere"),
        ({"spec": "@daily", "action": "nothing"}, 'no action "nothing"'),
        ({"spec": "@daily", "action": HTTP | {"options": {"url": "https://x.org", "secret": "***"}}}, "action.options.secret is ***"),
    ]  # fmt: skip
    for wrong, words in cases:
        file = written(tmp_path, "s.json", [good, {"id": "wrong", **wrong}])
        problem = refused("apply", "-f", file, *target)
        assert problem["message"].startswith(f'{file}: schedule "wrong": '), problem
        assert words in problem["message"]
        assert problem["details"]["name"] == "wrong"
    file = written(tmp_path, "s.json", [good, {"name": "days", "dates": ["soon"]}, {"id": "x", "spec": "z"}])
    ran = horae("apply", "-f", file, *target)
    assert ran.returncode == 2
    first, *others = ran.stderr.splitlines()
    assert first == "error: 2 documents cannot be applied, and nothing was changed"
    assert [each.strip().removeprefix(f"{file}: ")[:15] for each in others] == [
        'calendar "days"',
        'schedule "x": a',
    ]
    assert "no schedule" in refused("schedules", "describe", "never-stored", *target)["message"]
    assert refused("apply", *target)["message"] == "the documents are missing"


@BOTH
def test_a_change_in_between_is_not_overwritten(
    target: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    name = f"contended-{'--url' in target}"
    document = {"id": name, "spec": "0 9 * * *", "action": "greet"}
    file = written(tmp_path, "s.json", document)

    async def meanwhile(client: Any, *arguments: Any, **more: Any) -> Any:
        """Another caller is faster than what was planned."""
        steps = await plan(client, *arguments, **more)
        await client.put(
            f"/schedules/{name}", {"spec": "0 7 * * *", "action": "greet", "description": "mine"}
        )
        return steps

    with monkeypatch.context() as patched:
        patched.setattr(apply_command, "plan", meanwhile)
        problem = refused("apply", "-f", file, *target)  # it was to be created
        assert "There is a schedule" in problem["message"]
        written(tmp_path, "s.json", document | {"note": "x"})
        answered("schedules", "update", name, "--description", "theirs", *target)
        problem = refused("apply", "-f", file, *target)
        assert "was changed meanwhile: its version is 3, not 2" in problem["message"]
    assert answered("schedules", "describe", name, *target)["description"] == "mine"
    answered("apply", "-f", file, *target)


def test_secrets_stay_hidden_and_are_kept(empty: list[str], tmp_path: Path):
    """``***`` stands for the stored secret of the same field; in a new schedule there is none that it could stand for."""
    options = {"url": "https://example.org/", "headers": {"X-Token": "hunter2"}, "secret": "hush"}
    document = {"id": "a", "spec": "@daily", "action": {"kind": "http", "options": options}}
    file = written(tmp_path, "s.json", document)
    created = horae("apply", "-f", file, *empty, **KEY)
    assert created.returncode == 0, created.stderr
    assert outcomes(answered("apply", "-f", file, *empty, **KEY)) == {"a": "unchanged"}
    exported = horae("export", *empty, **KEY).stdout
    assert "hunter2" not in exported
    assert exported.count("'***'") == 2
    back = written(tmp_path, "back.yaml", exported)
    assert outcomes(answered("apply", "-f", back, *empty, **KEY)) == {"a": "unchanged"}
    written(tmp_path, "s.json", json.dumps(document).replace("hunter2", "hunter3"))
    changed = horae("apply", "-f", file, *empty, **KEY)
    assert changed.stdout.splitlines()[2:] == [
        '    action.options: "***" → "*** (another secret)"',
        "1 changed.",
    ]
    assert outcomes(answered("apply", "-f", file, *empty, **KEY)) == {"a": "unchanged"}
    other = ["--database", f"sqlite:///{tmp_path / 'other.db'}"]
    horae("migrate", *other)
    problem = refused("apply", "-f", back, *other, **KEY)
    assert "X-Token is ***, and no value is stored for it" in problem["message"]


def test_create_and_update_take_the_same_documents(empty: list[str], tmp_path: Path):
    document = {
        "id": "a",
        "spec": {"crons": ["0 9 * * *"], "jitter": "30s"},
        "action": HTTP,
        "tags": ["x"],
        "managed_by": "m",
    }
    answered("apply", "-f", written(tmp_path, "a.json", document), *empty)
    file = written(tmp_path, "a.yaml", horae("export", "a", *empty).stdout)
    answered("schedules", "create", "b", "--file", file, *empty)
    answered("schedules", "create", "c", "--every", "1h", "--http", "https://example.com", *empty)
    answered("schedules", "update", "c", "--file", file, *empty)
    a, b, c = (json.loads(horae("export", name, "--json", *empty).stdout) for name in "abc")
    assert a == b | {"id": "a"} == c | {"id": "a"}


def test_documents_are_of_one_owner_and_pruning_stays_with_them(empty: list[str], tmp_path: Path):
    document = {"id": "a", "spec": "@daily", "action": HTTP, "managed_by": "billing"}
    file = written(tmp_path, "s.json", [document, document | {"id": "b"}])
    for owner in ("ada", "bob"):
        answered("apply", "-f", file, "--owner", owner, *empty)
    assert "--owner is needed: 2 owners" in refused("export", *empty)["message"]
    exported = horae("export", "--owner", "ada", *empty).stdout
    assert outcomes(
        answered("apply", "-f", written(tmp_path, "a.yaml", exported), "--owner", "bob", *empty)
    ) == {
        "a": "unchanged",
        "b": "unchanged",
    }
    # Without an owner the ids are ambiguous; with one, and for documents that are new, others keep what they have.
    (fault, _) = refused("apply", "-f", file, *empty)["details"]["errors"]
    assert "--owner" in fault["message"]
    file = written(tmp_path, "s.json", [document])
    assert outcomes(answered("apply", "-f", file, "--prune", "--owner", "ada", *empty)) == {
        "a": "unchanged",
        "b": "removed",
    }
    file = written(tmp_path, "s.json", [document | {"id": "c"}])
    assert outcomes(answered("apply", "-f", file, "--prune", *empty)) == {"c": "created"}
    file = written(tmp_path, "s.json", "[]")
    prune = ["apply", "-f", file, "--managed-by", "billing", "--prune", *empty]
    assert "--owner is needed: schedules of several owners" in refused(*prune)["message"]
    left = [(each["owner"], each["id"]) for each in answered("schedules", "list", *empty)]
    assert sorted(left) == [("ada", "a"), ("bob", "a"), ("bob", "b"), ("local", "c")]


def test_an_action_that_no_node_runs_now_may_stay(empty: list[str], server: Server, tmp_path: Path):
    """Only what is new needs a node that runs it: a server that is down for a moment does not make a file wrong."""
    database = empty[1]
    node = Server(database, app="tests.face.cli.actions", HORAE_DRAIN_MS="0")
    document = {"id": "a", "spec": "@daily", "action": "greet"}
    answered("apply", "-f", written(tmp_path, "a.json", document), "--url", node.url)
    node.end()
    file = written(tmp_path, "a.json", document | {"tags": ["x"]})
    assert outcomes(answered("apply", "-f", file, *empty)) == {"a": "changed"}
    file = written(tmp_path, "a.json", document | {"action": "wait"})
    assert 'There is no action "wait"' in refused("apply", "-f", file, *empty)["message"]


texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)
durations = st.sampled_from(["1s", "90s", "1h30m", "500ms", "7d"])
scalars = (
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.floats(-1e9, 1e9) | texts
    | st.sampled_from(["on", "12:30", "2026-12-25", "0x10", "1e5", "~", "", " a: b\n#"])
)  # fmt: skip
plain_json = scalars | st.lists(scalars, max_size=3) | st.dictionaries(texts, scalars, max_size=3)
specs = st.fixed_dictionaries(
    {},
    optional={
        "crons": st.lists(unix_crons().map(lambda case: case[0]), min_size=1, max_size=2),
        "intervals": st.lists(st.fixed_dictionaries({"every": st.sampled_from(["90m", "1s", "6h"])}), max_size=1),
        "times": st.lists(st.sampled_from(["2027-01-01T00:00:00Z", "2019-03-31T02:30:00"]), max_size=2),
        "calendars": st.just([{"hour": "9", "day_of_week": "mon-fri", "comment": "work: #1"}]),
        "exclude": st.sampled_from([[{"calendar": "days"}], [{"month": "2"}]]),
        "timezone": st.sampled_from(["Europe/Berlin", "+05:30", "America/St_Johns"]),
        "jitter": durations.filter(lambda each: each != "7d") | st.just({"span": "10s", "centred": True}),
        "end_at": st.just("2040-01-01T00:00:00Z"),
        "gap": st.sampled_from(["skip", "shift"]),
        "fold": st.sampled_from(["both", "first", "last"]),
    },
)  # fmt: skip
policies = st.fixed_dictionaries(
    {},
    optional={
        "overlap": st.sampled_from(["skip", "buffer_one", "allow_all"]),
        "catch_up": st.fixed_dictionaries({"mode": st.sampled_from(["all", "latest", "none"])}),
        "retry": st.fixed_dictionaries({"attempts": st.integers(1, 5) | st.none(), "initial_delay": durations}),
        "timeouts": st.fixed_dictionaries({"run": durations | st.none()}),
        "pause_on_failure": st.booleans(),
    },
)  # fmt: skip
actions = st.fixed_dictionaries(
    {"kind": st.just("http"), "options": st.fixed_dictionaries({"url": st.just("https://example.org/a?b=c#d")}, optional={"method": st.sampled_from(["GET", "POST"]), "timeout": st.sampled_from(["1s", "90s", "500ms"])})},
    optional={"input": plain_json, "id": texts},
)  # fmt: skip
fields = st.fixed_dictionaries(
    {"spec": specs, "action": actions},
    optional={
        "policies": policies,
        "paused": st.booleans(),
        "note": texts,
        "remaining_actions": st.integers(0, 3) | st.none(),
        "description": texts,
        "tags": st.lists(texts, max_size=2),
        "memo": st.dictionaries(texts, plain_json, max_size=2),
        "search_attributes": st.dictionaries(texts, texts | st.integers(-9, 9) | st.booleans(), max_size=2),
        "managed_by": texts,
    },
)  # fmt: skip


@settings(
    max_examples=EXAMPLES, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # commands are slow to shrink
@given(st.dictionaries(texts, fields, min_size=1, max_size=10), st.booleans())
def test_an_export_applied_to_an_empty_database_is_the_same_export(schedules: dict[str, Any], as_json: bool):
    documents = {
        "calendars": [{"name": "days", "dates": ["2026-12-25"], "calendars": [{"month": "8", "comment": "#"}]}],
        "schedules": [{"id": name, **body} for name, body in schedules.items()],
    }  # fmt: skip
    how = ["--json"] if as_json else []
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        first, second = (["--database", f"sqlite:///{here / name}.db"] for name in ("first", "second"))
        for target in (first, second):
            horae("migrate", *target)
        made = horae("apply", "-f", written(here, "documents.json", documents), *first)
        assert made.returncode == 0, made.stderr
        exported = horae("export", *first, *how).stdout
        file = written(here, f"exported.{'json' if as_json else 'yaml'}", exported)
        again = answered("apply", "-f", file, *first)
        assert again["unchanged"] == len(schedules) + 1
        assert horae("apply", "-f", file, *second).returncode == 0
        assert horae("export", *second, *how).stdout == exported
