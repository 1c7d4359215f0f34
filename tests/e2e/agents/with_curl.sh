set -eu
for url in 'https://search.example.com/search?q=tide&q=moon' 'https://search.example.com/pages/no-such-page'; do
    curl -sS -w '%{http_code} %{content_type}\n' "$url"
done
curl -sSN https://api.openai.com/v1/chat/completions -H 'content-type: application/json' \
    -H "authorization: Bearer ${OPENAI_API_KEY}" \
    -d '{"model": "gpt-4o", "stream": true, "messages": [{"role": "user", "content": "Count to five, please."}]}'
curl -sS -F file=@/dev/null -F name=value -o /dev/null -w '%{http_code}\n' https://search.example.com/upload
