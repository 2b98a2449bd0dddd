# SPDX-License-Identifier: Apache-2.0
"""AutoGen's client of the local model."""
import itertools

from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

from local_model import LocalModel

model = LocalModel()
calls = itertools.count()


class LocalClient(ChatCompletionClient):
    """Asks for the tool once a task where there is one, then answers."""

    async def create(self, messages, *, tools=(), **options):
        last = messages[-1]
        said = model.generate(str(last.content)[-256:])
        wants_tool = bool(tools) and last.type == "UserMessage"
        content = [FunctionCall(id="call-%d" % next(calls), name="search", arguments='{"query": "%s"}' % said)] if wants_tool else said
        return CreateResult(finish_reason="function_calls" if wants_tool else "stop", content=content, usage=RequestUsage(0, 0), cached=False)

    async def create_stream(self, messages, **options):
        yield await self.create(messages, **options)

    async def close(self):
        pass

    def actual_usage(self):
        return RequestUsage(0, 0)

    def total_usage(self):
        return RequestUsage(0, 0)

    def count_tokens(self, messages, **options):
        return 0

    def remaining_tokens(self, messages, **options):
        return 1 << 20

    @property
    def capabilities(self):
        return self.model_info

    @property
    def model_info(self):
        return ModelInfo(vision=False, function_calling=True, json_output=False, structured_output=False, family="unknown")
