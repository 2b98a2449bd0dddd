# SPDX-License-Identifier: Apache-2.0
"""AutoGen: an assistant whose context keeps every tool output (broken), or is cleared after each task (fixed). A
BufferedChatCompletionContext is no fix: it bounds what is sent, not what is kept. autogen_tools.py broken|fixed TURNS"""
import asyncio
import itertools
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

from local_model import LocalModel, ceiling, fetch_document, tell

OUTPUT = 16 << 20
model = LocalModel()
calls = itertools.count()


class LocalClient(ChatCompletionClient):
    """Asks for the tool once a task, then answers."""

    async def create(self, messages, *, tools=(), **options):
        last = messages[-1]
        said = model.generate(str(last.content)[-256:])
        wants_tool = last.type == "UserMessage"
        content = [FunctionCall(id="call-%d" % next(calls), name="search", arguments='{"query": "%s"}' % said)] if wants_tool else said
        return CreateResult(finish_reason="function_calls" if wants_tool else "stop", content=content, usage=RequestUsage(0, 0), cached=False)

    async def create_stream(self, messages, **options):
        yield await self.create(messages, **options)

    async def close(self):
        pass

    def actual_usage(self):
        return RequestUsage(0, 0)

    def total_usage(self):
        return RequestUsage(0, 0)

    def count_tokens(self, messages, **options):
        return 0

    def remaining_tokens(self, messages, **options):
        return 1 << 20

    @property
    def capabilities(self):
        return self.model_info

    @property
    def model_info(self):
        return ModelInfo(vision=False, function_calling=True, json_output=False, structured_output=False, family="unknown")


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
