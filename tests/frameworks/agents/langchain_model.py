# SPDX-License-Identifier: Apache-2.0
"""LangChain: a local model whose weights do not fit (broken), or a smaller one (fixed). langchain_model.py broken|fixed TURNS"""
import sys

from langchain_core.language_models.llms import LLM

from local_model import LocalModel, ceiling, expect


def load_model(layers):
    return LocalModel(width=768, layers=layers)  # here


def main(broken, turns):
    expect(__file__, broken, "loading-needs-more-host")
    ceiling.set()
    with ceiling:
        model = load_model(32 if broken else 4)

    class LocalLLM(LLM):
        @property
        def _llm_type(self):
            return "local"

        def _call(self, prompt, stop=None, run_manager=None, **kwargs):
            return model.generate(prompt)

    for turn in range(turns):
        LocalLLM().invoke("question %d" % turn)


main(sys.argv[1] == "broken", int(sys.argv[2]))
