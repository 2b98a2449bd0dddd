# SPDX-License-Identifier: Apache-2.0
"""LangGraph: tool outputs in the state, checkpoints and stores, a branch for every document, a prompt that goes round, a local model."""
import operator
import time
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Send

import work
from work import KIB, SESSIONS, think, word

STARTS_MIB = 130


class State(TypedDict):
    question: str
    outputs: Annotated[list, operator.add]
    answer: str


class Reference(TypedDict):
    question: str
    outputs: list
    answer: str


def build(state, use_tool, **options):
    graph = StateGraph(state)
    graph.add_node("tool", use_tool)
    graph.add_node("model", lambda state: {"answer": word(think(state["question"]))})
    graph.add_edge(START, "tool")
    graph.add_edge("tool", "model")
    graph.add_edge("model", END)
    return graph.compile(**options)


class Outputs(work.Agent):
    """Tool outputs in the state, which every turn takes over from the last: by the program itself, or by a checkpointer."""
    stores, do = ("memory", "own"), {"memory": "references in the state", "own": "delete_thread"}
    room_mib, turns_bounded = 240, 60
    ends = {"memory": work.Agent.ends, "own": ("group",)} # refused memory, its serializer aborts and often waits for ever

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.states = {}
        self.saver = InMemorySaver() if own else None
        self.graph = build(Reference if bounded else State, self.use_tool, checkpointer=self.saver)

    def use_tool(self, state):
        return {"outputs": [word(int(state["question"])) * (self.size // 9)]} # here: outputs

    def state_of(self, turn):
        if self.own:
            return {"question": str(turn)}
        return {**self.states.get(turn % SESSIONS, {"outputs": []}), "question": str(turn)}

    def config_of(self, turn):
        return {"configurable": {"thread_id": str(turn % SESSIONS)}}

    def keep(self, turn, state):
        self.states[turn % SESSIONS] = state
        if self.own and self.bounded:
            self.saver.delete_thread(str(turn % SESSIONS))

    def answer(self, turn):
        self.keep(turn, self.graph.invoke(self.state_of(turn), self.config_of(turn))) # here: outputs

    async def answer_soon(self, turn):
        self.keep(turn, await self.graph.ainvoke(self.state_of(turn), self.config_of(turn))) # here: outputs


class Memories(work.Agent):
    """What a node found out is kept for other sessions: in a dict, or in LangGraph's store."""
    stores, do = ("memory", "own"), {"memory": "limit what|references", "own": r"store\.delete"}
    room_mib = 200

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.found, self.store = {}, InMemoryStore()
        self.graph = build(Reference, self.remember, store=self.store)

    def remember(self, state):
        turn = int(state["question"])
        if self.own:
            self.store.put(("found",), str(turn), {"text": word(turn) * (self.size // 9)}) # here: memories own
            if self.bounded:
                self.store.delete(("found",), str(turn - 8))
            return {"outputs": []}
        self.found[turn] = word(turn) * (self.size // 9) # here: memories memory
        if self.bounded:
            self.found.pop(turn - 8, None)
        return {"outputs": []}

    def answer(self, turn):
        self.graph.invoke({"question": str(turn)})

    async def answer_soon(self, turn):
        await self.graph.ainvoke({"question": str(turn)})


class Branches(TypedDict):
    documents: list
    answers: Annotated[list, operator.add]


class Fanout(work.Fanout):
    """A node that fans out to a branch for every document."""
    do = "max_concurrency"

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.pause = 0
        self.sync, self.soon = self.graph_of(self.branch), self.graph_of(self.branch_soon)

    def graph_of(self, node):
        graph = StateGraph(Branches)
        graph.add_node("read", node)
        graph.add_conditional_edges(START, lambda state: [Send("read", n) for n in state["documents"]], ["read"])
        graph.add_edge("read", END)
        return graph.compile()

    def branch(self, number):
        document = word(number) * (self.size // 9) # here: fanout
        time.sleep(self.pause)
        return {"answers": [think(document[:100])]}

    async def branch_soon(self, number):
        document = word(number) * (self.size // 9) # here: fanout
        await work.asyncio.sleep(self.pause)
        return {"answers": [think(document[:100])]}

    def read(self, number, pause):
        self.pause = pause
        return self.sync.invoke({"documents": [number], "answers": []})

    def burst(self, branches, pause):
        self.pause = pause
        self.sync.invoke({"documents": list(range(branches)), "answers": []}, {"max_concurrency": branches})

    async def burst_soon(self, branches, pause):
        self.pause = pause
        await self.soon.ainvoke({"documents": list(range(branches)), "answers": []}, {"max_concurrency": branches})


class Recursion(work.Doubling):
    """A graph that goes round, and each round's prompt has the last prompt and its answer in it."""

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        graph = StateGraph(Reference)
        graph.add_node("model", self.quote)
        graph.add_edge(START, "model")
        graph.add_edge("model", END)
        self.graph, self.before = graph.compile(), {}

    def quote(self, state):
        said = state["answer"] + "\nYou said: " + state["answer"] # here: recursion
        return {"answer": said[-64 * KIB:] if self.bounded else said}

    def before_of(self, turn):
        session = turn % SESSIONS if self.bounded else 0
        return session, {"question": "And then?", "answer": self.before.get(session) or word(turn) * (64 * KIB // 9)}

    def answer(self, turn):
        session, state = self.before_of(turn)
        self.before[session] = self.graph.invoke(state)["answer"]

    async def answer_soon(self, turn):
        session, state = self.before_of(turn)
        self.before[session] = (await self.graph.ainvoke(state))["answer"]


class Model(work.Torch):
    """A local model that a node asks."""
    do = "LangGraph.s nodes"

    def ask(self, turn):
        build(Reference, lambda state: {"outputs": []}).invoke({"question": str(turn)})

    def load_shard(self):
        return self.torch.load(self.file) # here: model


SCENARIOS = {"outputs": Outputs, "memories": Memories, "fanout": Fanout, "recursion": Recursion, "model": Model}
