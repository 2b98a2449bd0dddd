# SPDX-License-Identifier: Apache-2.0
"""AutoGen: an assistant whose context keeps every tool output (broken), or is cleared after each task (fixed). A
BufferedChatCompletionContext is no fix: it bounds what is sent, not what is kept. autogen_tools.py broken|fixed TURNS"""
import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_core.model_context import UnboundedChatCompletionContext

from local_client import LocalClient, calls
from local_model import ceiling, fetch_document, tell

OUTPUT = 16 << 20


async def search(query: str) -> str:
    """Looks something up."""
    return fetch_document(next(calls), OUTPUT)  # grows


async def serve(broken, turns):
    context = UnboundedChatCompletionContext()
    agent = AssistantAgent("helper", LocalClient(), tools=[search], model_context=context)
    ceiling.set()
    for turn in range(turns):
        said = await agent.run(task="question %d" % turn)
        if len(said.messages[-1].content) < OUTPUT:  # the agent takes a tool's failure for its answer
            raise MemoryError("the tool had none left")
        if not broken:
            await context.clear()


tell(__file__, sys.argv[1] == "broken", "linear", OUTPUT)
asyncio.run(serve(sys.argv[1] == "broken", int(sys.argv[2])))
