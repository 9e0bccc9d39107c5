"""A client on the Python SDK: plays the plan in its argument, and prints what came of it."""

import asyncio
import json
import os
import sys

from acp import spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse


class Client:
    def __init__(self):
        self.text = ""
        self.asked = 0
        self.spoke = asyncio.Event()

    def on_connect(self, connection):
        pass

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked += 1
        once = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=once.option_id))

    async def session_update(self, session_id, update, **_):
        if update.session_update == "agent_message_chunk" and update.content.type == "text":
            self.text += update.content.text
            self.spoke.set()


async def main():
    plan = json.loads(sys.argv[1])
    client = Client()
    async with spawn_agent_process(client, plan["agent"], "acp", env=dict(os.environ), cwd=plan["cwd"]) as (agent, _):
        await agent.initialize(protocol_version=1)
        if plan["session"]:
            session = plan["session"]
            await agent.load_session(cwd=plan["cwd"], session_id=session, mcp_servers=[])
        else:
            session = (await agent.new_session(cwd=plan["cwd"], mcp_servers=[])).session_id
        turn = asyncio.create_task(agent.prompt(session_id=session, prompt=[text_block(plan["prompt"])]))
        if plan["scenario"] == "cancel":
            await client.spoke.wait()
            await agent.cancel(session_id=session)
        stop = (await turn).stop_reason
    print(json.dumps({"text": client.text, "stop": stop, "asked": client.asked}))


asyncio.run(main())
