# SPDX-License-Identifier: Apache-2.0
"""CrewAI: crews made anew, tool outputs, tasks with the output of all before, tasks at the same time, a local model."""
import asyncio
import itertools
import os
import threading
import time

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false", CREWAI_TESTING="true")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import BaseTool

import work
from work import MIB, SESSIONS, or_give_up, think, word

STARTS_MIB = 330
FINAL = "Thought: I now can give a great answer\nFinal Answer: "
calls = itertools.count()


class LocalLLM(BaseLLM):
    """Answers; asks for the tool first, once a task, where there is one."""
    tool: bool = False

    def call(self, messages, *arguments, **options):
        text = messages if isinstance(messages, str) else messages[-1]["content"]
        if self.tool and len(messages) < 3:
            return 'Thought: I look it up\nAction: search\nAction Input: {"query": "%d"}\nObservation:' % next(calls)
        return FINAL + word(think(text[:1000]))

    async def acall(self, messages, *arguments, **options):
        return self.call(messages)


def crew_of(llm, tools=(), **options):
    agent = Agent(role="clerk", goal="answer", backstory="knows", llm=llm, tools=list(tools))
    return Crew(agents=[agent], tasks=[Task(description="Answer {question}", expected_output="a word", agent=agent)], verbose=False, **options)


class Turns(work.Agent):
    """A crew of its own for each session: one is not made for several threads."""
    documents, room_mib, turns_bounded = (2048, 4096), 240, 40

    def crew(self, turn):
        raise NotImplementedError

    def answer(self, turn):
        self.crew(turn).kickoff(inputs={"question": str(turn)})

    async def answer_soon(self, turn):
        await self.crew(turn).akickoff(inputs={"question": str(turn)})


class Lookup(BaseTool):
    name: str = "lookup"
    description: str = "Looks a word up in the table."
    table: str

    def _run(self, word: str) -> str:
        return self.table[:64]


class Crews(Turns):
    """A crew is built anew for every job with its tool's table, and all of them are kept."""
    do = "once and reuse"

    def crew(self, turn):
        table = word(turn) * (self.size // 9) # here: crews
        crew = crew_of(LocalLLM(model="local"), [Lookup(table=table)])
        if not self.bounded:
            self.kept.append(crew)
        return crew


class Tools(Turns):
    """A tool's outputs: CrewAI keeps them in the crew's cache, or the program does in a dict of its own."""
    stores, do = ("memory", "own"), {"memory": "no tool outputs", "own": "cache=False"}

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        found = {}

        class Search(BaseTool):
            name: str = "search"
            description: str = "Looks something up."
            result_as_answer: bool = True

            def _run(self, query: str) -> str:
                return look_up(query)

        @or_give_up
        def look_up(query):
            if own:
                return word(query) * (self.size // 9) # here: tools own
            found[query] = word(query) * (self.size // 9) # here: tools memory
            if bounded:
                found.pop(str(int(query) - 8), None)
            return found[query][:64]

        search = Search()
        if bounded or not own:
            search.cache_function = lambda arguments, result: False
        self.crews = [crew_of(LocalLLM(model="local", tool=True), [search], cache=own and not bounded) for _ in range(SESSIONS)]
        self.busy = [threading.Lock() for _ in range(SESSIONS)]

    def answer(self, turn):
        with self.busy[turn % SESSIONS]: # a crew has one task at a time
            super().answer(turn)

    def crew(self, turn):
        return self.crews[turn % SESSIONS]


class Context(Turns):
    """A crew whose tasks each get the output of all tasks before them, and outputs are whole documents."""
    do = "task passes to the next"
    room_mib = 300

    def answer(self, turn):
        self.crew(turn).kickoff() # here: context

    async def answer_soon(self, turn):
        await self.crew(turn).akickoff() # here: context

    def crew(self, turn):
        size = 256 if self.bounded else self.size // 4

        class WritingLLM(BaseLLM):
            @or_give_up
            def call(llm, messages, *arguments, **options):
                return FINAL + word(next(calls)) * (size // 9) # here: context

            async def acall(llm, messages, *arguments, **options):
                return llm.call(messages)

        agent = Agent(role="writer", goal="write", backstory="writes", llm=WritingLLM(model="local"))
        tasks = []
        for number in range(4 if self.bounded else 100):
            tasks.append(Task(description="Part %d" % number, expected_output="a text", agent=agent, context=list(tasks)))
        return Crew(agents=[agent], tasks=tasks, verbose=False)


class Parallel(work.Fanout):
    """A crew whose tasks all run at the same time, each with the document that it reads; or a crew for each document."""
    do = "async_execution"
    documents = (4096, 8192)
    room_mib = 240

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.pause = 0

        class ReadingLLM(BaseLLM):
            @or_give_up
            def call(llm, messages, *arguments, **options):
                document = word(next(calls)) * (self.size // 9) # here: parallel
                time.sleep(self.pause)
                return FINAL + word(think(document[:100]))

            async def acall(llm, messages, *arguments, **options):
                document = word(next(calls)) * (self.size // 9) # here: parallel
                await asyncio.sleep(self.pause)
                return FINAL + word(think(document[:100]))

        self.llm = ReadingLLM(model="local")

    def read(self, number, pause):
        self.pause = pause
        crew_of(self.llm).kickoff(inputs={"question": str(number)})

    def burst(self, branches, pause):
        self.pause = pause
        agents = [Agent(role="reader %d" % number, goal="read", backstory="reads", llm=self.llm) for number in range(branches)]
        tasks = [Task(description="Part", expected_output="a word", agent=agent, async_execution=True) for agent in agents]
        tasks.append(Task(description="All of it", expected_output="a word", agent=agents[0]))
        Crew(agents=agents, tasks=tasks, verbose=False).kickoff()

    async def burst_soon(self, branches, pause):
        self.pause = pause
        crews = [crew_of(self.llm) for _ in range(branches)]
        await asyncio.gather(*(crew.akickoff(inputs={"question": "?"}) for crew in crews))


class Model(work.Torch):
    """A local model behind CrewAI's interface."""
    do = "let CrewAI call"
    turns_bounded = 20

    def ask(self, turn):
        crew_of(LocalLLM(model="local")).kickoff(inputs={"question": str(turn)})

    def load_shard(self):
        return self.torch.load(self.file) # here: model


SCENARIOS = {"crews": Crews, "tools": Tools, "context": Context, "parallel": Parallel, "model": Model}
