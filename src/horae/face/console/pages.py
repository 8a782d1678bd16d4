"""All pages of the console."""

from __future__ import annotations

from litestar.types import ControllerRouterHandler

from horae.face.console import (
    alerts_page,
    calendars_pages,
    create_page,
    documents_pages,
    edit_page,
    explain_page,
    flows_pages,
    grants_pages,
    nodes_page,
    overview,
    runs_pages,
    schedule_actions,
    schedule_page,
    schedules_list,
    sign_in,
    workflows_pages,
)


def handlers() -> list[ControllerRouterHandler]:
    """The handlers of all pages."""
    modules = (
        sign_in,
        overview,
        schedules_list,
        schedule_page,
        schedule_actions,
        runs_pages,
        explain_page,
        nodes_page,
        create_page,
        edit_page,
        calendars_pages,
        flows_pages,
        grants_pages,
        workflows_pages,
        alerts_page,
        documents_pages,
    )
    return [handler for module in modules for handler in module.HANDLERS]
