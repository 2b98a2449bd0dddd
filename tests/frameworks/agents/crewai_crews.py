# SPDX-License-Identifier: Apache-2.0
"""CrewAI: a crew built anew for every job with its tool's table, and all of them kept (broken), or one crew that serves
every job (fixed). crewai_crews.py broken|fixed TURNS"""
import os
import sys

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false", CREWAI_TESTING="true")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import BaseTool

from local_model import LocalModel, ceiling, fetch_document, tell

TABLE = 16 << 20
model = LocalModel()


class LocalLLM(BaseLLM):
    def call(self, messages, *arguments, **options):
        text = messages if isinstance(messages, str) else messages[-1]["content"]
        return "Thought: I now can give a great answer\nFinal Answer: " + model.generate(text)


class Lookup(BaseTool):
    name: str = "lookup"
    description: str = "Looks a word up in the table."
    table: str

    def _run(self, word: str) -> str:
        return self.table[:64]


def build_crew(job):
    table = fetch_document(job, TABLE)  # grows
    agent = Agent(role="clerk", goal="answer", backstory="knows the table", llm=LocalLLM(model="local"), tools=[Lookup(table=table)])
    task = Task(description="Answer {question}", expected_output="a word", agent=agent)
    return Crew(agents=[agent], tasks=[task], verbose=False)


def main(broken, turns):
    crews = []
    tell(__file__, broken, "linear", TABLE)
    ceiling.set()
    for job in range(turns):
        if broken or not crews:
            crews.append(build_crew(job))
        crews[-1].kickoff(inputs={"question": str(job)})


main(sys.argv[1] == "broken", int(sys.argv[2]))
