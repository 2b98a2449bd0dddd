# SPDX-License-Identifier: Apache-2.0
"""LangGraph: a node that fans out to a branch for every document, all at once (broken), or a few at a time (fixed:
max_concurrency). langgraph_fanout.py broken|fixed BRANCHES"""
import operator
import sys
import threading
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from local_model import Batch, LocalModel, ceiling, expect

DOCUMENT = 16 << 20
model = LocalModel()


class State(TypedDict):
    documents: list
    answers: Annotated[list, operator.add]


def read(branch):
    document = batch.fetch(branch["document"], DOCUMENT)  # here
    return {"answers": [model.generate(document, new_tokens=60)]}


def main(broken, branches):
    graph = StateGraph(State)
    graph.add_node("read", read)
    graph.add_conditional_edges(START, lambda state: [Send("read", {"document": n}) for n in state["documents"]], ["read"])
    graph.add_edge("read", END)
    expect(__file__, broken, "host-work-at-once")
    threading.stack_size(1 << 20)  # stacks count for the limit, and would be most of it
    ceiling.set()
    graph.compile().invoke({"documents": list(range(branches)), "answers": []}, {"max_concurrency": branches if broken else 2})


broken, branches = sys.argv[1] == "broken", int(sys.argv[2])
batch = Batch(branches if broken else 1)
main(broken, branches)
