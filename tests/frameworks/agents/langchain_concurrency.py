# SPDX-License-Identifier: Apache-2.0
"""LangChain: a batch of requests that all run at once, each with the document that was retrieved for it (broken), or a few
at a time (fixed: max_concurrency). langchain_concurrency.py broken|fixed REQUESTS"""
import sys
import threading

from langchain_core.runnables import RunnableLambda

from local_model import Batch, LocalModel, ceiling, expect

DOCUMENT = 16 << 20
model = LocalModel()


def answer(request):
    document = batch.fetch(request, DOCUMENT)  # here
    return model.generate(document, new_tokens=60)


def main(broken, requests):
    chain = RunnableLambda(answer)
    expect(__file__, broken, "host-work-at-once")
    threading.stack_size(1 << 20)  # stacks count for the limit, and would be most of it
    ceiling.set()
    chain.batch(list(range(requests)), {"max_concurrency": requests if broken else 2})


broken, requests = sys.argv[1] == "broken", int(sys.argv[2])
batch = Batch(requests if broken else 1)
main(broken, requests)
