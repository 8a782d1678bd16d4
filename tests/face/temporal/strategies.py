"""Random messages."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import strategies as st
from temporalio.api.schedule.v1 import CalendarSpec, IntervalSpec, Range, ScheduleSpec, StructuredCalendarSpec

BOUNDS = {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day_of_month": (1, 31), "month": (1, 12), "day_of_week": (0, 6)}  # fmt: skip
TEXTS = {
    "second": ["0", "", "*/20"], "minute": ["*/15", "7", "1,2,50-59/3"], "hour": ["*", "9-17", "0"],
    "day_of_month": ["", "*", "13", "1-5"], "month": ["", "jan-mar", "12"], "day_of_week": ["", "mon-fri", "0", "7"],
    "year": ["", "2027-2030", "*"],
}  # fmt: skip
CRONS = [
    "0 9 * * *",
    "*/5 * * * mon",
    "0 0 13 * 5",
    "@daily",
    "@every 90m",
    "@every 2h/5m",
    "0 30 8 * * * 2028",
    "1 2 3 4 * # note",
]
ZONES = ["", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]


def ranges(low: int, high: int) -> st.SearchStrategy[list[Range]]:
    one = st.tuples(st.integers(low, high), st.integers(low, high), st.integers(0, 7))
    made = one.map(lambda each: Range(start=min(each[:2]), end=max(each[:2]), step=each[2]))
    alone = st.integers(low, high).map(lambda value: Range(start=value))
    return st.lists(st.one_of(made, alone), min_size=1, max_size=3)


structured = st.builds(
    StructuredCalendarSpec,
    **{name: ranges(*bounds) for name, bounds in BOUNDS.items()},
    year=st.one_of(st.just([]), ranges(2026, 2035)),
    comment=st.sampled_from(["", "a note"]),
)
written = st.builds(CalendarSpec, **{name: st.sampled_from(texts) for name, texts in TEXTS.items()})
intervals = st.tuples(st.integers(60, 100_000), st.integers(0, 59)).map(
    lambda each: IntervalSpec(interval=Duration(seconds=each[0]), phase=Duration(seconds=each[1]))
)
moments = st.one_of(
    st.none(), st.integers(1_780_000_000, 1_850_000_000).map(lambda at: Timestamp(seconds=at))
)


def some(each: st.SearchStrategy[object], most: int = 2) -> st.SearchStrategy[list[object]]:
    return st.lists(each, max_size=most)


specs = st.builds(
    ScheduleSpec,
    structured_calendar=some(structured),
    calendar=some(written),
    cron_string=some(st.sampled_from(CRONS)),
    interval=some(intervals),
    exclude_structured_calendar=some(structured, 1),
    exclude_calendar=some(written, 1),
    start_time=moments,
    end_time=st.one_of(
        st.none(), st.integers(1_850_000_001, 1_990_000_000).map(lambda at: Timestamp(seconds=at))
    ),
    jitter=st.one_of(st.none(), st.integers(0, 3600).map(lambda span: Duration(seconds=span))),
    timezone_name=st.sampled_from(ZONES),
)
