"""The reader of crontabs: lines in, schedules, commands and remarks out."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.face.documents.crontab_parser import Crontab, Entry, is_system, read_crontab
from horae.spec import Spec


def read(text: str, *, system: bool = False) -> Crontab:
    return read_crontab(
        text, timezone="Europe/Berlin", system=system, home=lambda user: f"/home/{user or 'me'}"
    )


def only(text: str, *, system: bool = False) -> Entry:
    found = read(text, system=system)
    assert found.left_out == ()
    assert len(found.entries) == 1
    return found.entries[0]


def spec_of(entry: Entry) -> Spec:
    return Spec.parse(entry.spec)


def output(entry: Entry) -> str:
    """What the command prints when it is really run, as the service would."""
    ran = subprocess.run(
        entry.command.argv, input="null", capture_output=True, text=True, env=entry.command.environment, check=True, timeout=30
    )  # fmt: skip
    return ran.stdout


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("0 9 * * 1-5 x", "0 9 * * 1-5"),
        ("\t 0\t9 * *   mon-fri  x", "0 9 * * mon-fri"),
        ("*/15 8-18/2 1,15 JAN-jun * x", "*/15 8-18/2 1,15 JAN-jun *"),
        ("0 4 1-7 * 0 x", "0 4 1-7 * 0"),
        ("0 4 * * 7 x", "0 4 * * 0"),
        ("@daily x", "0 0 * * *"),
        ("@midnight\tx", "0 0 * * *"),
        ("@hourly x", "0 * * * *"),
        ("@weekly x", "0 0 * * 0"),
        ("@monthly x", "0 0 1 * *"),
        ("@yearly x", "0 0 1 1 *"),
        ("@annually x", "0 0 1 1 *"),
        ("-*/5 * * * * x", "*/5 * * * *"),
        ("0 9 * * * x\r", "0 9 * * *"),
    ],
)
def test_five_fields_and_macros_mean_what_they_mean_in_cron(line: str, expression: str):
    expected = Spec.cron(expression, timezone="Europe/Berlin", clock_change="debian")
    assert spec_of(only(line)) == expected


@pytest.mark.contract("SCHD-06")
def test_clock_changes_are_those_of_debian():
    nightly = spec_of(only("30 2 * * * x"))
    # 02:30 does not exist that night: it runs right after the gap.
    assert nightly.next_after(datetime(2026, 3, 28, 12, tzinfo=UTC)) == datetime(2026, 3, 29, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("@reboot x", "@reboot is no time"),
        ("@REBOOT x", "@reboot is no time"),
        ("0 ~ * * * x", "random"),
        ("0~30 4 * * * x", "random"),
        ("61 * * * * x", "61, which is not in the range 0-59"),
        ("0 9 * * fri-sun x", "Sunday at the end of a range is 7"),
        ("0 9 * *", "incomplete"),
        ("0 9 * * *", "incomplete"),
        ("@daily", "incomplete"),
        ("@fortnightly x", "@fortnightly"),
        ("hello", "incomplete"),
        ("-", "incomplete"),
        ("caf\udce9 9 * * * x", "UTF-8"),
        ("0 9 * * * caf\udce9", "UTF-8"),
        ("a b c d e f g", "minute"),
        ("\xa0 * * * * x", "minute"),
        ("@ x", "@"),
        ("0 9 * * * a\0b", "NUL"),
        ("MY-NAME=x", "no name for a variable"),
        ("% % % % % %", "minute"),
    ],
)
def test_what_cannot_be_carried_over_says_why(line: str, why: str):
    found = read(f"# above\n{line}\n0 9 * * * kept\n")
    assert [each.line for each in found.entries] == [3]
    assert [each.line for each in found.left_out] == [2]
    assert why in found.left_out[0].reason
    assert found.left_out[0].text.encode()


def test_blank_lines_and_comments_are_no_lines():
    found = read("\n  \t\n# 0 9 * * * no\n   #x\n\n")
    assert found == Crontab((), (), ())


def test_variables_hold_for_the_lines_below():
    text = "\n".join(
        [
            "0 1 * * * first",
            "PATH = /opt/bin:/bin",
            'NAME="  two words "',
            "'QUOTED'='x'",
            "EMPTY=",
            "SHELL=/bin/bash",
            "HOME=/srv",
            "0 2 * * * second a=b",
        ]
    )
    first, second = read(text).entries
    assert first.command.environment == {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "HOME": "/home/me"}
    assert first.command.folder == "/home/me"
    assert first.command.argv[-2:] == ("/bin/sh", "first")
    assert second.command.argv[-2:] == ("/bin/bash", "second a=b")
    assert second.command.folder == "/srv"
    assert second.command.environment == {
        "PATH": "/opt/bin:/bin", "NAME": "  two words ", "QUOTED": "x", "EMPTY": "", "SHELL": "/bin/bash",
        "HOME": "/srv",
    }  # fmt: skip


def test_what_is_different_from_cron_is_remarked():
    text = "MAILTO=me@example.org\nMAILTO=\nTZ=Asia/Tokyo\nRANDOM_DELAY=15\n-0 9 * * * x\n0 9 * * * root x\n"
    found = read(text)
    said = {remark.line: remark.reason for remark in found.remarks}
    assert set(said) == {1, 3, 4, 5, 6}
    assert "no mail" in said[1]
    assert "Europe/Berlin" in said[3]
    assert "--system" in said[6]
    entry = found.entries[0]
    assert entry.command.environment["TZ"] == "Asia/Tokyo"
    assert "MAILTO" not in entry.command.environment
    assert entry.spec["timezone"] == "Europe/Berlin"
    assert entry.spec["jitter"] == "15m"


def test_the_zone_of_a_crontab_may_change_in_it():
    found = read("CRON_TZ=Asia/Tokyo\n0 9 * * * a\nCRON_TZ=\n0 9 * * * b\nCRON_TZ=Nowhere\n0 9 * * * c\n")
    assert [each.spec["timezone"] for each in found.entries] == ["Asia/Tokyo", "Europe/Berlin"]
    assert [each.line for each in found.left_out] == [6]
    assert 'Unknown time zone "Nowhere"' in found.left_out[0].reason


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat", ""),
        ("cat%hello", "hello\n"),
        ("cat%one%two", "one\ntwo\n"),
        ("cat%", "\n"),
        (r"cat%50\% of it", "50% of it\n"),
        (r"date -u -d @0 +\%Y", "1970\n"),
        (r"""cat %it's "quoted" $HOME `x` \n""", """it's "quoted" $HOME `x` \\n\n"""),
        ("tr a-z A-Z # shout%hello", "HELLO\n"),
        ("echo $PATH $SHELL # and nothing else", "/usr/bin:/bin /bin/sh\n"),
    ],
)
def test_a_per_cent_sign_is_standard_input(command: str, expected: str):
    assert output(only(f"0 9 * * * {command}")) == expected


def test_a_system_crontab_has_users():
    entry = only("17 *\t* * *\troot    cd / && run-parts /etc/cron.hourly\n", system=True)
    assert entry.command.argv[-1] == "cd / && run-parts /etc/cron.hourly"
    assert entry.command.folder == "/home/root"
    assert "as alice" in read("@daily alice x", system=True).remarks[0].reason
    assert "a user" in read("@daily x", system=True).left_out[0].reason
    assert is_system("/etc/crontab")
    assert is_system("/etc/cron.d/backup")
    assert not is_system("/var/spool/cron/crontabs/root")


def test_ids_come_from_what_lines_say():
    text = "0 9 * * * /usr/bin/report --all\n@daily a\n"
    ids = [each.id for each in read(text).entries]
    assert ids == [each.id for each in read("# new\n\nPATH=/x\n" + text).entries]
    assert ids[0].startswith("cron-report-")
    assert [each.id for each in read("0 9 * * * /usr/bin/report --all\n" * 3).entries] == [
        ids[0], f"{ids[0]}-2", f"{ids[0]}-3",
    ]  # fmt: skip
    assert only("1 9 * * * /usr/bin/report --all").id != ids[0]
    assert only("0 9 * * * ((%").id.startswith("cron-line-")
    assert only("0 9 * * * \xa0").id.startswith("cron-line-")


def test_the_schedule_of_a_line_does_what_cron_does():
    schedule = read("# the report\n#   of the day\n0 9 * * * report\n").entries[0].schedule
    assert schedule["action"] == f"command:{schedule['id']}"
    assert schedule["policies"]["overlap"] == "allow_all"
    assert schedule["policies"]["catch_up"] == {"mode": "none"}
    assert schedule["memo"] == {"crontab": "0 9 * * * report", "comment": "the report of the day"}
    assert msgspec.json.encode(schedule)


def fields(least: int, most: int) -> st.SearchStrategy[str]:
    numbers = st.integers(least, most)
    ranges = st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.integers(1, most)
    piece = st.one_of(
        numbers.map(str),
        ranges,
        st.tuples(ranges, steps).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        steps.map(lambda step: f"*/{step}"),
    )
    return st.one_of(st.just("*"), st.lists(piece, min_size=1, max_size=3).map(",".join))


EXPRESSIONS = st.tuples(fields(0, 59), fields(0, 23), fields(1, 31), fields(1, 12), fields(0, 7))
ROOM = st.sampled_from([" ", "\t", "  ", " \t "])


@given(words=EXPRESSIONS, room=ROOM, system=st.booleans(), zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]))  # fmt: skip
def test_an_imported_line_means_what_the_expression_means(
    words: tuple[str, ...], room: str, system: bool, zone: str
):
    line = room.join([*words, *(["root"] if system else []), "echo a b  c"])
    found = read_crontab(line, timezone=zone, system=system)
    assert found.left_out == ()
    assert found.entries[0].command.argv[-2:] == ("/bin/sh", "echo a b  c")
    assert spec_of(found.entries[0]) == Spec.cron(" ".join(words), timezone=zone, clock_change="debian")


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=200), st.booleans())
def test_any_text_can_be_read(text: str, system: bool):
    found = read_crontab(text, timezone="UTC", system=system)
    lines = {entry.line for entry in found.entries} | {remark.line for remark in found.left_out}
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)
    msgspec.json.encode([found, [entry.schedule for entry in found.entries]])
