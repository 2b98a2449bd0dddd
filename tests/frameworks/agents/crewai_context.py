# SPDX-License-Identifier: Apache-2.0
"""CrewAI: a crew whose tasks each get the output of all tasks before them, and outputs are whole documents (broken), or the
end of them (fixed). crewai_context.py broken|fixed TASKS"""
import os
import sys

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false", CREWAI_TESTING="true")

from crewai import Agent, BaseLLM, Crew, Task

from local_model import LocalModel, ceiling, expect, fetch_document

OUTPUT = 2 << 20
model = LocalModel()


class WritingLLM(BaseLLM):
    size: int = OUTPUT

    def call(self, messages, *arguments, **options):
        text = messages if isinstance(messages, str) else messages[-1]["content"]
        said = model.generate(text)
        return "Thought: I now can give a great answer\nFinal Answer: " + fetch_document(said, self.size)


def main(broken, tasks):
    agent = Agent(role="writer", goal="write", backstory="writes", llm=WritingLLM(model="local", size=OUTPUT if broken else 256))
    work = []
    for number in range(tasks):
        work.append(Task(description="Part %d" % number, expected_output="a text", agent=agent, context=list(work)))
    expect(__file__, broken, "host-leak")
    ceiling.set()
    Crew(agents=[agent], tasks=work, verbose=False).kickoff()  # here


main(sys.argv[1] == "broken", int(sys.argv[2]))
