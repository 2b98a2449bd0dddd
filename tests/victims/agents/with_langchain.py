# SPDX-License-Identifier: Apache-2.0
"""LangChain: histories, retrieved documents, requests at once, prompts with the last prompt in them, a local model."""
import time

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models.llms import LLM
from langchain_core.messages import HumanMessage, trim_messages
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.stores import InMemoryStore

import work
from work import KIB, SESSIONS, think, word

STARTS_MIB = 120


class LocalLLM(LLM):
    @property
    def _llm_type(self):
        return "local"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return word(think(prompt))


class QuotingLLM(LocalLLM):
    """Quotes what it was asked before it answers, as models without a stop sequence do."""

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return prompt + word(think(prompt))


def shorter(messages):
    return trim_messages(messages, max_tokens=4, token_counter=len, strategy="last", start_on="human")


class ShortHistory(InMemoryChatMessageHistory):
    """The guide's fix: the last exchanges only."""

    def add_messages(self, messages):
        super().add_messages(messages)
        self.messages = shorter(self.messages)


class History(work.Agent):
    """A chat keeps every message with the document that was retrieved for it."""
    stores, do = ("memory", "own"), {"memory": "trim_messages", "own": r"trim_messages|clear\(\)"}
    documents, room_mib = (512, 1536), 200

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.histories = {}
        if not own:
            self.chain = RunnableLambda(lambda messages: messages[-1].content) | LocalLLM()
            return
        prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
        self.chain = RunnableWithMessageHistory(prompt | RunnableLambda(lambda value: value.messages[-1].content) | LocalLLM(), self.history_of,
                                                input_messages_key="question", history_messages_key="history")

    def history_of(self, session_id):
        return self.histories.setdefault(session_id, ShortHistory() if self.bounded else InMemoryChatMessageHistory())

    def with_question(self, turn):
        """The messages of its session, of the program itself."""
        session = str(turn % SESSIONS)
        messages = self.histories.setdefault(session, [])
        messages.append(HumanMessage(word(turn) * (self.size // 9))) # here: history memory
        if self.bounded:
            self.histories[session] = messages = shorter(messages)
        return messages

    def answer(self, turn):
        if not self.own:
            return self.chain.invoke(self.with_question(turn))
        question = word(turn) * (self.size // 9) # here: history own
        return self.chain.invoke({"question": question}, {"configurable": {"session_id": str(turn % SESSIONS)}})

    async def answer_soon(self, turn):
        if not self.own:
            return await self.chain.ainvoke(self.with_question(turn))
        question = word(turn) * (self.size // 9) # here: history own
        return await self.chain.ainvoke({"question": question}, {"configurable": {"session_id": str(turn % SESSIONS)}})


class Documents(work.Agent):
    """What a tool brought is kept for the next time, and no question comes twice."""
    stores, do = ("memory", "own"), {"memory": "limit tool outputs", "own": "mdelete"}
    room_mib = 200

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.store, self.found = InMemoryStore(), {}
        self.chain = RunnableLambda(self.look_up, self.look_up_soon) | RunnableLambda(lambda document: document[:64]) | LocalLLM()

    def look_up(self, turn):
        if self.own:
            self.store.mset([(str(turn), word(turn) * (self.size // 9))]) # here: documents own
            if self.bounded:
                self.store.mdelete([str(turn - 8)])
            return self.store.mget([str(turn)])[0]
        self.found[turn] = word(turn) * (self.size // 9) # here: documents memory
        if self.bounded:
            self.found.pop(turn - 8, None)
        return self.found[turn]

    async def look_up_soon(self, turn):
        return self.look_up(turn)

    def answer(self, turn):
        self.chain.invoke(turn)

    async def answer_soon(self, turn):
        await self.chain.ainvoke(turn)


class Recursion(work.Doubling):
    """A chain that feeds each answer back with the whole prompt before it."""
    do = "end of an? answer"

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.chain = PromptTemplate.from_template("{before}\n{question}") | QuotingLLM()
        self.before = {}

    def keep(self, session, before, said):
        self.before[session] = said[-64 * KIB:] if self.bounded else before + said # here: recursion

    def answer(self, turn):
        session = turn % SESSIONS if self.bounded else 0
        before = self.before.get(session) or word(turn) * (64 * KIB // 9)
        self.keep(session, before, self.chain.invoke({"before": before, "question": "And then?"})) # here: recursion

    async def answer_soon(self, turn):
        session = turn % SESSIONS if self.bounded else 0
        before = self.before.get(session) or word(turn) * (64 * KIB // 9)
        self.keep(session, before, await self.chain.ainvoke({"before": before, "question": "And then?"})) # here: recursion


class Concurrency(work.Fanout):
    """A batch of requests that all run at once, each with the document that was retrieved for it."""
    do = "max_concurrency"

    def __init__(self, bounded, own, seed):
        super().__init__(bounded, own, seed)
        self.pause = 0
        self.chain = RunnableLambda(self.reply, self.reply_soon)

    def reply(self, number):
        document = word(number) * (self.size // 9) # here: concurrency
        time.sleep(self.pause)
        return think(document[:100])

    async def reply_soon(self, number):
        document = word(number) * (self.size // 9) # here: concurrency
        await work.asyncio.sleep(self.pause)
        return think(document[:100])

    def read(self, number, pause):
        self.pause = pause
        return self.chain.invoke(number)

    def burst(self, branches, pause):
        self.pause = pause
        self.chain.batch(list(range(branches)), {"max_concurrency": branches})

    async def burst_soon(self, branches, pause):
        self.pause = pause
        await self.chain.abatch(list(range(branches)), {"max_concurrency": branches})


class Model(work.Torch):
    """A local model behind LangChain's interface."""
    do = "let LangChain call"

    def ask(self, turn):
        LocalLLM().invoke("question %d" % turn)

    def load_shard(self):
        return self.torch.load(self.file) # here: model


SCENARIOS = {"history": History, "documents": Documents, "recursion": Recursion, "concurrency": Concurrency, "model": Model}
