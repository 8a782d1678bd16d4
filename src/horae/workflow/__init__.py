"""Workflows as users write them: documents, the checks when one is deployed, and a builder for Python."""

from horae.workflow.builder import Task, WorkflowBuilder
from horae.workflow.document import Workflow, json_schema

__all__ = ["Task", "Workflow", "WorkflowBuilder", "json_schema"]
