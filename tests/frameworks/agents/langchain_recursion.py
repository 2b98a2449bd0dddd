# SPDX-License-Identifier: Apache-2.0
"""LangChain: a chain that feeds each answer back with the whole prompt before it, and the answer repeats the prompt, so
each prompt is twice the last (broken), or only the end of it goes back (fixed). langchain_recursion.py broken|fixed TURNS"""
import sys

from langchain_core.language_models.llms import LLM
from langchain_core.prompts import PromptTemplate

from local_model import LocalModel, ceiling, expect, fetch_document

SEED = 64 << 10
model = LocalModel()


class RepeatingLLM(LLM):
    """Quotes what it was asked before it answers, as models without a stop sequence do."""

    @property
    def _llm_type(self):
        return "local"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        said = model.generate(prompt)
        with ceiling:
            return prompt + said


def main(broken, turns):
    chain = PromptTemplate.from_template("{before}\n{question}") | RepeatingLLM()
    expect(__file__, broken, "host-request-doubles")
    ceiling.set()
    before = fetch_document(0, SEED)
    for turn in range(turns):
        said = chain.invoke({"before": before, "question": "And then?"})  # here
        before = before + said if broken else said[-SEED:]


main(sys.argv[1] == "broken", int(sys.argv[2]))
