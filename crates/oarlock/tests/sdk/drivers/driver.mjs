// Plays a plan with the official TypeScript SDK and prints what the SDK delivered to its user.
//
//     node --input-type=module --eval "$(cat driver.mjs)" PLAN.json     (in the folder of the SDK's node_modules)
//
// The plan is described in plan.rs, the summary in summary.rs. On stdout: {"signal": NAME} lines, and at the end
// {"summary": [one for each session]}.

import { readFileSync } from 'node:fs';
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');

/** What the user says, one message after the other; `send` returns when the SDK has taken the message. */
class Prompts {
  waiting = [];
  taken = [];
  wake = () => {};
  closed = false;

  send(content) {
    const message = { type: 'user', message: { role: 'user', content }, parent_tool_use_id: null };
    return new Promise((done) => {
      this.waiting.push([message, done]);
      this.wake();
    });
  }

  close() {
    this.closed = true;
    this.wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.waiting.length === 0) {
        if (this.closed) return;
        await new Promise((wake) => (this.wake = wake));
      }
      const [message, done] = this.waiting.shift();
      yield message;
      // The SDK asks for the next one, so it has written this one.
      done();
    }
  }
}

/** One session of the plan and what it has delivered so far. */
class Play {
  marks = new Map();
  waiters = new Set();
  ended = false;
  summary = {
    types: [], deltas: '', thinking_deltas: '', blocks: [], subagent: [], tool_results: [], asks: [], withdrawn: 0,
    hooks: [], calls: [], elicitations: [], results: [], systems: [], session: null, error: null, stuck: null,
  };

  constructor(plan, session, previous) {
    Object.assign(this, { plan, session, previous });
  }

  // What happened, and waiting for it.

  mark(name) {
    this.marks.set(name, (this.marks.get(name) ?? 0) + 1);
    this.wake();
  }

  wake() {
    for (const waiter of this.waiters) waiter();
  }

  reach(mark, count, signal) {
    return new Promise((done, fail) => {
      const look = () => {
        if ((this.marks.get(mark) ?? 0) >= count) done();
        else if (signal?.aborted) fail(new Error('aborted'));
        else if (this.ended) fail(new Error(`the stream ended before ${mark} ${count}`));
        else return;
        this.waiters.delete(look);
      };
      this.waiters.add(look);
      signal?.addEventListener('abort', look);
      look();
    });
  }

  // Messages.

  take(message) {
    const { summary } = this;
    const kind = message.type === 'system' ? `system/${message.subtype}` : message.type;
    if (summary.types.at(-1) !== kind) summary.types.push(kind);
    if (kind === 'assistant') {
      const blocks = message.message.content.map((block) => this.block(block)).filter(Boolean);
      summary[message.parent_tool_use_id ? 'subagent' : 'blocks'].push(...blocks);
    } else if (kind === 'user') this.takeUser(message);
    else if (kind === 'stream_event') this.takeEvent(message.event);
    else if (kind === 'result') this.takeResult(message);
    else if (message.type === 'system') this.takeSystem(message);
    this.mark(kind);
  }

  block(block) {
    switch (block.type) {
      case 'text': return { text: block.text };
      case 'thinking': return { thinking: block.thinking, signature: block.signature };
      case 'tool_use': return { tool: block.name, input: block.input };
    }
  }

  takeUser(message) {
    const { content } = message.message;
    for (const block of Array.isArray(content) ? content : []) {
      if (block.type !== 'tool_result') continue;
      const parts = Array.isArray(block.content) ? block.content.map((part) => part.text ?? '') : [block.content ?? ''];
      const result = { text: parts.join('\n'), is_error: block.is_error ?? false };
      if (message.parent_tool_use_id) this.summary.subagent.push({ tool_result: result });
      else this.summary.tool_results.push(result);
    }
  }

  takeEvent({ delta }) {
    if (delta?.type === 'text_delta') {
      this.summary.deltas += delta.text;
      this.mark('delta');
    } else if (delta?.type === 'thinking_delta') this.summary.thinking_deltas += delta.thinking;
  }

  takeResult(message) {
    this.summary.session = message.session_id;
    this.summary.results.push({
      subtype: message.subtype,
      is_error: message.is_error,
      num_turns: message.num_turns,
      text: message.result ?? null,
      structured_output: message.structured_output ?? null,
      api_error_status: message.api_error_status ?? null,
      terminal_reason: message.terminal_reason ?? null,
      errors: message.errors ?? null,
      denials: (message.permission_denials ?? []).map((denial) => denial.tool_name),
      origin: message.origin?.kind ?? null,
    });
  }

  takeSystem(message) {
    const fields = ['subtype', 'status', 'permissionMode', 'task_type', 'compact_result', 'error_status', 'error', 'attempt'];
    const present = fields.filter((name) => message[name] != null).map((name) => [name, message[name]]);
    this.summary.systems.push(Object.fromEntries(present));
  }

  // Callbacks.

  canUseTool = async (name, input, { signal, suggestions, agentID }) => {
    const types = (suggestions ?? []).map((update) => update.type);
    this.summary.asks.push({ tool: name, input, suggestions: types, in_subagent: agentID != null });
    this.mark('ask');
    const rules = this.session.permissions;
    const rule = rules.find((rule) => rule.tool == null || rule.tool === name) ?? { answer: 'deny' };
    try {
      await this.reach(...(rule.answer === 'never' ? ['never', 1] : ['ask', rule.together ?? 0]), signal);
    } catch (error) {
      this.summary.withdrawn += 1;
      this.mark('withdrawn');
      throw error;
    }
    if (rule.answer === 'allow') {
      const updatedPermissions = rule.always ? suggestions : undefined;
      return { behavior: 'allow', updatedInput: { ...input, ...rule.input }, updatedPermissions };
    }
    return { behavior: 'deny', message: rule.message ?? 'no rule', interrupt: rule.interrupt ?? false };
  };

  hook(answer) {
    return async (input) => {
      this.summary.hooks.push({ event: input.hook_event_name, tool: input.tool_name ?? null });
      this.mark('hook');
      return answer;
    };
  }

  onElicitation = async ({ serverName, message }) => {
    this.summary.elicitations.push({ server: serverName, message });
    return this.session.elicitation;
  };

  calculator() {
    const add = tool('add', 'Adds two numbers', { a: z.number(), b: z.number() }, async (input) => {
      this.summary.calls.push({ tool: 'add', input });
      return { content: [{ type: 'text', text: `the sum is ${input.a + input.b}` }] };
    });
    const fail = tool('fail', 'Always fails', {}, async (input) => {
      this.summary.calls.push({ tool: 'fail', input });
      throw new Error('this tool always fails');
    });
    return createSdkMcpServer({ name: 'calc', tools: [add, fail] });
  }

  // Playing.

  options() {
    const { plan, session } = this;
    const given = session.options;
    const options = {
      pathToClaudeCodeExecutable: plan.cli,
      cwd: plan.cwd,
      settingSources: [],
      stderr: (text) => process.stderr.write(text),
      includePartialMessages: given.partial ?? false,
      forwardSubagentText: given.forward_subagent_text ?? false,
      model: given.model,
      permissionMode: given.permission_mode,
      maxTurns: given.max_turns,
      thinking: given.thinking && { type: 'enabled', budgetTokens: given.thinking },
      allowedTools: given.allowed_tools,
      outputFormat: given.schema && { type: 'json_schema', schema: given.schema },
      resume: given.resume ? this.previous : undefined,
      forkSession: given.fork,
      mcpServers: { ...given.mcp_servers, ...(given.calculator && { calc: this.calculator() }) },
    };
    if (session.permissions?.length) options.canUseTool = this.canUseTool;
    if (session.elicitation) options.onElicitation = this.onElicitation;
    if (session.hooks?.length) {
      options.hooks = {};
      for (const { event, matcher, answer } of session.hooks) {
        (options.hooks[event] ??= []).push({ matcher, hooks: [this.hook(answer)] });
      }
    }
    return options;
  }

  async read(messages) {
    try {
      for await (const message of messages) this.take(message);
    } catch (error) {
      this.summary.error = { kind: error.name, message: error.message };
    } finally {
      this.ended = true;
      this.wake();
    }
  }

  async step(step, session, prompts) {
    if (step === 'interrupt') return session.interrupt();
    if (step === 'settle') return session.mcpServerStatus();
    const [[name, value]] = Object.entries(step);
    if (name === 'send') return prompts.send(value);
    if (name === 'wait') return this.reach(...value);
    if (name === 'signal') return say(step);
    throw new Error(`unknown step ${JSON.stringify(step)}`);
  }

  async runSteps(steps, session, prompts) {
    for (const [number, step] of steps.entries()) {
      this.summary.stuck = `step ${number}: ${JSON.stringify(step)}`;
      await this.step(step, session, prompts);
    }
    this.summary.stuck = null;
  }

  async play() {
    const { entry, steps } = this.session;
    const prompts = entry === 'query' ? null : new Prompts();
    const session = query({ prompt: prompts ?? steps[0].send, options: this.options() });
    const reader = this.read(session);
    try {
      await this.runSteps(prompts ? steps : steps.slice(1), session, prompts);
    } finally {
      prompts?.close();
    }
    this.summary.stuck = 'the end of the stream';
    await reader;
    this.summary.stuck = null;
  }

  async run() {
    let timer;
    const limit = new Promise((_, fail) => {
      timer = setTimeout(() => fail(new Error('the time limit is over')), this.plan.limit * 1000);
    });
    try {
      await Promise.race([this.play(), limit]);
    } catch (error) {
      this.summary.error ??= { kind: error.name, message: error.message };
    }
    clearTimeout(timer);
    return this.summary;
  }
}

const plan = JSON.parse(readFileSync(process.argv[1], 'utf8'));
const summary = [];
let previous;
for (const session of plan.sessions) {
  const one = await new Play(plan, session, previous).run();
  summary.push(one);
  previous = one.session ?? previous;
}
say({ summary });
process.exit(0);
