// ai (the AI SDK): tools that the SDK calls itself, streamed; then three streams side by side.
import { randomUUID } from 'node:crypto';
import { openai } from '@ai-sdk/openai';
import { jsonSchema, stepCountIs, streamText, tool } from 'ai';

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const get_weather = tool({
  description: 'The weather.',
  inputSchema: jsonSchema(city),
  execute: async ({ city }) => `${city}: rain at ${Date.now()} ${Math.random()}`,
});

async function ask(prompt, more = {}) {
  const pieces = [];
  for await (const piece of streamText({ model: openai.chat('gpt-5'), prompt, ...more }).textStream) pieces.push(piece);
  return pieces.join('|');
}

const tools = { get_weather };
console.log(await ask(`The weather on ${new Date().toISOString()}? ${randomUUID()}`, { tools, stopWhen: stepCountIs(5) }));
const one = (name) => ask(`${name} ${randomUUID()}`);
for (const text of await Promise.all(['left', 'right', 'middle'].map(one))) console.log(text);
