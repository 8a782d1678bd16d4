"""Decisions: pure functions from values to frozen values. No I/O, no clock, no randomness, no logging.

Which file answers which question:

Schedules
    - ``catch_up.py``: which slots are due, and which late ones are made up?
    - ``overlap.py``: which of them start, wait, are skipped or replace a running one?
    - ``pause.py``, ``resumption.py``, ``backfill.py``: what does a pause skip, what does resuming start, which backfill slots are next?
    - ``decide.py``, ``ledger_changes.py``: all of the above as one decision for one schedule; the rows that it writes.
    - ``spec_change.py``, ``undecided_spec.py``: which slots stay due after an edit; which slots are not decided yet?
    - ``upcoming_starts.py``, ``forecast.py``: which coming slots will start; how many starts does each coming minute have?
    - ``explain.py``, ``reason.py``: why did a moment run or not run, or why will it?
    - ``reconcile_plan.py``: what changes when a declarative program registers its tasks again?

Runs
    - ``admission.py``, ``outcome.py``, ``retry.py``: may a claimed run still start, what does its end mean, is there another attempt?
    - ``rerun.py``: which ended runs may be run again, and with which input?
    - ``lifecycle.py``: which status may follow which?
    - ``grants.py``, ``graph_requests.py``: does a grant still allow a graph to run; is an execution request new, running, done or in conflict?

Flows and workflows
    - ``flow_phase_transitions.py``, ``flow_failure_handling.py``: the phases of a run and the meaning of each failure; backoff, reconciliation and fixes.
    - ``flow_next_handler.py``: which handler runs next, when does the flow wake, what does a commit or a deploy make due?
    - ``flow_summary.py``, ``flow_explain.py``: a flow in plain words; why did it run or not run at a moment?
    - ``workflow_progress.py``, ``workflow_states.py``: which nodes run now, are skipped or lost; the state of each node.

The process
    - ``loop_stall.py``: why does the event loop not answer, and what is to blame?

Limits and units
    - ``validate.py``, ``face_defaults.py``: which values may policies have; the default policies of each face.
    - ``slot_times.py``: specs count seconds, everything else milliseconds.
"""
