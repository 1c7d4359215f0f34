// One client of WebSockets, named by the argument, that talks to OpenAI Realtime: in turn and two at once, with times and
// ids in what it says.
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';

const [, , name] = process.argv;
const key = process.env.OPENAI_API_KEY;
const URL_ = 'wss://api.openai.com/v1/realtime?model=gpt-realtime';
const values = () => [Date.now(), Math.random(), randomUUID(), performance.now()];
const question = (text) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: `${text} ${values().join(' ')}` }] },
});

// A session: `said` are its events as they come, `say` sends one.
const OPENERS = {
  async ws() {
    const { default: WebSocket } = await import('ws');
    return byListeners(new WebSocket(URL_, { headers: { authorization: `Bearer ${key}` } }));
  },
  async global() {
    return byListeners(new WebSocket(URL_, ['realtime', `openai-insecure-api-key.${key}`]));
  },
  async undici() {
    const { WebSocket } = await import('undici');
    return byListeners(new WebSocket(URL_, { headers: { authorization: `Bearer ${key}` }, protocols: ['realtime'] }));
  },
  async openai() {
    const { OpenAIRealtimeWS } = await import('openai/realtime/ws');
    const session = new OpenAIRealtimeWS({ model: 'gpt-realtime' });
    const { said, take } = queue();
    session.on('event', take);
    session.on('error', (error) => take({ type: 'error', error: error.message }));
    const close = () => {
      session.close();
      return once(session.socket, 'close').then(([code]) => code);
    };
    return { said, say: (event) => session.send(event), close };
  },
};

function byListeners(socket) {
  const { said, take } = queue();
  socket.addEventListener('message', ({ data }) => take(JSON.parse(data)));
  socket.addEventListener('error', ({ message }) => take({ type: 'error', error: message }));
  const close = () =>
    new Promise((resolve) => {
      socket.addEventListener('close', ({ code }) => resolve(code));
      socket.close(1000);
    });
  return { said, say: (event) => socket.send(JSON.stringify(event)), close };
}

function queue() {
  const [here, waiting] = [[], []];
  const take = (event) => (waiting.length ? waiting.shift()(event) : here.push(event));
  async function* said() {
    for (;;) yield here.length ? here.shift() : await new Promise((resolve) => waiting.push(resolve));
  }
  return { said: said(), take };
}

async function talk(text, turns) {
  const session = await OPENERS[name]();
  const heard = [];
  let asked = 0;
  for await (const event of session.said) {
    heard.push(event, values());
    if (event.type === 'session.created' || event.type === 'response.done') {
      if (asked++ === turns) break;
      session.say(question(`${text} ${asked}`));
      session.say({ type: 'response.create' });
    }
    if (event.type === 'error') break;
  }
  return [heard, await session.close(), values()];
}

console.log(JSON.stringify(await talk('alone', 2)));
console.log(JSON.stringify(await Promise.all([talk('left', 1), talk('right', 2)])));
console.log('end', ...values());
