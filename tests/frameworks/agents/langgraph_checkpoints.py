# SPDX-License-Identifier: Apache-2.0
"""LangGraph: tool outputs in the state, and a checkpointer that keeps the whole state of every step (broken: what it
keeps grows with the square of the turns), or references in the state and a fresh thread for every task (fixed).
langgraph_checkpoints.py broken|fixed TURNS"""
import operator
import sys
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from local_model import LocalModel, ceiling, fetch_document, tell

OUTPUT = 1 << 20
model = LocalModel()


class State(TypedDict):
    question: str
    outputs: Annotated[list, operator.add]
    answer: str


class Reference(TypedDict):
    question: str
    output: str
    answer: str


def build(state, use_tool):
    def answer(state):
        return {"answer": model.generate(state["question"])}

    graph = StateGraph(state)
    graph.add_node("tool", use_tool)
    graph.add_node("model", answer)
    graph.add_edge(START, "tool")
    graph.add_edge("tool", "model")
    graph.add_edge("model", END)
    return graph


def run_broken(turns):
    saver = InMemorySaver()
    graph = build(State, lambda state: {"outputs": [fetch_document(hash(state["question"]), OUTPUT)]}).compile(checkpointer=saver)
    ceiling.set()
    for turn in range(turns):
        graph.invoke({"question": "turn %d" % turn}, {"configurable": {"thread_id": "one"}}, durability="sync")  # grows


def run_fixed(turns):
    saver = InMemorySaver()
    graph = build(Reference, lambda state: {"output": "file-%08x" % len(fetch_document(hash(state["question"]), OUTPUT))}).compile(checkpointer=saver)
    ceiling.set()
    for turn in range(turns):
        graph.invoke({"question": "turn %d" % turn}, {"configurable": {"thread_id": str(turn)}}, durability="sync")
        saver.delete_thread(str(turn))


def main(broken, turns):
    tell(__file__, broken, "quadratic", OUTPUT, "InMemorySaver.put")
    (run_broken if broken else run_fixed)(turns)


main(sys.argv[1] == "broken", int(sys.argv[2]))
