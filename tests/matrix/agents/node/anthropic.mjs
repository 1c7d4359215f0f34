// @anthropic-ai/sdk: a streamed tool loop with two calls at once, then three messages side by side.
import { randomUUID } from 'node:crypto';
import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic();
const input_schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [{ name: 'get_weather', description: 'The weather.', input_schema }];
const weather = async (call) => {
  const content = `${call.input.city}: rain at ${Date.now()} ${Math.random()}`;
  return { type: 'tool_result', tool_use_id: call.id, content };
};

async function ask(messages, more = {}) {
  const pieces = [];
  const stream = client.messages.stream({ model: 'claude-sonnet-4-5', max_tokens: 500, messages, ...more });
  stream.on('text', (piece) => pieces.push(piece));
  const { content } = await stream.finalMessage();
  console.log(pieces.join('|'));
  return content;
}

const messages = [{ role: 'user', content: `The weather on ${new Date().toISOString()}? ${randomUUID()}` }];
for (;;) {
  const content = await ask(messages, { tools });
  const calls = content.filter((block) => block.type === 'tool_use');
  if (!calls.length) break;
  messages.push({ role: 'assistant', content }, { role: 'user', content: await Promise.all(calls.map(weather)) });
}
const one = (name) => ask([{ role: 'user', content: `${name} ${randomUUID()}` }]);
for (const [block] of await Promise.all(['left', 'right', 'middle'].map(one))) console.log(block.text);
