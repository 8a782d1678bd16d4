"""Transaction methods for workflows, whose versions never change: an owner's own, or those of all owners, whose owner is empty."""

from __future__ import annotations

from horae.model import StoredWorkflow
from horae.store.queries import Queries
from horae.store.tables import WORKFLOW


class WorkflowQueries(Queries):
    """Statements on workflows."""

    async def lock_workflow(self, owner: str, workflow_id: str) -> None:
        """Let no other transaction deploy a version of a workflow until the end."""
        await self.rows("lock_workflow", name=f"{owner}\n{workflow_id}")

    async def insert_workflow(self, workflow: StoredWorkflow) -> bool:
        """Insert a version of a workflow; ``False``, without a change, if it exists."""
        return bool(await self.write("insert_workflow", [WORKFLOW.parameters(workflow)]))

    async def workflow(
        self, owner: str, workflow_id: str, version: int | None = None
    ) -> StoredWorkflow | None:
        """A version of a workflow that an owner can use, or the latest: their own, or else that of all owners."""
        return await self.find_one(
            WORKFLOW, "workflow", owner=owner, workflow_id=workflow_id, version=version
        )

    async def workflows(
        self, owner: str | None, after: tuple[str, str, int], limit: int
    ) -> list[tuple[str, str, int, int]]:
        """A page of versions of workflows by id, owner and version, and when each was deployed: an owner's and those of all
        owners, or everything if it is ``None``.
        """
        after_id, after_owner, after_version = after
        return await self.tuples(
            "workflows", owner=owner, after_id=after_id, after_owner=after_owner, after_version=after_version, limit=limit
        )  # fmt: skip

    async def count_workflows(self, owner: str, limit: int) -> int:
        """How many versions of workflows an owner has, counted up to a limit."""
        return int(await self.value("count_workflows", owner=owner, limit=limit))
