// The official TypeScript SDK under the benchmark; main.rs says what is written when.

import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { query } from "@anthropic-ai/claude-agent-sdk";

// A program given by --eval has no file name in its arguments.
const [fake, pause] = [process.argv[1], Number(process.argv[2])];
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function* prompt() {
  console.log("ready");
  await lines.next();
  yield {
    type: "user",
    message: { role: "user", content: [{ type: "text", text: "go" }] },
    parent_tool_use_id: null,
    session_id: "",
  };
}

const options = { pathToClaudeCodeExecutable: fake, includePartialMessages: true };
let messages = 0;
for await (const message of query({ prompt: prompt(), options })) {
  messages += 1;
  if (messages === 1 && pause) await setTimeout(pause * 1000);
  if (message.type === "result") {
    console.log(`done ${messages}`);
    await lines.next();
  }
}
process.exit(0);
