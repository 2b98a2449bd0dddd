# SPDX-License-Identifier: Apache-2.0
"""AutoGen: an assistant that is asked about one document after another and keeps every question in its history (broken), or
is reset after each answer (fixed). autogen_history.py broken|fixed TURNS"""
import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken

from local_client import LocalClient
from local_model import ceiling, fetch_document, tell

DOCUMENT = 16 << 20


async def ask(agent, turn):
    question = fetch_document(turn, DOCUMENT)  # grows
    await agent.run(task=question)


async def serve(broken, turns):
    agent = AssistantAgent("reader", LocalClient())
    ceiling.set()
    for turn in range(turns):
        await ask(agent, turn)
        if not broken:
            await agent.on_reset(CancellationToken())
        await asyncio.sleep(0)  # AutoGen ends its generators when the loop is idle, as it is while a server waits


tell(__file__, sys.argv[1] == "broken", "linear", DOCUMENT)
asyncio.run(serve(sys.argv[1] == "broken", int(sys.argv[2])))
