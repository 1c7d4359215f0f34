// node:http2: a streamed tool loop with two calls at once by hand, then three streams side by side in one session.
import { randomUUID } from 'node:crypto';
import { connect } from 'node:http2';

const session = connect('https://api.openai.com');
const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }];
const weather = async (call) => `${JSON.parse(call.function.arguments).city}: rain at ${Date.now()} ${Math.random()}`;

/** The events of an answer, as they come. */
async function* events(messages, more) {
  const request = session.request({
    ':method': 'POST', ':path': '/v1/chat/completions',
    'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}`,
  });
  request.end(JSON.stringify({ model: 'gpt-5', stream: true, messages, ...more }));
  request.setEncoding('utf8');
  let rest = '';
  for await (const data of request) {
    const found = (rest + data).split('\n\n');
    rest = found.pop();
    for (const event of found) if (event !== 'data: [DONE]') yield JSON.parse(event.slice(6)).choices[0]?.delta ?? {};
  }
}

/** The text in its pieces, and the calls of tools. */
async function ask(messages, more = {}) {
  const pieces = [], calls = [];
  for await (const delta of events(messages, more)) {
    if (delta.content) pieces.push(delta.content);
    for (const { index, id, function: part } of delta.tool_calls ?? []) {
      calls[index] ??= { id, type: 'function', function: { name: part.name, arguments: '' } };
      calls[index].function.arguments += part.arguments ?? '';
    }
  }
  return { text: pieces.join('|'), calls };
}

const messages = [{ role: 'user', content: `The weather on ${new Date().toISOString()}? ${randomUUID()}` }];
for (;;) {
  const { text, calls } = await ask(messages, { tools });
  console.log(text);
  if (!calls.length) break;
  const results = await Promise.all(calls.map(weather));
  const answers = calls.map((call, n) => ({ role: 'tool', tool_call_id: call.id, content: results[n] }));
  messages.push({ role: 'assistant', content: text.replaceAll('|', ''), tool_calls: calls }, ...answers);
}
const one = (name) => ask([{ role: 'user', content: `${name} ${randomUUID()}` }]);
for (const { text } of await Promise.all(['left', 'right', 'middle'].map(one))) console.log(text);
console.log(session.alpnProtocol);
session.close();
