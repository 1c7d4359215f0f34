// An MCP server of the TypeScript SDK, on stdio; or with `http`, on a port of its own that it prints.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function weather() {
  const server = new McpServer({ name: 'weather', version: '1' }, { capabilities: { logging: {} } });
  const inputSchema = { city: z.string() };
  server.registerTool('weather', { description: 'The weather', inputSchema }, async ({ city }, extra) => {
    const { progressToken } = extra._meta ?? {};
    const params = { progressToken, progress: 1, total: 2, message: `looking at ${city.slice(0, 5)}` };
    if (progressToken !== undefined) await extra.sendNotification({ method: 'notifications/progress', params });
    await sleep(city.startsWith('Paris') ? 200 : 5);
    return { content: [{ type: 'text', text: `${city}: ${randomUUID()}` }] };
  });
  server.registerTool('broken', {}, () => {
    throw new Error('out of order');
  });
  return server;
}

if (process.argv[2] === 'http') {
  const transports = new Map();
  const listening = createServer(async (request, response) => {
    let transport = transports.get(request.headers['mcp-session-id']);
    if (!transport) {
      const onsessioninitialized = (id) => transports.set(id, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(), onsessioninitialized });
      await weather().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  listening.listen(0, '127.0.0.1', () => console.log(listening.address().port));
  process.stdin.on('end', () => process.exit()).resume();
} else {
  await weather().connect(new StdioServerTransport());
}
