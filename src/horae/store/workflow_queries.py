"""Transaction methods for workflows: an owner's own, or public ones, whose owner is empty. Their versions never change."""

from __future__ import annotations

from horae.model import StoredWorkflow
from horae.store.statement_execution import Statements
from horae.store.tables import WORKFLOW


class WorkflowQueries(Statements):
    """Statements on workflows."""

    async def lock_workflow(self, owner: str, workflow_id: str) -> None:
        """Lock a workflow: no other transaction can deploy a version of it until this one ends."""
        await self.rows("lock_workflow", name=f"{owner}\n{workflow_id}")

    async def insert_workflow(self, workflow: StoredWorkflow) -> bool:
        """Insert a version of a workflow; ``False``, without a change, if it exists."""
        return bool(await self.write("insert_workflow", [WORKFLOW.parameters(workflow)]))

    async def workflow(
        self, owner: str, workflow_id: str, version: int | None = None
    ) -> StoredWorkflow | None:
        """A version of a workflow, by default the latest: the owner's own, or else the public one."""
        return await self.find_one(
            WORKFLOW, "workflow", owner=owner, workflow_id=workflow_id, version=version
        )

    async def workflows(
        self, owner: str | None, after: tuple[str, str, int], limit: int
    ) -> list[tuple[str, str, int, int]]:
        """A page of versions of workflows, each with its id, owner, version and when it was deployed.

        It has an owner's workflows and the public ones, or those of all owners if ``owner`` is ``None``.
        """
        after_id, after_owner, after_version = after
        return await self.tuples(
            "workflows", owner=owner, after_id=after_id, after_owner=after_owner, after_version=after_version, limit=limit
        )  # fmt: skip

    async def count_workflows(self, owner: str, limit: int) -> int:
        """How many versions of workflows an owner has, counted up to a limit."""
        return int(await self.value("count_workflows", owner=owner, limit=limit))
