"""The official Python SDK under the benchmark; main.rs says what is written when."""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

fake, pause = sys.argv[1], float(sys.argv[2])


async def prompt():
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    yield {
        "type": "user",
        "message": {"role": "user", "content": "go"},
        "parent_tool_use_id": None,
        "session_id": "",
    }


async def main():
    options = ClaudeAgentOptions(cli_path=fake, include_partial_messages=True)
    messages = 0
    async for message in query(prompt=prompt(), options=options):
        messages += 1
        if messages == 1 and pause:
            await asyncio.sleep(pause)
        if isinstance(message, ResultMessage):
            print(f"done {messages}", flush=True)
            await asyncio.to_thread(sys.stdin.readline)


asyncio.run(main())
