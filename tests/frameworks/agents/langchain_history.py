# SPDX-License-Identifier: Apache-2.0
"""LangChain: a chat whose history keeps every message with the document that was retrieved for it (broken), or the last
few messages (fixed). langchain_history.py broken|fixed TURNS"""
import sys

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models.llms import LLM
from langchain_core.messages import trim_messages
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from local_model import LocalModel, ceiling, fetch_document, tell

DOCUMENT = 8 << 20
model = LocalModel()


class LocalLLM(LLM):
    @property
    def _llm_type(self):
        return "local"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return model.generate(prompt)


class ShortHistory(InMemoryChatMessageHistory):
    """The guide's fix: the last exchanges alone."""

    def add_messages(self, messages):
        super().add_messages(messages)
        self.messages = trim_messages(self.messages, max_tokens=4, token_counter=len, strategy="last", start_on="human")


def main(broken, turns):
    history = InMemoryChatMessageHistory() if broken else ShortHistory()
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from the context."), MessagesPlaceholder("history"), ("human", "{question}")])
    chat = RunnableWithMessageHistory(prompt | LocalLLM(), lambda session: history, input_messages_key="question", history_messages_key="history")
    tell(__file__, broken, "linear", DOCUMENT)
    ceiling.set()
    for turn in range(turns):
        question = fetch_document(turn, DOCUMENT) + "\nWhat does it say?"  # grows
        chat.invoke({"question": question}, {"configurable": {"session_id": "one"}})


main(sys.argv[1] == "broken", int(sys.argv[2]))
