// openai: a streamed tool loop with two calls at once, then three streams side by side.
import { randomUUID } from 'node:crypto';
import OpenAI from 'openai';

const client = new OpenAI();
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather.', parameters } }];
const weather = async (call) => `${JSON.parse(call.function.arguments).city}: rain at ${Date.now()} ${Math.random()}`;

async function ask(messages, more = {}) {
  const pieces = [];
  const stream = client.chat.completions.stream({ model: 'gpt-5', messages, ...more });
  stream.on('content', (piece) => pieces.push(piece));
  const { message } = (await stream.finalChatCompletion()).choices[0];
  console.log(pieces.join('|'));
  return message;
}

const messages = [{ role: 'user', content: `The weather on ${new Date().toISOString()}? ${randomUUID()}` }];
for (;;) {
  const said = await ask(messages, { tools });
  if (!said.tool_calls?.length) break;
  const results = await Promise.all(said.tool_calls.map(weather));
  messages.push(said, ...said.tool_calls.map((call, n) => ({ role: 'tool', tool_call_id: call.id, content: results[n] })));
}
const one = (name) => ask([{ role: 'user', content: `${name} ${randomUUID()}` }]);
for (const said of await Promise.all(['left', 'right', 'middle'].map(one))) console.log(said.content);
