// Three calls in turn, each with the time, a random number and the answer before it.
const headers = { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` };
async function ask(text) {
  const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: `${text} ${Date.now()} ${Math.random()}` }] });
  const r = await fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', headers, body });
  return (await r.json()).choices[0].message.content;
}
const one = await ask('one');
const two = await ask(`two ${one.slice(0, 12)}`);
const three = await ask(`three ${two.slice(0, 20)}`);
console.log(one, '\n', two, '\n', three, new Date().toISOString());
