# SPDX-License-Identifier: Apache-2.0
"""AutoGen: histories, tool outputs, agents with long prompts, a task for every document at once, a local model."""
import asyncio
import itertools

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.memory import ListMemory, MemoryContent
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

import work
from work import SESSIONS, or_give_up, think, word

STARTS_MIB = 100
calls = itertools.count()


class LocalClient(ChatCompletionClient):
    """Asks for the tool once a task where there is one, then answers."""

    async def create(self, messages, *, tools=(), **options):
        last = messages[-1]
        said = word(think(str(last.content)[-256:]))
        wants_tool = bool(tools) and last.type == "UserMessage"
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


class Async(work.Agent):
    """AutoGen is asynchronous; the other forms have an event loop for each turn."""
    room_mib = 200

    def answer(self, turn):
        asyncio.run(self.answer_soon(turn))


class History(Async):
    """An assistant is asked about one document after another, and keeps every question: in a list of the program, or in its context."""
    stores, do = ("memory", "own"), {"memory": "fewer messages", "own": r"on_reset|clear\(\)"}

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.agents = [AssistantAgent("reader_%d" % n, LocalClient()) for n in range(SESSIONS)]

    async def answer_soon(self, turn):
        agent = self.agents[turn % SESSIONS]
        if self.own:
            await agent.run(task=word(turn) * (self.size // 9)) # here: history own
        else:
            message = TextMessage(content=word(turn) * (self.size // 9), source="user") # here: history memory
            self.kept.append(message)
            await agent.run(task=message)
        if self.bounded or not self.own:
            await agent.on_reset(CancellationToken())
        if self.bounded:
            del self.kept[:-8]
        await asyncio.sleep(0) # AutoGen ends its generators when the loop is idle, as it is while a server waits


class Tools(Async):
    """An assistant whose context keeps every tool output. A BufferedChatCompletionContext is no fix: it bounds what is sent, not what is
    kept."""
    stores, do = ("own",), r"on_reset|clear\(\)"

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)

        @or_give_up
        def search(query: str) -> str:
            """Looks something up."""
            return word(query) * (self.size // 9) # here: tools

        self.contexts = [UnboundedChatCompletionContext() for _ in range(SESSIONS)]
        self.agents = [AssistantAgent("helper_%d" % n, LocalClient(), tools=[search], model_context=context) for n, context in enumerate(self.contexts)]

    async def answer_soon(self, turn):
        await self.agents[turn % SESSIONS].run(task="question %d" % turn)
        if self.bounded:
            await self.contexts[turn % SESSIONS].clear()
        await asyncio.sleep(0)


class Memories(Async):
    """What agents found out is kept for others, in AutoGen's memory or in a dict."""
    stores, do = ("memory", "own"), {"memory": "fewer messages", "own": r"clear\(\)"}

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.agent, self.memory, self.found = AssistantAgent("helper", LocalClient()), ListMemory(), {}

    async def answer_soon(self, turn):
        await self.agent.run(task="question %d" % turn)
        await self.agent.on_reset(CancellationToken())
        if self.own:
            await self.memory.add(MemoryContent(content=word(turn) * (self.size // 9), mime_type="text/plain")) # here: memories own
            if self.bounded:
                self.memory.content = self.memory.content[-8:]
        else:
            self.found[turn] = word(turn) * (self.size // 9) # here: memories memory
            if self.bounded:
                self.found.pop(turn - 8, None)
        await asyncio.sleep(0)


class Agents(Async):
    """An agent for every user, each with a long system prompt of its own."""
    do = "on_reset|limit what"

    async def answer_soon(self, turn):
        handbook = word(turn) * (self.size // 9) # here: agents
        agent = AssistantAgent("agent_%d" % turn, LocalClient(), system_message=handbook)
        await agent.run(task="question %d" % turn)
        if not self.bounded:
            self.kept.append(agent)
        await asyncio.sleep(0)


class Fanout(work.Fanout):
    """An agent for every document, all asked at once."""
    do = "Semaphore"

    async def read_soon(self, number, pause):
        document = word(number) * (self.size // 9) # here: fanout
        await asyncio.sleep(pause)
        await AssistantAgent("reader_%d" % number, LocalClient()).run(task=document[:100])
        return think(document[:100])

    def read(self, number, pause):
        return asyncio.run(self.read_soon(number, pause))

    def burst(self, branches, pause):
        asyncio.run(self.burst_soon(branches, pause))


class Model(work.Torch):
    """A local model behind an agent's client."""
    do = "let AutoGen call"

    def ask(self, turn):
        asyncio.run(AssistantAgent("helper", LocalClient()).run(task="question %d" % turn))

    async def answer_soon(self, turn):
        if len(self.kept) < 4 or not self.bounded:
            self.kept.append(self.load_shard())

    def load_shard(self):
        return self.torch.load(self.file) # here: model


SCENARIOS = {"history": History, "tools": Tools, "memories": Memories, "agents": Agents, "fanout": Fanout, "model": Model}
