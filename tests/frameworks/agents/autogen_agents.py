# SPDX-License-Identifier: Apache-2.0
"""AutoGen: a group chat in which each of many agents has a long system prompt of its own (broken), or a short one and a
reference (fixed). autogen_agents.py broken|fixed AGENTS"""
import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat

from local_client import LocalClient
from local_model import ceiling, fetch_document, tell

PROMPT = 16 << 20


def make_agent(number, broken):
    handbook = fetch_document(number, PROMPT if broken else 64)  # grows
    return AssistantAgent("agent_%d" % number, LocalClient(), system_message=handbook)


async def serve(broken, agents):
    ceiling.set()
    team = RoundRobinGroupChat([make_agent(n, broken) for n in range(agents)], termination_condition=MaxMessageTermination(4))
    await team.run(task="discuss")


tell(__file__, sys.argv[1] == "broken", "linear", PROMPT)
asyncio.run(serve(sys.argv[1] == "broken", int(sys.argv[2])))
