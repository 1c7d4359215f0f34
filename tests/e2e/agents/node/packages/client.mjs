// One client package, named by the argument: calls in turn, streamed, retried and at once, with times and ids in them.
import { randomUUID } from 'node:crypto';

const [, , name] = process.argv;
const key = process.env.OPENAI_API_KEY;
const URL_ = 'https://api.openai.com/v1/chat/completions';
const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
const ask = (text) => `${text} at ${new Date().toISOString()}, ${Math.random()}, ${randomUUID()}`;
const messages = (text) => [{ role: 'user', content: ask(text) }];
const body = (text, more = {}) => JSON.stringify({ model: 'gpt-4o', messages: messages(text), ...more });

const CLIENTS = {
  async openai() {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI();
    const call = async (text) => (await client.chat.completions.create({ model: 'gpt-4o', messages: messages(text) }))
      .choices[0].message.content;
    const stream = async (text) => {
      const parts = [];
      const events = await client.chat.completions.create({ model: 'gpt-4o', stream: true, messages: messages(text) });
      for await (const event of events) parts.push(event.choices[0]?.delta?.content ?? '');
      return parts.join('|');
    };
    return { call, stream };
  },
  async anthropic() {
    const { default: Anthropic } = await import('@anthropic-ai/sdk');
    const client = new Anthropic();
    const options = (text) => ({ model: 'claude-sonnet-4-5', max_tokens: 200, messages: messages(text) });
    const call = async (text) => (await client.messages.create(options(text))).content[0].text;
    const stream = async (text) => {
      const parts = [];
      await client.messages.stream(options(text)).on('text', (part) => parts.push(part)).finalMessage();
      return parts.join('|');
    };
    return { call, stream };
  },
  async ai() {
    const { generateText, streamText } = await import('ai');
    const { createOpenAI } = await import('@ai-sdk/openai');
    const model = createOpenAI({ apiKey: key }).chat('gpt-4o');
    const call = async (text) => (await generateText({ model, prompt: ask(text) })).text;
    const stream = async (text) => {
      const parts = [];
      for await (const part of streamText({ model, prompt: ask(text) }).textStream) parts.push(part);
      return parts.join('|');
    };
    return { call, stream };
  },
  async axios() {
    const { default: axios } = await import('axios');
    const call = async (text) => {
      for (;;) {
        const reply = await axios.post(URL_, body(text), { headers, validateStatus: () => true });
        if (reply.status === 200) return reply.data.choices[0].message.content;
        await new Promise((resolve) => setTimeout(resolve, 700));
      }
    };
    const stream = async (text) => {
      const reply = await axios.post(URL_, body(text, { stream: true }), { headers, responseType: 'stream' });
      let length = 0;
      for await (const part of reply.data) length += part.length;
      return length;
    };
    return { call, stream };
  },
  async 'node-fetch'() {
    const { default: fetch } = await import('node-fetch');
    return fetching(fetch);
  },
  async undici() {
    const { fetch, request } = await import('undici');
    const { stream } = fetching(fetch);
    const call = async (text) => {
      for (;;) {
        const reply = await request(URL_, { method: 'POST', headers, body: body(text) });
        const found = await reply.body.json();
        if (reply.statusCode === 200) return found.choices[0].message.content;
        await new Promise((resolve) => setTimeout(resolve, 700));
      }
    };
    return { call, stream };
  },
  async 'undici-proxy'() {
    const { EnvHttpProxyAgent, setGlobalDispatcher } = await import('undici');
    setGlobalDispatcher(new EnvHttpProxyAgent());
    return CLIENTS.undici();
  },
};

function fetching(fetch) {
  const call = async (text) => {
    for (;;) {
      const reply = await fetch(URL_, { method: 'POST', headers, body: body(text) });
      const found = await reply.json();
      if (reply.ok) return found.choices[0].message.content;
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
  };
  const stream = async (text) => {
    const reply = await fetch(URL_, { method: 'POST', headers, body: body(text, { stream: true }) });
    return (await reply.text()).length;
  };
  return { call, stream };
}

const { call, stream } = await CLIENTS[name]();
console.log(await call('first'), await call('busy'), await stream('streamed'));
console.log(await Promise.all([call('slow'), stream('middle'), call('quick'), call('quick')]));
const deeper = async (n) => [await call(`slow ${n}`), await call(await call(`deeper ${n}`)), Math.random(), Date.now()];
console.log(await Promise.all([1, 2, 3].map(deeper)));
console.log('end', Date.now(), randomUUID());
