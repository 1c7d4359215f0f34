// A client of the TypeScript SDK of MCP: `stdio COMMAND...` or `http URL`.
import { randomUUID } from 'node:crypto';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [, , kind, first, ...rest] = process.argv;
const values = () => `${Date.now()} ${Math.random()} ${randomUUID()}`;

const transport =
  kind === 'stdio'
    ? new StdioClientTransport({ command: first, args: rest })
    : new StreamableHTTPClientTransport(new URL(first));
const client = new Client({ name: 'agent', version: values() });
await client.connect(transport);
console.log(client.getServerVersion(), (await client.listTools()).tools.map(({ name }) => name));
const call = async (city) => {
  const heard = [];
  const onprogress = ({ progress, message }) => heard.push(progress, message);
  const found = await client.callTool({ name: 'weather', arguments: { city } }, undefined, { onprogress });
  return [...heard, found.content[0].text, values()];
};
console.log(await call(`Rome ${values()}`));
console.log(await Promise.all([call('Paris'), call('Oslo'), call('Bern')]));
console.log(await client.callTool({ name: 'broken' }));
if (kind === 'http') await transport.terminateSession();
await client.close();
console.log('end', values());
