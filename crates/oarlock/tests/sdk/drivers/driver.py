"""Plays a plan with the official Python SDK and prints what the SDK delivered to its user.

    python driver.py PLAN.json

The plan is described in plan.rs, the summary in summary.rs. On stdout: {"signal": NAME} lines, and at the end
{"summary": [one for each session]}.
"""

import asyncio
import json
import sys
from collections import Counter

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

OTHER_TYPES = {"RateLimitEvent": "rate_limit_event", "ConversationResetMessage": "conversation_reset"}


def say(line):
    print(json.dumps(line), flush=True)


class Play:
    """One session of the plan and what it has delivered so far."""

    def __init__(self, plan, session, previous):
        self.plan, self.session, self.previous = plan, session, previous
        self.marks, self.changed = Counter(), asyncio.Event()
        self.ended = False
        self.summary = {
            "types": [], "deltas": "", "thinking_deltas": "", "blocks": [], "subagent": [], "tool_results": [],
            "asks": [], "withdrawn": 0, "hooks": [], "calls": [], "elicitations": [], "results": [], "systems": [],
            "session": None, "error": None, "stuck": None,
        }

    # What happened, and waiting for it.

    def mark(self, name):
        self.marks[name] += 1
        self.wake()

    def wake(self):
        self.changed.set()
        self.changed = asyncio.Event()

    async def reach(self, mark, count):
        while self.marks[mark] < count:
            if self.ended:
                raise EOFError(f"the stream ended before {mark} {count}")
            await self.changed.wait()

    # Messages.

    def take(self, message):
        summary = self.summary
        kind = self.kind(message)
        if not summary["types"] or summary["types"][-1] != kind:
            summary["types"].append(kind)
        if isinstance(message, AssistantMessage):
            blocks = [self.block(block) for block in message.content]
            summary["subagent" if message.parent_tool_use_id else "blocks"] += [b for b in blocks if b]
        elif isinstance(message, UserMessage):
            self.take_user(message)
        elif isinstance(message, StreamEvent):
            self.take_event(message.event)
        elif isinstance(message, ResultMessage):
            self.take_result(message)
        elif isinstance(message, SystemMessage):
            self.take_system(message.data)
        self.mark(kind)

    @staticmethod
    def kind(message):
        if isinstance(message, SystemMessage):
            return f"system/{message.subtype}"
        known = {AssistantMessage: "assistant", UserMessage: "user", ResultMessage: "result", StreamEvent: "stream_event"}
        name = type(message).__name__
        return known.get(type(message)) or OTHER_TYPES.get(name, name)

    @staticmethod
    def block(block):
        if isinstance(block, TextBlock):
            return {"text": block.text}
        if isinstance(block, ThinkingBlock):
            return {"thinking": block.thinking, "signature": block.signature}
        if isinstance(block, ToolUseBlock):
            return {"tool": block.name, "input": block.input}
        return None

    def take_user(self, message):
        content = message.content if isinstance(message.content, list) else []
        for block in content:
            if isinstance(block, ToolResultBlock):
                text = block.content
                if isinstance(text, list):
                    text = "\n".join(part.get("text", "") for part in text)
                result = {"text": text or "", "is_error": bool(block.is_error)}
                if message.parent_tool_use_id:
                    self.summary["subagent"].append({"tool_result": result})
                else:
                    self.summary["tool_results"].append(result)

    def take_event(self, event):
        delta = event.get("delta", {})
        if delta.get("type") == "text_delta":
            self.summary["deltas"] += delta["text"]
            self.mark("delta")
        elif delta.get("type") == "thinking_delta":
            self.summary["thinking_deltas"] += delta["thinking"]

    def take_result(self, message):
        self.summary["session"] = message.session_id
        self.summary["results"].append({
            "subtype": message.subtype,
            "is_error": message.is_error,
            "num_turns": message.num_turns,
            "text": message.result,
            "structured_output": message.structured_output,
            "api_error_status": message.api_error_status,
            "terminal_reason": message.terminal_reason,
            "errors": message.errors,
            "denials": [denial["tool_name"] for denial in message.permission_denials or []],
            "origin": (message.origin or {}).get("kind"),
        })

    def take_system(self, data):
        fields = ("subtype", "status", "permissionMode", "task_type", "compact_result", "error_status", "error", "attempt")
        self.summary["systems"].append({name: data[name] for name in fields if data.get(name) is not None})

    # Callbacks.

    async def can_use_tool(self, name, tool_input, context):
        self.summary["asks"].append({
            "tool": name,
            "input": tool_input,
            "suggestions": [update.type for update in context.suggestions],
            "in_subagent": context.agent_id is not None,
        })
        self.mark("ask")
        rule = next((r for r in self.session["permissions"] if r.get("tool") in (None, name)), {"answer": "deny"})
        try:
            if rule["answer"] == "never":
                await asyncio.Event().wait()
            await self.reach("ask", rule.get("together", 0))
        except asyncio.CancelledError:
            self.summary["withdrawn"] += 1
            self.mark("withdrawn")
            raise
        if rule["answer"] == "allow":
            updates = context.suggestions if rule.get("always") else None
            return PermissionResultAllow(updated_input={**tool_input, **rule.get("input", {})}, updated_permissions=updates)
        return PermissionResultDeny(message=rule.get("message", "no rule"), interrupt=rule.get("interrupt", False))

    def hook(self, answer):
        async def callback(hook_input, _tool_use_id, _context):
            self.summary["hooks"].append({"event": hook_input["hook_event_name"], "tool": hook_input.get("tool_name")})
            self.mark("hook")
            return answer

        return callback

    def calculator(self):
        @tool("add", "Adds two numbers", {"a": float, "b": float})
        async def add(arguments):
            self.summary["calls"].append({"tool": "add", "input": arguments})
            return {"content": [{"type": "text", "text": f"the sum is {arguments['a'] + arguments['b']:g}"}]}

        @tool("fail", "Always fails", {})
        async def fail(arguments):
            self.summary["calls"].append({"tool": "fail", "input": arguments})
            raise RuntimeError("this tool always fails")

        return create_sdk_mcp_server("calc", tools=[add, fail])

    # Playing.

    def options(self):
        given, session = self.session["options"], self.session
        options = ClaudeAgentOptions(cli_path=self.plan["cli"], cwd=self.plan["cwd"], setting_sources=[])
        options.stderr = lambda line: print(line, file=sys.stderr)
        options.include_partial_messages = given.get("partial", False)
        options.forward_subagent_text = given.get("forward_subagent_text", False)
        options.model = given.get("model")
        options.permission_mode = given.get("permission_mode")
        options.max_turns = given.get("max_turns")
        options.allowed_tools = given.get("allowed_tools", [])
        if "thinking" in given:
            options.thinking = {"type": "enabled", "budget_tokens": given["thinking"]}
        if "schema" in given:
            options.output_format = {"type": "json_schema", "schema": given["schema"]}
        if given.get("resume"):
            options.resume = self.previous
        options.fork_session = given.get("fork", False)
        options.mcp_servers = dict(given.get("mcp_servers", {}))
        if given.get("calculator"):
            options.mcp_servers["calc"] = self.calculator()
        if session.get("permissions"):
            options.can_use_tool = self.can_use_tool
        if session.get("hooks"):
            options.hooks = {}
            for hook in session["hooks"]:
                matcher = HookMatcher(matcher=hook.get("matcher"), hooks=[self.hook(hook["answer"])])
                options.hooks.setdefault(hook["event"], []).append(matcher)
        return options

    async def read(self, messages):
        try:
            async for message in messages:
                self.take(message)
        except Exception as error:
            self.summary["error"] = {"kind": type(error).__name__, "message": str(error)}
        finally:
            self.ended = True
            self.wake()

    async def step(self, step, client):
        match step:
            case {"send": content}:
                await client.query(user_message(content))
            case {"wait": [mark, count]}:
                await self.reach(mark, count)
            case {"signal": name}:
                say({"signal": name})
            case "interrupt":
                await client.interrupt()
            case "settle":
                await client.get_mcp_status()
            case _:
                raise ValueError(f"unknown step {step}")

    async def run_steps(self, steps, client):
        for number, step in enumerate(steps):
            self.summary["stuck"] = f"step {number}: {json.dumps(step)}"
            await self.step(step, client)
        self.summary["stuck"] = None

    async def dialogue(self):
        client = ClaudeSDKClient(self.options())
        await client.connect()
        reader = asyncio.create_task(self.read(client.receive_messages()))
        try:
            await self.run_steps(self.session["steps"], client)
        finally:
            await client.disconnect()
            await reader

    async def one_shot(self):
        first, *steps = self.session["steps"]
        reader = asyncio.create_task(self.read(query(prompt=first["send"], options=self.options())))
        await self.run_steps(steps, None)
        self.summary["stuck"] = "the end of the query"
        await reader
        self.summary["stuck"] = None

    async def run(self):
        play = self.one_shot if self.session["entry"] == "query" else self.dialogue
        try:
            await asyncio.wait_for(play(), self.plan["limit"])
        except Exception as error:
            if self.summary["error"] is None:
                self.summary["error"] = {"kind": type(error).__name__, "message": str(error)}
        return self.summary


async def user_message(content):
    yield {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}


async def main():
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    summaries, previous = [], None
    for session in plan["sessions"]:
        summary = await Play(plan, session, previous).run()
        summaries.append(summary)
        previous = summary["session"] or previous
    say({"summary": summaries})


asyncio.run(main())
