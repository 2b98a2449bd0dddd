# SPDX-License-Identifier: Apache-2.0
"""CrewAI: a crew whose tasks all run at the same time, each with the document that it reads (broken: async_execution), or one
after another (fixed). crewai_parallel.py broken|fixed TASKS"""
import os
import sys
import threading

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false", CREWAI_TESTING="true")

from crewai import Agent, BaseLLM, Crew, Task

from local_model import Batch, LocalModel, ceiling, expect

DOCUMENT = 32 << 20
model = LocalModel()


class ReadingLLM(BaseLLM):
    def call(self, messages, *arguments, **options):
        try:
            document = batch.fetch(threading.get_ident(), DOCUMENT)  # here
        except MemoryError as error:
            sys.stderr.write("MemoryError in a task: %s\n" % error)
            os._exit(3)  # CrewAI goes on, and sometimes waits for ever for a thread that could not start
        return "Thought: I now can give a great answer\nFinal Answer: " + model.generate(document, new_tokens=60)


def main(broken, tasks):
    agents = [Agent(role="reader %d" % number, goal="read", backstory="reads", llm=ReadingLLM(model="local")) for number in range(tasks)]
    work = [Task(description="Part", expected_output="a word", agent=agent, async_execution=broken) for agent in agents]
    work.append(Task(description="All of it", expected_output="a word", agent=agents[0]))
    expect(__file__, broken, "host-work-at-once")
    threading.stack_size(1 << 20)  # stacks count for the limit, and would be most of it
    ceiling.set()
    Crew(agents=agents, tasks=work, verbose=False).kickoff()


broken, tasks = sys.argv[1] == "broken", int(sys.argv[2])
batch = Batch(tasks if broken else 1)
main(broken, tasks)
