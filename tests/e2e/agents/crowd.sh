# As crowd.py, with curl: `crowd.sh NAME`.
set -eu
read -r _
for n in 0 1 2 3; do
    curl -sS "https://search.example.com/search?q=$1.$n" "http://search.example.com/search?q=$1.$n.clear"
    curl -sS https://api.openai.com/v1/chat/completions -H 'content-type: application/json' \
        -d "{\"model\": \"gpt-4o\", \"messages\": [{\"role\": \"user\", \"content\": \"$1. asks $n\"}]}"
done
